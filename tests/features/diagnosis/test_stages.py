"""In which stage a log is decides the fix: a link or a load, writing or running, an image, a package's test."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case
from torchbuild_tasks.text.redaction import Redactor

NODRIVER = "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory"
NVCC = """CMake Error at CMakeLists.txt:16 (project):
  Compiling the CUDA compiler identification source file
  "CMakeCUDACompilerId.cu" failed.

  The output was:

  {}
"""


@each_case(
    ("log", "row", "said", "unsaid"),
    [
        # The same words of a linker and of the loader.
        ("ld.lld: error: undefined symbol: __kmpc_fork_call", "kmpc-undefined", "OpenMP flag", ""),
        ("mold: error: undefined symbol: PyUnicode_FromString", "link-python-undefined", "-z,defs", "LD_LIBRARY_PATH"),
        ("ld.lld: error: undefined symbol: PyModule_Create2\n>>> referenced by m.cpp", "link-python-undefined", "-z,defs", "LD_LIBRARY_PATH"),
        ("ImportError: /v/x.so: undefined symbol: PyUnicode_FromString", "python-symbol", "for this Python", "-z,defs"),
        # What is wanted has the other kind of strings, also at load time.
        ("ImportError: /s/_ops.so: undefined symbol: _Z10version_ofRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE", "undefined-at-load", "_GLIBCXX_USE_CXX11_ABI=0", "grep -rn"),
        ("ImportError: /s/_ops.so: undefined symbol: _Z10version_ofi", "undefined-at-load", "grep -rn", "_GLIBCXX_USE_CXX11_ABI"),
        # A program that was just made is not run, and a file is not written.
        ("FAILED: t.h\ncd /s/b && /s/b/gen > t.h\n/bin/sh: 1: /s/b/gen: Permission denied", "permission", "noexec", "ls -ld"),
        ("/bin/sh: 1: cannot create /s/b/t.h: Permission denied", "permission", "ls -ld", "A shell was to run"),
        ("sh: 1: /usr/bin/zork: Permission denied", "permission", "chmod +x", "A shell was to run"),
        ("make: execvp: ./gen: Permission denied", "permission", "noexec", "chown -R"),
        ("zsh: permission denied: ./gen", "permission", "chmod +x ./gen", "chown -R"),
        ('Traceback (most recent call last):\n  File "/usr/lib/python3.11/subprocess.py", line 1950, in _execute_child\n    raise x\nPermissionError: [Errno 13] Permission denied: \'./gen\'', "permission", "chmod +x ./gen", "chown -R"),
        ("PermissionError: [Errno 13] Permission denied: '/s/b/x'", "permission", "chown -R", "chmod"),
        # A package's build does not see what is installed by hand.
        ("/nix/store/abc-python3\nAttributeError: _ARRAY_API not found", "numpy2", "named in nativeBuildInputs", ""),
        ("AttributeError: _ARRAY_API not found", "numpy2", "'numpy<2'", "is named in"),
        # What torch is built of, and what is built against a torch.
        ("/w/a.cpp:1:10: fatal error: torch/torch.h: No such file or directory\n 1 | #include <torch/torch.h>", "missing-header", "include_paths()", "build folder deleted"),
        ("FAILED: caffe2/CMakeFiles/torch_cpu.dir/a.cpp.o\n/pt/a.cpp:1:10: fatal error: torch/zork.h: No such file or directory", "missing-header", "its build folder deleted", "include_paths()"),
        # Whose library it is.
        ("ImportError: dlopen(/v/torch/_C.so, 0x0002): Library not loaded: @rpath/libomp.dylib\n  Reason: tried: '/opt/homebrew/opt/libomp/lib/libomp.dylib' (no such file)", "library-missing", "brew install libomp", "otool"),
        ("ImportError: dlopen(/v/torch/_C.so, 0x0002): Library not loaded: @rpath/libzork.dylib", "library-missing", "otool -L", "brew install"),
        # Whose disk it is.
        ("#12 [4/9] RUN pip install torch\nERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk-full", "docker system df", "TMPDIR"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk-full", "TMPDIR", "docker system df"),
        # A package that was built is tested without a driver.
        (f"/home/conda/feedstock_root/build_artifacts/x\n{NODRIVER}", "nvidia-driver-missing", "readelf -d", "--gpus all"),
        (NODRIVER, "nvidia-driver-missing", "--gpus all", "readelf"),
        # What CMake says of nvcc stands back where nvcc itself has spoken.
        (NVCC.format("nvcc fatal   : Could not set up the environment for Microsoft Visual Studio using 'C:/x/vcvars64.bat'"), "nvcc-vcvars", "Run that file alone", "CUDACXX"),
        (NVCC.format("zork"), "cuda-compiler-unknown", "CUDACXX", "Run that file alone"),
        # Who is asked for a package.
        ('meson.build:3:12: ERROR: Dependency "Torch" not found (tried cmake)', "torch-config", "--cmake-prefix-path", "Torch.pc"),
        ('meson.build:3:12: ERROR: Dependency "zork" not found (tried cmake)', "missing-package", "", "zork.pc"),
        ('meson.build:3:12: ERROR: Dependency "zork" not found, tried pkgconfig', "missing-package", "zork.pc", ""),
        # The name that a message is about, and not the message.
        ("a.cpp:33:27: error: invalid use of incomplete type ‘PyFrameObject’ {aka ‘struct _frame’}", "python-c-api", "up to 3.10", "newer source (a generated"),
        # Another program of the same name.
        ("/usr/bin/link: extra operand '/LTCG'\nTry '/usr/bin/link --help' for more information.\nerror: command 'C:\\\\Program Files\\\\Git\\\\usr\\\\bin\\\\link.exe' failed with exit status 1", "gnu-link", "where link", ""),
        ("/dev/fd/3: line 35: cuobjdump: command not found", "missing-tool", "CUDA_HOME", ""),
    ],
)  # fmt: skip
def test_the_stage_decides(log: str, row: str, said: str, unsaid: str) -> None:
    told = read(log).diagnoses
    assert told[0].id == row
    assert said in told[0].fix
    assert not unsaid or unsaid not in told[0].fix


def test_what_a_cache_counts_is_no_error() -> None:
    counts = "[2/2] Linking a\n+ sccache --show-stats\nCompilation failures                  6\nCache errors (C/C++)                  2\nCompilation failed:      12 /   40 (30.0%)\n"
    assert read(f"{counts}+ exit 0").status == "clean"
    assert read("Compilation failed for zork\n").status == "unknown"


def test_our_own_advice_is_no_secret_that_is_learnt() -> None:
    redactor = Redactor({}, people=False)
    advice = "It has no login (SCCACHE_S3_NO_CREDENTIALS=1 for a public bucket), or no network. Unset that variable."
    redactor.learn({"fix": advice, "argv": ["--set", "API_TOKEN=s3cr3t-of-mine"]})
    assert redactor.text(advice) == advice
    assert "s3cr3t-of-mine" not in redactor.text("curl -H s3cr3t-of-mine")
