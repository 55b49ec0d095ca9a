"""What was said before the error, or in its subject, decides between fixes; both sides of each."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis.audience import Audience
from torchbuild_tasks.features.diagnosis.python import list_wants
from torchbuild_tasks.features.diagnosis.wording import add_done

TRACE = 'Traceback (most recent call last):\n  File "{}", line 2, in f\n    x\n'
STORE = "torch.distributed.DistNetworkError: The client socket has timed out after 5000ms while trying to connect to (node-a, 29500)."
GAI = "[W1 socket.cpp:764] [c10d] The IPv6 network addresses of (node-a, 29500) cannot be retrieved (gai error: -2 - Name or service not known).\n"
MSVC = "{}a.obj : error LNK2019: unresolved external symbol foo referenced in function main\na.dll : fatal error LNK1120: 1 unresolved externals"
X64 = "C:\\p\\torch_python.lib : warning LNK4272: library machine type 'x64' conflicts with target machine type 'x86'\n"
UNBUILT = "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n    PyTorch 2.0.1+cu118 with CUDA 1108 (you have 2.2.0+cu121)\n"
AO = "W1 Skipping import of cpp extensions due to incompatible torch version 2.7.0+cu126 for torchao version 0.15.0\n"
RAISED = TRACE.format("/v/lib/python3.10/site-packages/{}/ops.py") + "NotImplementedError: No operator found"
FETCH = "{}" + TRACE.format("/tmp/x/client.py") + "httpx.ConnectError: [Errno -2] Name or service not known"
CUDNN = (
    TRACE.format("/v/torch/__init__.py")
    + "OSError: libcudnn.so.8: cannot open shared object file: No such file or directory"
)
CALL = TRACE.format("{}") + "TypeError: {}() got an unexpected keyword argument '{}'"
BACK_END = "/tmp/pip-build-env-a/overlay/lib/python3.11/site-packages/setuptools/build_meta.py"
PYTHON = "CMake Error at /usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:230 (message):\n  Could NOT find Python (missing: Python_EXECUTABLE {}\n  Interpreter Development.Module) {}\n\nCall Stack (most recent call first):\n-- Configuring incomplete, errors occurred!"
HEADER = 'm.c:1:10: fatal error: {0}: No such file or directory\n    1 | #include "{0}"\n      |          ^~~\ncompilation terminated.'
TREE = """The following packages are incompatible
├─ pytorch-cuda ==12.1 ha16_5 is requested and can be installed;
└─ torchaudio 2.0.2  is not installable because there are no viable options
   ├─ torchaudio 2.0.2 would require
   │  └─ pytorch-cuda 11.7.* , which conflicts with any installable versions previously reported;
   └─ torchaudio 2.0.2 would require
      └─ pytorch-cuda 11.8.* , which conflicts with any installable versions previously reported."""


@each_case(
    ("log", "said", "not_said"),
    [
        # A store that was not reached is no matter of NCCL; its name is not known, or it is.
        (GAI + TRACE.format("t.py") + STORE, "getent hosts node-a", "NCCL_DEBUG"),
        (TRACE.format("t.py") + STORE, "before any GPU or NCCL", "NCCL_DEBUG"),
        (TRACE.format("t.py") + "torch.distributed.DistNetworkError: The server socket has failed to listen. port: 29500, EADDRINUSE, address already in use", "another port", "before any GPU"),
        # The libraries are for another processor than the linker links for.
        (MSVC.format(X64), "x64 Native Tools", "grep -rn"),
        (MSVC.format(X64.replace("library machine type", "Bibliothekcomputertyp").replace("conflicts with target machine type", "steht in Konflikt mit dem Zielcomputertyp")), "x64 Native Tools", "grep -rn"),
        (MSVC.format(X64.replace("x64", "arm").replace("x86", "x64")), "dumpbin /headers", "grep -rn"),
        (MSVC.format(""), "findstr /s /n for its name", "Native Tools"),
        # A package that warned of its compiled part, and one that is another.
        (UNBUILT + RAISED.format("xformers"), "built for torch 2.0.1+cu118, and 2.2.0+cu121 is here", "It is raised at"),
        (AO + RAISED.format("torchao"), "for this torch", "It is raised at"),
        (UNBUILT + RAISED.format("other"), "It is raised at", "2.2.0"),
        # A tool is only fetched where none was found.
        (FETCH.format("Rust not found, installing into a temporary directory\n"), "install rustc cargo", "getent"),
        (FETCH.format("Rust not found, but it is not needed\n"), "getent", "rustc"),
        # A Jetson takes no wheels for servers.
        ("u@tegra-ubuntu:~$ python3 t.py\n" + CUDNN, "another JetPack", "pip install"),
        ("pip install torch-2.1.0a0+4.nv23.06-cp38-cp38-linux_aarch64.whl\n" + CUDNN, "another JetPack", "pip install"),
        (CUDNN, "nvidia-cudnn-cu12", "JetPack"),
        # What a build script asks of its build environment, and a program of another.
        (CALL.format(BACK_END, "new_compiler", "dry_run"), "setuptools<81", "its pyproject.toml pins"),
        (CALL.format(BACK_END, "other", "x"), "PIP_CONSTRAINT", "their packages do not fit"),
        (CALL.format("/v/lib/python3.11/site-packages/a/b.py", "other", "x"), "their packages do not fit", "PIP_CONSTRAINT"),
        # CMake asks for a version of Python, or found one without headers.
        (PYTHON.format("Python_INCLUDE_DIRS", '(Required is at least version "3.12")'), "uv python install 3.12", "Install the development files"),
        (PYTHON.format("x", '(Required is version range "3.10...<3.13")'), "python3.10-dev", "Install the development files"),
        (PYTHON.format("Python_INCLUDE_DIRS", ""), "Install the development files", "uv python install"),
        # Headers that Python itself no longer has, and one that it has.
        (HEADER.format("longintrepr.h"), "up to 3.10", "python3-dev"),
        (HEADER.format("node.h"), "up to 3.9", "python3-dev"),
        (HEADER.format("Python.h"), "python3-dev", "up to 3"),
        # A file of the build, a program of a release, and one that can be installed.
        ("/bin/sh: 1: ./gen.sh: not found\nmake: *** [Makefile:3: v.h] Error 127", "dos2unix ./gen.sh", "apt"),
        ("/bin/sh: 1: /home/u/src/autogen.sh: not found", "dos2unix", "CXX"),
        ("make: tools/gen.py: No such file or directory\nmake: *** [Makefile:3: v.h] Error 127", "dos2unix", "apt"),
        ("/bin/sh: 1: /opt/x/bin/cc: not found", "Find what names /opt/x/bin/cc", "dos2unix"),
        ("sh: 1: protoc-3.13: not found", "that very name", "install protobuf-compiler"),
        ("sh: 1: clang-17: not found", "that very name", "install clang"),
        ("sh: 1: aclocal-1.16: not found", "autoreconf -fi", "ln -s"),
        ("sh: 1: protoc: not found", "protobuf-compiler", "that very name"),
        ("'tools\\gen.bat' is not recognized as an internal or external command,\noperable program or batch file.", "dir tools\\gen.bat", "PATH"),
        ("bash: line 1: python3.9: command not found", "uv python install 3.9", "apt-file"),
    ],
)  # fmt: skip
def test_what_was_said_before_decides(log: str, said: str, not_said: str) -> None:
    fix = elsewhere(log).fix
    assert said in fix
    assert not_said not in fix


def test_a_package_that_warned_has_a_cause() -> None:
    reading = read(UNBUILT + RAISED.format("xformers"))
    assert (reading.status, reading.kind) == ("diagnosed", "not-loaded")


def test_a_package_is_missing_in_a_version() -> None:
    least = '(Required is at least version "3.20")'
    log = PYTHON.replace(
        "Python (missing: Python_EXECUTABLE", "Protobuf (missing: Protobuf_LIBRARIES"
    ).format("x", least)
    assert f"Protobuf {least.lower()}." in elsewhere(log).cause
    assert "does not find Protobuf." in elsewhere(log.replace(least, "")).cause


def test_a_library_for_another_processor_may_not_be_needed() -> None:
    assert read(f"[1/2] link a\n{X64}[2/2] link b\nSuccessfully installed a-1.0").status == "clean"
    other = read(f"[1/2] link a\n{X64}[2/2] cl b\nb.cpp(3): error C2065: 'foo': undeclared identifier")
    assert "C2065" in other.error_line


def test_the_tree_of_a_solver_names_who_wants_what() -> None:
    wants = "torchaudio 2.0.2 wants pytorch-cuda 11.7.* or pytorch-cuda 11.8.*"
    assert list_wants(TREE) == ("pytorch-cuda ==12.1 is asked for", wants)
    above = "LibMambaUnsatisfiableError: Encountered problems while solving:\n  - package x requires y\n\nCould not solve for environment specs\n"
    assert wants in read(above + TREE).diagnoses[0].cause


def test_wheels_for_servers_are_told_of_on_a_jetson() -> None:
    fix = "python -m pip install nvidia-nccl-cu12 brings it."
    assert "JetPack" in add_done(fix, Audience(said={"jetson": "Jetson"}))
    assert add_done(fix, Audience()) == fix
    assert "JetPack" not in add_done("Begin anew.", Audience(said={"jetson": "Jetson"}))
