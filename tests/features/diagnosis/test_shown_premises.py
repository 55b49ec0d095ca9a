"""What a fix rests on is shown by the log: who speaks, at which stage, what is on already; both sides of each."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import pytest

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.diagnosis.audience import Audience
from torchbuild_tasks.features.diagnosis.wording import add_done, translate

FAILED = "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n\nDuring handling of the above exception, another exception occurred:\n\n"
TRACE = 'Traceback (most recent call last):\n  File "{}", line 2, in f\n    {}\n'
DECODE = "UnicodeDecodeError: '{}' codec can't decode byte 0xd5 in position 9: invalid continuation byte"
NINJA = "ninja: error: '{}', needed by 'libtorch.a', missing and no known rule to make it"
PROXY = "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: {}'))': /simple/x/\nERROR: Could not find a version that satisfies the requirement x (from versions: none)"
UV = "error: Distribution `torch==2.9.1+cu130 @ registry+https://a.b/whl` can't be installed because it doesn't have a source distribution or wheel for the current platform\n\nhint: You're on Linux (`{}`), but `torch` (v2.9.1+cu130) only has wheels for the following platforms: {}; consider adding x"
PYG = "RuntimeError: Detected that PyTorch and {} were compiled with different CUDA versions. PyTorch has CUDA version 12.1 and {} has CUDA version 11.8. Please reinstall."
JPEG = "gcc -I/usr/include -c d.cpp\nd.cpp:159:10: error: 'JPEG_LIB_VERSION' was not declared in this scope"
NCCL = (
    "node:7:7 [0] NCCL INFO Bootstrap : Using ib0\n{}"
    + TRACE.format("t.py", "x")
    + "RuntimeError: NCCL error in: /p/ProcessGroupNCCL.cpp:290, unhandled system error"
)
DEBUG = "{}\nLINK : fatal error LNK1104: cannot open file 'python310_d.lib' [{}]"
REPORT = "Collecting environment information...\nPyTorch version: 2.8.0+cu128\nVulnerability Gather data sampling:   Not affected\nVulnerability Itlb multihit: KVM: Mitigation: VMX disabled\n[pip3] torch==2.8.0+cu128\n[conda] Could not collect"


@each_case(
    ("log", "said", "not_said"),
    [
        # Who decodes: Python's default, or a script that asks for UTF-8, of a command that failed.
        (TRACE.format("C:\\t.py", "run()") + FAILED + TRACE.format("C:\\t.py", "m = error.output.decode()") + DECODE.format("utf-8"), "VSLANG=1033", "Set PYTHONUTF8"),
        (TRACE.format("/t.py", "run()") + FAILED + TRACE.format("/t.py", "m = error.output.decode()") + DECODE.format("utf-8"), "LC_ALL=C in front", "VSLANG"),
        (TRACE.format("/t.py", "open(x).read()") + DECODE.format("utf-8"), "PYTHONUTF8 changes nothing", "LC_ALL"),
        (TRACE.format("/t.py", "open(x).read()") + DECODE.format("gbk"), "Set PYTHONUTF8=1", "changes nothing"),
        # A file of the build's own tree, or of the system.
        (NINJA.format("third_party/sleef/libsleef.a"), "a path within this build", "apt install"),
        (NINJA.format("/usr/lib/x86_64-linux-gnu/libsleef.so"), "apt install libsleef-dev", "within this build"),
        ("/usr/bin/ld: cannot find third_party/sleef/libsleef.a: No such file or directory", "a path within this build", "apt install"),
        ("/usr/bin/ld: cannot find -lsleef: No such file or directory", "apt install libsleef-dev", "within this build"),
        # A proxy that refuses, or a server.
        (PROXY.format("407 Proxy Authentication Required"), "pip is told by: --proxy", "docker login"),
        (PROXY.format("403 Forbidden"), "A proxy does not let it through", "docker login"),
        ("Error: response status code 407 from upstream", "A proxy does not let it through", "docker login"),
        ("ERROR: HTTP error 403 while getting https://a.b/c.whl", "pip is told who asks", "A proxy does not"),
        # No wheel for this system, whatever the index and the Python.
        (UV.format("manylinux_2_17_x86_64", "`manylinux_2_28_aarch64`, `manylinux_2_28_x86_64`, `win_amd64`"), "glibc 2.17, and the wheels that there are want 2.28", "--index-url"),
        (UV.format("musllinux_1_2_x86_64", "`manylinux_2_28_x86_64`"), "musl (Alpine)", "--index-url"),
        (UV.format("manylinux_2_39_aarch64", "`manylinux_2_28_x86_64`"), "and this is manylinux_2_39_aarch64", "glibc is"),
        # What was installed for another CUDA, and what is being built.
        (PYG.format(*["torch_scatter"] * 2), "https://data.pyg.org/whl/", "let CUDA_HOME name it"),
        (PYG.format(*["mine"] * 2), "index that its README names", "pyg"),
        ("RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used", "let CUDA_HOME name it", "wheel"),
        # Headers that are missing; torchvision says in each build whether it is conda-build's.
        ("Running build on conda-build: False\n" + JPEG, "Run: sudo apt install libjpeg-dev", "version of libjpeg"),
        ("Running build on conda-build: True\n/opt/conda-bld/x\n" + JPEG, "Install the headers of libjpeg", "version of libjpeg"),
        # NCCL's own words, and what it was told to say.
        (NCCL.format("a [0] NCCL WARN Call to connect returned Connection refused\n"), "Call to connect returned Connection refused", "NCCL_DEBUG=INFO"),
        (NCCL.format(""), "NCCL_DEBUG is on", "NCCL_DEBUG=INFO"),
        (NCCL.format("").partition("\n")[2], "NCCL_DEBUG=INFO", "NCCL_DEBUG is on"),
        ("[0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied", "chmod 1777 /dev/shm", "chown"),
        # Memory is no disk.
        ("[0] NCCL WARN Error: failed to extend /dev/shm/nccl-W to 9 bytes, error: No space left on device (28)", "--shm-size", "let what is written lie elsewhere"),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", "--shm-size", "NCCL_SHM"),
        ("OSError: [Errno 28] No space left on device: '/scratch/a'", "df -h", "--shm-size"),
        # The generator that builds.
        (DEBUG.format("MSBuild version 17.8.5", "D:\\w\\a.vcxproj"), "cmake --build BUILD --config RelWithDebInfo", "CMAKE_BUILD_TYPE"),
        (DEBUG.format("[1/2] cl", "D:\\w"), "CMAKE_BUILD_TYPE=RelWithDebInfo", "--config"),
        # A source that does not know the processor.
        ("configure: error: cannot guess build type; you must specify one", "automake --print-libdir", "What it said itself"),
        # A name of Python's, with and without one of the C++ ABI beside it.
        ("/usr/bin/ld: m.o: undefined reference to `v(std::__cxx11::basic_string<char>)'\n/usr/bin/ld: m.o: undefined reference to `PyModule_Create2'", "_GLIBCXX_USE_CXX11_ABI", "embed"),
        ("/usr/bin/ld: m.o: undefined reference to `PyModule_Create2'", "--embed", "CXX11_ABI"),
        # The tools and package managers of the log's system.
        ("clang x.dylib\n/usr/include/a.h:1:10: note: x\n" + JPEG.replace("gcc", "x86_64-linux-gnu-gcc"), "sudo apt install libjpeg-dev", "brew"),
        ("-- Building for: Visual Studio 17 2022\nCMake Error at C.txt:3 (project):\n  No CMAKE_CXX_COMPILER could be found.\n-- Configuring incomplete, errors occurred!", "Load Visual Studio's compiler", "apt install"),
        ("fatal: unable to access 'https://a.b/': Could not resolve host: a.b\nC:\\src>x", "nslookup NAME", "getent"),
    ],
)  # fmt: skip
def test_a_fix_rests_on_what_the_log_shows(log: str, said: str, not_said: str) -> None:
    fix = elsewhere(log).fix
    assert said in fix
    assert not not_said or not_said not in fix


@each_case(
    ("log", "cause"),
    [
        (NINJA.format("third_party/sleef/libsleef.a"), "no step of this build makes it"),
        ('Traceback (most recent call last):\n  File "/v/lib/python3.11/site-packages/torch/__init__.py", line 1, in <module>\n    x\nImportError: libc10.so: cannot open shared object file: No such file or directory', "torch's own libc10.so is not found"),
    ],
)  # fmt: skip
def test_a_cause_says_no_more_than_that(log: str, cause: str) -> None:
    assert cause in elsewhere(log).cause


def test_a_library_of_torch_itself_has_one_cause() -> None:
    log = "ImportError: libc10.so: cannot open shared object file: No such file or directory"
    assert [each.id for each in read(log).diagnoses] == ["torch-not-loaded"]


@pytest.mark.parametrize("system", ["windows", "mac"])
def test_no_variable_is_named_twice(system: str) -> None:
    words = load_catalog().system_word
    for name in ("CPATH, INCLUDE", "LD_LIBRARY_PATH or PATH", "LIBRARY_PATH, LIB", "CPATH and INCLUDE"):
        told = translate(system, f"Take it out of {name}, and the rest.", words)
        assert len(set(names := told[15:].replace(" or ", ", ").replace(" and ", ", ").split(", "))) == len(
            names
        )


def test_visual_studio_generator_takes_no_compiler_of_a_variable() -> None:
    audience = Audience(msbuild=True)
    assert "-G Ninja" in add_done("Name it in CXX or CUDACXX.", audience)
    assert "-G Ninja" not in add_done("Name it in CXX or CUDACXX.", Audience())
    assert add_done("Set TORCH_CUDA_ARCH_LIST=8.6.", audience) == "Set TORCH_CUDA_ARCH_LIST=8.6."


def test_a_report_of_a_processor_is_no_failure() -> None:
    assert read(REPORT).status == "clean"
