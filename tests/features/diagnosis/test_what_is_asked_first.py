"""What decides before a command is told: who asks a server, what its package had warned of, which line is first."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.diagnosis import read
from tests.support.for_each import each_case
from torchbuild_tasks.features.diagnosis import patterns

TRACE = 'Traceback (most recent call last):\n  File "/v/lib/python3.10/site-packages/{}/ops.py", line 2, in f\n    x\n'
WARNS = "/v/lib/python3.10/site-packages/{}/io.py:13: UserWarning: {}\n  warn(\n"
LACKS = "Failed to load its library: /v/x.so: undefined symbol: _Zfoo"
OTHER = "HTTP Error 403: {}"
SYMBOL = "AttributeError: /v/lib/python3.10/site-packages/{}/libx.so: undefined symbol: cfoo"


@each_case(
    ("log", "said", "not_said"),
    [
        # Each program is told of a login in its own words, and of no other's.
        ("E: Failed to fetch http://m.lan/a.deb  403  Forbidden [IP: 10.0.0.5 80]", "/etc/apt/auth.conf.d", "docker login"),
        ("curl: (22) The requested URL returned error: 403", "-u USER:TOKEN", "git"),
        ("2026-05-02 10:11:13 ERROR 403: Forbidden.", "--ask-password", "git"),
        ("CondaHTTPError: HTTP 403 FORBIDDEN for url <https://conda.anaconda.org/x/linux-64/repodata.json>", "the channel's address", "docker"),
        ("Errors during downloading metadata for repository 'cuda':\n  - Status code: 403 for https://d.com/repomd.xml (IP: 1.2.3.4)\nError: Failed to download metadata for repo 'cuda'", "/etc/yum.repos.d", "proxy="),
        (TRACE.format("torch/hub").replace("ops.py", "x.py").replace("/torch/hub/x.py", "/torch/hub.py") + "urllib.error.HTTPError: HTTP Error 403: rate limit exceeded", "GITHUB_TOKEN=TOKEN", "browser"),
        (TRACE.format("a") + "urllib.error.HTTPError: " + OTHER.format("Forbidden"), "urllib wants a header", "GITHUB_TOKEN"),
        (TRACE.format("huggingface_hub") + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/a/b", "hf auth login", "withdrawn"),
        ("Error: refused, status code: 403", "withdrawn", "docker login"),
        # What a package had warned of counts where the error is raised in it, and has no cause of its own.
        (WARNS.format("vis", LACKS) + TRACE.format("vis") + "AttributeError: no attribute 'read'", "install its release for this one", "It is raised at"),
        (WARNS.format("vis", LACKS) + TRACE.format("other") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", "it is slow here") + TRACE.format("vis") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", LACKS).replace("UserWarning", "DeprecationWarning") + TRACE.format("vis") + "AttributeError: no attribute 'read'", "It is raised at", "its release"),
        (WARNS.format("vis", LACKS) + TRACE.format("vis") + "OSError: [Errno 28] No space left on device", "df -h", "its release"),
        ("WARNING:root:vis: could not load its kernels\n" + TRACE.format("vis") + "AttributeError: no attribute 'read'", "to be mended first", "It is raised at"),
        (WARNS.format("bnb", "bnb was compiled without GPU support.") + TRACE.format("bnb") + SYMBOL.format("bnb"), "built without that part", "grep -rn"),
        (WARNS.format("bnb", "bnb was compiled without GPU support.") + TRACE.format("bnb") + SYMBOL.format("other"), "grep -rn", "built without that part"),
        # What nvidia-smi said before is why there is no GPU.
        ("Failed to initialize NVML: Driver/library version mismatch\n" + TRACE.format("torch/cuda") + "RuntimeError: No CUDA GPUs are available", "rmmod nvidia_uvm", "--gpus all"),
        # The first line's own cause goes before a row for what follows from it.
        ('Lmod has detected the following error:  The following module(s) are unknown: "CUDA/12.1.1"\n./b.sh: line 9: nvcc: command not found', "module spider", "Install a CUDA toolkit"),
        ("./b.sh: line 9: nvcc: command not found", "Install a CUDA toolkit", "module spider"),
        # A Python of some release is no package of the system's; a program's own words name it.
        ("/usr/bin/env: 'python3.9': No such file or directory", "uv python install 3.9", "apt-file"),
        ("  The pkg-config command could not be found.", "pkg-config", "grep"),
        ("ERROR: JAVA_HOME is set to an invalid directory: /usr/lib/jvm/x", "let JAVA_HOME name the one that is here", "apt"),
        # An installed torch is no checkout.
        (TRACE.format("torch") + "ModuleNotFoundError: No module named 'torch.version'", "not whole", "leave the checkout"),
        (TRACE.format("torch").replace("/v/lib/python3.10/site-packages", "/src") + "ModuleNotFoundError: No module named 'torch.version'", "leave the checkout", "~orch"),
        # Gloo is no NCCL.
        (TRACE.format("torch/distributed") + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.0.4]:31200", "each other rank", "NCCL_DEBUG"),
    ],
)  # fmt: skip
def test_asks_before_it_advises(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix


CURAND = (
    TRACE.format("torch").replace("ops.py", "__init__.py")
    + "OSError: libcurand.so.10: cannot open shared object file: No such file or directory"
)
LOCKED = "error: Distribution `torch==2.5.1 @ registry+https://{}` can't be installed because it doesn't have a source distribution or wheel for the current platform\n\nhint: You're on Windows (`win_amd64`), but `torch` (v2.5.1) only has wheels for the following platform: `linux_aarch64`"
COMPILER = "CMake Error at CMakeLists.txt:4 (project):\n  The CMAKE_CXX_COMPILER:\n\n    {}\n\n  is not a full path to an existing compiler tool.\n\n-- Configuring incomplete, errors occurred!"
GLIBCXX = "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.26' not found (required by /w/{}/libtorch_python.so)"
LOADED = "ImportError: /v/lib/{}: undefined symbol: _ZN4sycl3_V17handler3setEb"
TARGET = '{}CMake Error at CMakeLists.txt:30 (target_link_libraries):\n  Target "app" links to:\n\n    Boost::filesystem\n\n  but the target was not found.\n\n-- Generating done\nCMake Generate step failed.  Build files cannot be regenerated correctly.'
DENIED = "PermissionError: [Errno 13] Permission denied: '{}'"
DEEP = (
    "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: 'C:\\\\{}\\\\"
    + "a" * 250
    + "\\\\b.cpp'"
)
LIBTORCH = "{}CMake Error at CMakeLists.txt:87 (find_library):\n  Could not find c10_FILE using the following names: c10\n\n-- Configuring incomplete, errors occurred!"
RUST = "{}      running build_rust\n      error: can't find Rust compiler"


@each_case(
    ("log", "said", "not_said"),
    [
        # The libraries of a Jetson's container are the host's.
        ("Status: Downloaded newer image for d/ros:noetic-pytorch-l4t-r32.5.0\n" + CURAND, "--runtime nvidia", "pip check"),
        (CURAND, "pip check", "--runtime nvidia"),
        # A lock that names no build of torch's index, and an index without builds.
        (LOCKED.format("download.pytorch.org/whl/cu124"), "torch==2.5.1+cu124", "another machine"),
        (LOCKED.format("pypi.org/simple"), "another machine", "+cu"),
        # Ninja is not told to take Ninja.
        ("ninja: fatal: posix_spawn: Argument list too long", "CMAKE_NINJA_FORCE_RESPONSE_FILE=ON", "use Ninja"),
        ("/bin/sh: 1: g++: Argument list too long", "use Ninja", "FORCE_RESPONSE"),
        # A whole path is not looked for in PATH; a Python of the store is one by its folder.
        (COMPILER.format("/opt/x/g++"), "ls -l /opt/x/g++", "command -v /opt/x"),
        (COMPILER.format("g++-99"), "command -v g++-99", "ls -l g++"),
        (DEEP.format("Temp"), "TMP=C:\\t", "Store"),
        (DEEP.format("PythonSoftwareFoundation.Python.3.11"), "Store", "TMP=C:\\t"),
        # What was built by a compiler of Spack takes nothing from conda, what a maker gives out is not built again.
        (GLIBCXX.format("spack/opt/spack/torch"), "spack load gcc", "conda install"),
        (GLIBCXX.format("miniconda3/envs/a"), "conda install", "spack"),
        (LOADED.format("libmkl_sycl_blas.so.4"), "nothing is to be compiled again", "Build again"),
        (LOADED.format("libown.so"), "build it again", "its maker"),
        # A part of a package that CMake has found.
        (TARGET.format("-- Found Boost: /usr/lib/cmake/Boost (found version 1.74)\n"), "COMPONENTS", "apt install"),
        (TARGET.format("-- Found BoostX: /usr/lib\n"), "apt install", "COMPONENTS"),
        # A folder at the root of the file system is wanted for one's home.
        (DENIED.format("/.triton"), "HOME=/tmp", "chown -R"),
        (DENIED.format("/opt/.triton"), "chown -R", "HOME=/tmp"),
        # An architecture is told as it is written there.
        ("CMake Error at cmake/Cuda.cmake:12 (message):\n  Unknown CUDA Architecture Name sm_120 in TORCH_CUDA_ARCH_LIST\n\n-- Configuring incomplete, errors occurred!", "12.0 for sm_120", "'8.0;8.6+PTX'"),
        # Torch's own libraries, for a build of its Python part and for another project.
        (LIBTORCH.format("$ cmake -GNinja -S . -B build -DBUILD_LIBTORCHLESS=ON\n"), "LIBTORCH_LIB_PATH", "cmake_prefix_path"),
        (LIBTORCH.format("-- Found Python\n"), "e.library_paths()", "LIBTORCH_LIB_PATH"),
        ("ld.lld: error: undefined symbol: c10::Err::throw_it()\n>>> referenced by m.cpp", "-lc10", "is installed or unpacked where"),
        # Only a package without a wheel asks for Rust.
        (RUST.format("  Building wheel for tokenizers (pyproject.toml): started\n"), "--only-binary :all: tokenizers", "put its folder"),
        (RUST.format(""), "rustc", "--only-binary"),
        # Who asks for CUDA's library is not torch, where no torch is in the log.
        (TRACE.format("tensorflow") + "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory", "tensorflow[and-cuda]", "import torch"),
        # Words of the old solver of conda, of libsolv and of a library of Rust.
        ("  - package cudatoolkit-11.0.3-h15472ef_6 has constraint __cuda >=11.0 conflicting with __cuda-10.2-0".join(("Encountered problems while solving:\n", "")), "CONDA_OVERRIDE_CUDA", "named in one command"),
        ("thread 'main' panicked at 'called `Result::unwrap()` on an `Err` value: Error { description: \"Server returned nothing (no headers, no data)\", code: 52 }', /c/torch-sys-0.1.7/build.rs:117:13", "named in LIBTORCH", "look up"),
        ("  Cannot find a libtorch install, you can either:", "LIBTORCH_USE_PYTORCH=1", "apt"),
        ("CUDA SETUP: Required library version not found: libbitsandbytes_cuda100.so. Maybe you need to compile it from source?", "CUDA 11.8 or newer", "124 for 12.4"),
        ("CUDA SETUP: Required library version not found: libbitsandbytes_cuda121.so. Maybe you need to compile it from source?", "124 for 12.4", "11.8 or newer"),
        ("D:\\v\\torch\\include\\torch/torch.h(7): fatal error C1021: invalid preprocessor command 'warning'", "torch/extension.h", "message("),
        ("D:\\w\\a.h(7): fatal error C1021: invalid preprocessor command 'warning'", "#pragma message", "torch/extension.h"),
        # An exception of C++ tells its reason itself; one of .NET is no crash.
        ("terminate called after throwing an instance of 'c10::Error'\n  what():  open file failed because of errno 2 on fopen: No such file or directory, file path: ./m.pt\nAborted (core dumped)", "the path is wrong", "gdb"),
        ("terminate called after throwing an instance of 'X'\n  what():  odd\nAborted (core dumped)", "catch throw", "ldd"),
        ("Unhandled exception. System.TypeInitializationException: The type initializer for 'TorchSharp.torch' threw an exception.", "dotnet add package", "gdb"),
        # Builds that no PyPI has, and what a channel no longer gets.
        ("ERROR: Could not find a version that satisfies the requirement torch-scatter==2.1.2+pt21cu121 (from versions: 2.0.9, 2.1.2)\nERROR: No matching distribution found for torch-scatter==2.1.2+pt21cu121", "data.pyg.org", "take one of these"),
        ("PackagesNotFoundError: The following packages are not available from current channels:\n\n  - pytorch-cuda=12.6\n", "conda-forge pytorch-gpu", "look at the name"),
        ("PackagesNotFoundError: The following packages are not available from current channels:\n\n  - pytorch-cuda=12.1\n", "look at the name", "pytorch-gpu"),
        # What is installed is not told as if it were not; a cache is emptied by who has it.
        ("Requirement already satisfied: pyyaml in /v/lib/python3.11/site-packages (6.0.2)\n" + TRACE.format("a") + "ModuleNotFoundError: No module named 'yaml'", "another Python runs", "apt"),
        (TRACE.format("a") + "ModuleNotFoundError: No module named 'yaml'", "pip install", "another Python runs"),
        ("error: the archive of crates.io appears to be corrupted", "~/.cargo/registry/cache", "pip cache"),
        # A sysroot of one's own, an archive that is none, slots, steps.
        ("/c/bin/ld: cannot find /lib64/libpthread.so.0 inside /c/sysroot\ncollect2: error: ld returned 1 exit status", "take it out of -L", "git status"),
        ("  End-of-central-directory signature not found.  Either this file is not\n  a zipfile", "head -c 300", "submodule"),
        ("There are not enough slots available in the system to satisfy the 8", "OVERSUBSCRIBE", "squeue"),
        ("srun: error: Unable to create step for job 8: More processors requested than permitted", "--overlap", "sinfo"),
    ],
)  # fmt: skip
def test_names_what_the_log_shows_of_the_place(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix


def test_conflict_that_conda_lists_is_no_package_that_uv_installed() -> None:
    text = "UnsatisfiableError: The following specifications were found\nto be incompatible with the existing python installation:\n\nSpecifications:\n\n  - torchaudio==2.4.0 -> python[version='>=3.7']\n\nYour python: python==3.10.9\n"
    assert (read(text).line_number, read(text).kind) == (1, "package-conflict")
    assert patterns.ends("+ torch==2.0.1 (from file:///w)")
    assert not patterns.ends("- torchaudio==2.4.0 -> python[version='>=3.7']")


def test_repository_refused_by_all_mirrors_names_the_answer() -> None:
    reading = read(
        "Errors during downloading metadata for repository 'a':\n  - Curl error (28): Timeout was reached for"
        " https://d.com/repomd.xml [Connection timed out]\nError: Failed to download metadata for repo 'a'\n"
    )
    assert (reading.line_number, reading.kind) == (2, "network")
