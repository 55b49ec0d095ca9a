"""A fix stands only where the log shows its premise; each case beside a sibling that it must not fit."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis.python import list_wants

TRACE = 'Traceback (most recent call last):\n  File "{}", line 2, in f\n    x\n'
BUILD = "/tmp/pip-build-env-a/overlay/lib/python3.11/site-packages/"
SCRIPT = TRACE.format(f"{BUILD}setuptools/build_meta.py") + '  File "{}", line 9, in g\n'
HOST = 'FAILED: k.o\n/usr/local/cuda-{}/bin/nvcc -c k.cu -o k.o\n{}(38): error: identifier "__Int8x8_t" is undefined\nninja: build stopped: subcommand failed.'
NEON = "/usr/lib/gcc/aarch64-linux-gnu/9/include/arm_neon.h"
LIBRARY = "/usr/include/c++/9/bits/x.h"
TORCH = "/v/lib/python3.12/site-packages/torch/__init__.py"
LACKS = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
DEEP = "C:\\" + "\\".join(["a_folder_with_a_name"] * 13) + "\\x.obj"
C1083 = "x.cpp : fatal error C1083: Cannot open compiler generated file: '{}': {}"
NO_CXX = "InvalidCxxCompiler: No working C++ compiler found in torch._inductor.config.cpp.cxx: (None, '{}')"
CUDA = "/v/torch/cuda/__init__.py:1: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:109.)\n  return f()\n"
WEIGHTS = (
    TRACE.format("t.py")
    + "_pickle.UnpicklingError: Weights only load failed.\nFile an issue with the following: WeightsUnpickler error: {}\n\nCheck the documentation."
)
PLUGIN = "n1:4:4 [0] NCCL INFO NET/Plugin : libnccl-net.so: cannot open shared object file: No such file or directory\n"


@each_case(
    ("log", "said", "not_said"),
    [
        # A bound is of the package that the message or its last frame names.
        (SCRIPT.format("<string>") + "AttributeError: 'build_ext' object has no attribute 'cython_sources'", "cython<3", "setuptools<81"),
        (SCRIPT.format("<string>") + "AttributeError: 'build_ext' object has no attribute 'swig_sources'", "--exclude-newer", "setuptools<81"),
        (SCRIPT.format(f"{BUILD}setuptools/dist.py") + "TypeError: parse() got an unexpected keyword argument 'x'", "setuptools<81", "--exclude-newer"),
        (SCRIPT.format(f"{BUILD}skbuild/setuptools_wrap.py") + "AttributeError: 'Distribution' object has no attribute 'x'", "--exclude-newer", "setuptools<81"),
        (SCRIPT.format("<string>") + "AttributeError: module 'setuptools.command.install' has no attribute 'x'", "setuptools<81", "uninstall"),
        (SCRIPT.format("<string>") + "AttributeError: module 'pybind11' has no attribute 'X'", "pybind11<N", "pip show"),
        (SCRIPT.format("<string>") + f"ImportError: cannot import name 'msvccompiler' from 'distutils' ({BUILD}setuptools/_distutils/__init__.py)", "setuptools<81", "rename that"),
        (SCRIPT.format(f"{BUILD}setuptools_scm/a.py") + "TypeError: f() got an unexpected keyword argument 'x'", "--exclude-newer", "setuptools<81"),
        # Within the range of versions another g++ is not the reason.
        (HOST.format("11.4", NEON), "__CUDACC__", "The newest g++ of each"),
        (HOST.format("11.4", LIBRARY), "-std=c++17", "The newest g++ of each"),
        (HOST.format("10.2", NEON), "CUDA 10.2 supports g++ up to 8", "__CUDACC__"),
        # What torch itself lacks is of its own packages, and torch cannot be imported to tell more.
        (TRACE.format(TORCH) + LACKS, "pip check", "import torch"),
        (TRACE.format("/v/lib/python3.12/site-packages/flash_attn/a.py") + LACKS, "import torch", "It is torch itself"),
        # The length of a path is the reason, whatever is told of the file.
        (C1083.format(DEEP, "No such file or directory"), "short path", "git diff"),
        (f"nvcc fatal   : Could not open output file '{DEEP}'", "short path", "git diff"),
        (f"ninja: error: mkdir({DEEP}): No such file or directory", "short path", "Configure again"),
        (C1083.format("C:\\w\\build\\x.obj", "No such file or directory"), "Make the folder", "short path"),
        (C1083.format("C:\\w\\build\\x.obj", "Permission denied"), "has it open", "Make the folder"),
        # A compiler that is named is wrong in its name.
        (TRACE.format("t.py") + NO_CXX.format("/usr/bin/g++-14"), "let CXX name", "install build-essential"),
        (TRACE.format("t.py") + NO_CXX.format("g++"), "install build-essential", "let CXX name"),
        (TRACE.format("t.py") + "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc-12'", "bin/nvcc-12", "a step before it"),
        # torch told before why there is no GPU; another error does not come of it.
        (CUDA + TRACE.format("t.py") + "RuntimeError: No CUDA GPUs are available", "nvidia-fabricmanager", "CUDA_VISIBLE_DEVICES"),
        (CUDA + TRACE.format("t.py") + "ValueError: Device cuda is not available", "nvidia-fabricmanager", "It is raised at"),
        (CUDA + TRACE.format("t.py") + "AssertionError: GPU required for this", "nvidia-fabricmanager", "It is raised at"),
        (CUDA.replace("Error 802: system not yet initialized", "The NVIDIA driver on your system is too old (found version 11040).") + TRACE.format("t.py") + "RuntimeError: no CUDA", "torch of CUDA 11", "--cuda-toolkit"),
        (CUDA + TRACE.format("t.py") + "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.", "CUDA_HOME", "fabricmanager"),
        (CUDA + TRACE.format("t.py") + "ModuleNotFoundError: No module named 'einops'", "einops", "fabricmanager"),
        # A file that is none is read by no setting.
        (WEIGHTS.format("\n\nUnsupported operand 103"), "head -c 200", "add_safe_globals"),
        (WEIGHTS.format("Unsupported global: GLOBAL a.b was not an allowed global by default."), "add_safe_globals", "head -c 200"),
        (TRACE.format("/v/torch/serialization.py") + "EOFError: Ran out of input", "head -c 200", "It is raised at"),
        (TRACE.format("/usr/lib/python3.11/multiprocessing/spawn.py") + "EOFError: Ran out of input", "", "head -c 200"),
        (TRACE.format("t.py") + "ImportError: cannot import name 'x' from 'mine' (unknown location)", "mine.__path__", "pip show"),
        (TRACE.format("t.py") + "RuntimeError: No such operator image::decode_jpeg", "warns with the reason", "It is raised at"),
        # A name that every release has, and one that went.
        (TRACE.format("t.py") + "AttributeError: module 'numpy' has no attribute 'ndarray'", "numpy.__path__", "pip show"),
        (TRACE.format("t.py") + "AttributeError: module 'numpy' has no attribute 'int'", "numpy<1.24", "__path__"),
        (TRACE.format("/v/lib/python3.12/site-packages/torchvision/a.py") + "ImportError: cannot import name 'nms' from 'torchvision' (/home/u/torchvision.py)", "rename the file", "uninstall"),
        (TRACE.format("/v/torch/_ops.py") + "AttributeError: '_OpNamespace' 'torchvision' object has no attribute 'nms'", "import torchvision before", "It is raised at"),
        # An option that a command does not know.
        ("Usage:\n  pip install [options]\n\nno such option: --global-option", "--config-settings=--build-option", "CXXFLAGS"),
        ("error: unexpected argument '--build-option' found\n\nUsage: uv pip install", "--config-settings=--build-option", "CXXFLAGS"),
        ("error: unexpected argument '--foo' found\n\nUsage: uv pip install", "--help", "CXXFLAGS"),
        ("Usage:\n  pip download\n\n--python-version option requires 1 argument", "Write the value", "leave"),
        ("error: unrecognized subcommand 'isntall'\n\nUsage: uv pip", "--help", "just before it"),
        ("error: the following required arguments were not provided:\n  <PACKAGE>", "Write it behind", "just before it"),
        ("CMake Error: Unknown argument -W-no\nCMake Error: Run 'cmake --help' for all supported options.", "--help", "CXXFLAGS"),
        ("usage: torchrun [-h]\ntorchrun: error: unrecognized arguments: --nproc", "--help", "CXXFLAGS"),
        ("usage: twine upload [-h]\ntwine upload: error: argument -r/--repository: expected one argument", "Write the value", "leave"),
        ("usage: conda [-h]\nconda: error: argument COMMAND: invalid choice: 'activat' (choose from 'clean')", "what it takes for COMMAND", "leave"),
        ("usage: setup.py [-h]\nsetup.py: error: unrecognized arguments: --cpp_ext", "--help", "CXXFLAGS"),
    ],
)  # fmt: skip
def test_a_fix_is_told_where_its_premise_is_shown(log: str, said: str, not_said: str) -> None:
    fix = elsewhere(log).fix
    assert said in fix, fix
    assert not_said not in fix, fix


@each_case(
    ("log", "line"),
    [
        # What was typed above a traceback comes again in it.
        (">>> import torch\n" + 'Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>\n    import torch\n' + LACKS, 5),
        # What NCCL and glog tell at the level of information is no error.
        (PLUGIN + "n1:4:6 [1] NCCL WARN Error: failed to extend /dev/shm/nccl-x to 96 bytes", 2),
        ("I0101 10:00:00.1 1 a.cc:1] dlopen failed: libx.so: cannot open shared object file\nE0101 10:00:02.1 1 s.cc:5] connect failed: Connection refused", 2),
    ],
)  # fmt: skip
def test_the_first_error_is_none_that_is_only_quoted_or_told(log: str, line: int) -> None:
    assert read(log).line_number == line


def test_what_nccl_does_without_is_no_failure() -> None:
    assert read(PLUGIN + "step 100 loss 0.2\ndone").status == "clean"


def test_a_warning_of_a_program_that_ends_in_order_is_no_failure() -> None:
    assert read(CUDA + "using cpu\n10 passed in 1.2s").status == "clean"
    assert read(CUDA + "False").status == "diagnosed"


def test_a_marker_in_braces_is_part_of_what_is_wanted() -> None:
    wanted = "Because torch==2.0.0 depends on triton{sys_platform == 'linux'}==2.0.0 and you require it"
    assert list_wants(wanted) == ("torch==2.0.0 depends on triton{sys_platform == 'linux'}==2.0.0",)
