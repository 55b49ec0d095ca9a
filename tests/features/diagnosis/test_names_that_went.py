"""Names that went with a release of CUDA or Python, limits of compilers, and what a system never has."""

# ruff: noqa: E501  (a log in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_CHANNEL = "PackagesNotFoundError: The following packages are not available from current channels:\n\n  - {}\n\nCurrent channels:\n\n  - https://conda.anaconda.org/pytorch/{}\n"
_NO_VERSION = "{}ERROR: Could not find a version that satisfies the requirement {} (from versions: none)\nERROR: No matching distribution found for {}\n"


@each_case(
    "message, told",
    [
        ('namespace "thrust" has no member class "unary_function"', "thrust::unary_function<…>"),
        ("‘struct cudaDeviceProp’ has no member named ‘clockRate’", "cudaDevAttrClockRate"),
        ('namespace "cub" has no member "Sum"', "cuda::std::plus"),
        ("no template named 'TransformInputIterator' in namespace 'cub'", "thrust::transform_iterator"),
    ],
)
def test_the_direction_is_known_from_the_name(message: str, told: str) -> None:
    reading = read(f"a.cu(5): error: {message}\n  int a;\n  ^\n")
    assert reading.kind == "cuda-removed"
    assert "CUDA 12 toolkit" in reading.diagnoses[0].fix
    assert told in reading.diagnoses[0].fix


def test_all_names_of_the_errors_of_nvcc_are_told() -> None:
    one = 'k.cu(5): error: class "cudaDeviceProp" has no member "clockRate"\n  p.x;\n    ^\n\n'
    two = "k.cu(6): error: texture is not a template\n  texture<float>\n  ^\n\n2 errors detected in k.cu.\n"
    reading = read(one + two)
    assert "clockRate (and texture)" in reading.diagnoses[0].cause
    assert "11.8" in reading.diagnoses[0].fix
    assert "detected" not in reading.error_block[-1]


@each_case(
    "message, told",
    [
        (
            "template instantiation depth exceeds maximum of 900 (use ‘-ftemplate-depth=’ to increase the maximum)",
            "-ftemplate-depth=3600",
        ),
        (
            "'constexpr' loop iteration count exceeds limit of 262144 (use '-fconstexpr-loop-limit=' to increase the limit)",
            "-fconstexpr-loop-limit=1048576",
        ),
        ("recursive template instantiation exceeded maximum depth of 1024", "-ftemplate-depth="),
        (
            "bracket nesting level exceeded maximum of 256\na.cpp:1:1: note: use -fbracket-depth=N to increase maximum nesting level",
            "-fbracket-depth=1024",
        ),
        ('excessive recursion at instantiation of class "U<-194>"', "nvcc has the same option"),
    ],
)
def test_the_option_that_raises_a_limit_is_told(message: str, told: str) -> None:
    reading = read(f"a.cpp:1:1: fatal error: {message}\n")
    assert reading.kind == "compile-limit"
    assert told in reading.diagnoses[0].fix


@each_case(
    "line, told",
    [
        ("def flag(name: str) -> bool:", "Python 2 reads it"),
        ("class A(B, metaclass=M):", "Python 2 reads it"),
        ("raise E from e", "Python 2 reads it"),
        ("print >>f, 'a'", "Python 3 reads it"),
        ("except E, e:", "Python 3 reads it"),
        ("x: int = 3", "Python 3.6 or newer"),
        ("async def f():", "Python 3.5 or newer"),
        ("x = foo(", "cannot read this file"),
    ],
)
def test_the_line_tells_which_python_it_is_of(line: str, told: str) -> None:
    log = f'  File "setup.py", line 40\n    {line}\n        ^\nSyntaxError: invalid syntax\n'
    assert told in read(log).diagnoses[0].cause


@each_case(
    "log, told",
    [
        (_CHANNEL.format("pytorch==1.12.1\n  - cudatoolkit=11.6", "osx-arm64"), "no CUDA for macOS"),
        (_CHANNEL.format("cudatoolkit=11.6", "linux-64"), "conda search NAME"),
        (_CHANNEL.format("odd=1", "osx-arm64"), "conda search NAME"),
        (_CHANNEL.format("nccl", "win-64"), "for Windows"),
        (
            _NO_VERSION.format("Processing /Users/ada/x\n", *["nvidia-cublas-cu12==12.1"] * 2),
            "no CUDA for macOS",
        ),
        (_NO_VERSION.format("PS C:\\Users\\ada> pip install x\n", *["triton==2.1.0"] * 2), "for Windows"),
    ],
)
def test_what_a_system_never_has_is_in_no_channel(log: str, told: str) -> None:
    fix = read(log).diagnoses[0].fix
    assert told in fix
    assert ("add the channel" in fix) == (told == "conda search NAME")


@each_case(
    "header, told",
    [
        ("cupti.h", "cuda-cupti-dev-12-6"),
        ("cufft.h", "libcufft-dev-12-6"),
        ("nppi.h", "libnpp-dev-12-6"),
        ("cuda_fp16.h", "cuda-cudart-dev-12-6"),
    ],
)
def test_the_package_of_the_toolkit_is_the_one_that_has_the_header(header: str, told: str) -> None:
    log = f"/usr/local/cuda-12.6/bin/nvcc -c a.cu\na.cu:1:10: fatal error: {header}: No such file or directory\n"
    fix = read(log).diagnoses[0].fix
    assert told in fix
    assert "USE_KINETO" not in fix
    of_torch = read(log.replace("a.cu:1", "/pt/third_party/kineto/libkineto/a.cu:1")).diagnoses[0].fix
    assert ("USE_KINETO=0" in of_torch) == (header != "nppi.h")


def test_a_wheel_of_torch_itself_is_no_extension() -> None:
    arch = "nvcc fatal   : Unsupported gpu architecture 'compute_61'\nERROR: Failed building wheel for {0}\nerror: failed-wheel-build-for-install\n\n× Failed to build installable wheels for some pyproject.toml based projects\n╰─> {0}\n"
    assert "extension" not in read(arch.format("torch")).diagnoses[0].fix
    assert "extension" in read(arch.format("flash-attn")).diagnoses[0].fix


def test_compilers_that_are_installed_come_before_those_of_conda() -> None:
    log = "/c/host_config.h:1:2: error: #error -- unsupported GNU version! gcc versions later than 15 are not supported!\n"
    assert "ls /usr/bin/g++-*" in read(log).diagnoses[0].fix.partition("conda")[0]


_POETRY = "  - Installing a (1): Failed\n\n  {}\n\n  {}\n\n  at ~/v/lib/python3.11/site-packages/poetry/installation/x.py:810 in _y\n      810│     raise\n"


@each_case(
    "exception, message, kind",
    [
        (
            "RuntimeError",
            "Hash for a (1) from archive a-1.whl not found in known hashes (was: sha256:0)",
            "damaged-download",
        ),
        (
            "ConnectTimeout",
            "HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded with url: /a (Caused by ConnectTimeoutError(1))",
            "network",
        ),
    ],
)
def test_the_message_of_an_exception_that_stands_alone_is_the_error(
    exception: str, message: str, kind: str
) -> None:
    reading = read(_POETRY.format(exception, message))
    assert message in reading.error_line
    assert reading.kind == kind


def test_poetry_has_no_switch_for_isolation() -> None:
    log = _POETRY.format(
        "ChefBuildError",
        "Traceback (most recent call last):\n    File \"<string>\", line 19, in <module>\n  ModuleNotFoundError: No module named 'torch'",
    )
    assert "poetry run pip install --no-build-isolation" in read(log).diagnoses[0].fix


def test_a_symbol_of_torch_is_named_by_its_library_on_a_mac() -> None:
    log = 'Undefined symbols for architecture arm64:\n  "torch::autograd::THPVariable_Wrap(at::TensorBase)", referenced from:\n      foo in a.o\nld: symbol(s) not found for architecture arm64\n'
    assert "-ltorch_python" in read(log).diagnoses[0].fix


_OF_EXTENSION = "g++ -DTORCH_EXTENSION_NAME=x -c a.cpp\na.cpp:10:3: error: {}\n"


@each_case(
    "log, kind, said",
    [
        (_OF_EXTENSION.format("'getCurrentCUDAStream' was not declared in this scope"), "api-mismatch", "#include <c10/cuda/CUDAStream.h>"),
        (_OF_EXTENSION.format("use of undeclared identifier 'symeig'"), "api-mismatch", "up to 1.13"),
        (_OF_EXTENSION.format("‘CUDAStreamGuard’ was not declared in this scope; did you mean ‘at::cuda::CUDAStreamGuard’?"), "api-mismatch", "Write at::cuda::CUDAStreamGuard"),
        ('a.cu(3): error: identifier "getCurrentCUDAStream" is undefined\n  at::Tensor x;\n', "api-mismatch", "#include <c10/cuda/CUDAStream.h>"),
        ("a.cpp(3): error C3861: 'getCurrentCUDAStream': identifier not found\ncl -Iv\\site-packages\\torch\\include", "api-mismatch", "#include <c10/cuda/CUDAStream.h>"),
        ("a.cpp:1:1: error: 'join' was not declared in this scope; did you mean 'boost::join'?", "api-mismatch", "Write boost::join"),
        (_OF_EXTENSION.format("'my_function' was not declared in this scope"), "compile-error", ""),
        ("a.cpp:10:3: error: 'symeig' was not declared in this scope", "compile-error", ""),
    ],
)  # fmt: skip
def test_a_name_without_its_namespace_is_looked_up(log: str, kind: str, said: str) -> None:
    reading = read(log)
    assert reading.kind == kind
    assert said in " ".join(each.fix for each in reading.diagnoses)
