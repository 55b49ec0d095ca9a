"""Whose script stops, whose library is missing, and who only tried: the answer is for the one that it is of."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

from tests.features.diagnosis.test_claims import elsewhere
from tests.support.for_each import each_case

SCRIPT = "/b/x-prefix/src/x-stamp/x-configure-.cmake"
STEP = f"CMake Error at {SCRIPT}:49 (message):\n  Command failed: 1\n\n   '/usr/bin/cmake' '-GNinja' '-S' '/s/sub' '-B' '/b/x'\n"
INSTALL = 'CMake Error at build/cmake_install.cmake:71 (file):\n  file INSTALL cannot find\n  "/s/build/{}":\n  No such file or directory.\n'
MADE = 'Traceback (most recent call last):\n  File "/u/pathlib.py", line 1116, in mkdir\n    os.mkdir(self, mode)\n'
PARENTS = (
    'Traceback (most recent call last):\n  File "/p/q.py", line 2, in f\n    q.mkdir(parents=True)\n'
    + MADE.partition("\n")[2]
)
CHAINED = "\nDuring handling of the above exception, another exception occurred:\n\n" + MADE
LACKS = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'ops'"
TRIED = "-- Checking for module 'mpi-c'\n--   Package 'mpi-c', required by 'virtual:world', not found\nCMake Error at /usr/share/cmake-3.25/Modules/FindPackageHandleStandardArgs.cmake:290 (message):\n  Could NOT find MPI (missing: MPI_C_FOUND)\nCall Stack (most recent call first):\n  {}:9 (find_package_handle_standard_args)\n\n-- Configuring incomplete, errors occurred!"


@each_case(
    ("log", "said", "not_said"),
    [
        # A script that CMake has written for a step is not to be corrected.
        (STEP + "\n  See also\n\n    /b/x-prefix/src/x-stamp/x-configure-*.log\n", "Read /b/x-prefix/src/x-stamp/x-configure-*.log", "if() above"),
        (STEP.replace("'-GNinja' ", "'-GNinja' '-DA=" + "b" * 300 + "' ") + "\n  See also\n\n    /b/x.log\n", "Read /b/x.log", "if() above"),
        (STEP, "stands above this line", "if() above"),
        (STEP.replace(SCRIPT, "cmake/x.cmake"), "if() above", "has written"),
        (STEP.replace(SCRIPT, "/b/_deps/x-src/a.cmake"), "if() above", "has written"),
        (STEP.replace(SCRIPT, "/b/x-prefix/src/x/a.cmake"), "if() above", "has written"),
        (STEP.replace(SCRIPT, "/b/_deps/x-subbuild/x-populate-prefix/tmp/x-gitclone.cmake"), "stands above this line", "if() above"),
        (STEP.replace("failed: 1", "failed: No such file or directory").replace("/usr/bin/cmake", "zork"), "zork", "has written"),
        # A library that another's release brings is copied, and not made, by a build.
        (INSTALL.format("lib/libnvrtc-builtins.so.13.0"), "take it out of the install() rule", "--target NAME"),
        (INSTALL.format("lib/libcudart.so.12"), "take it out of the install() rule", "--target NAME"),
        (INSTALL.format("lib/libmine.so"), "cmake --build BUILD --target NAME", "find /"),
        (INSTALL.format("lib/libtorch_cpu.so"), "cmake --build BUILD first", "find /"),
        # GCC declares a function of an instruction set only where its flag is given.
        ("h.cpp:2:22: error: '__builtin_ia32_crc32di' was not declared in this scope; did you mean 'x'?", "-mavx2", "Take a newer compiler ("),
        ("h.c:2:22: error: '__builtin_ia32_crc32di' undeclared (first use in this function)", "-mavx2", "Take a newer compiler ("),
        ("h.c:2:22: error: '__builtin_ia32_crc32di' needs isa option -msse4.2", "-msse4.2", "Take a newer compiler ("),
        ("h.cpp:2:22: error: '__builtin_addcll' was not declared in this scope", "Take a newer compiler (", "-mavx2"),
        # A library of one's own may only lack the other in its link; an installed one has it there.
        ("ImportError: /p/_C.so: undefined symbol: cublasLtMatmulX", "Where -lcublasLt is not among them", "pip check"),
        ("ImportError: /p/_C.so: undefined symbol: cublasFoo", "Where -lcublas is not among them", "pip check"),
        ("ImportError: ./_C.so: undefined symbol: cublasLtMatmulX", "readelf -d ./_C.so", "pip check"),
        ("ImportError: build/lib/_C.so: undefined symbol: cublasLtMatmulX", "readelf -d build/lib/_C.so", "pip check"),
        ("ImportError: /s/cuda_ext/_C.so: undefined symbol: cublasLtMatmulX", "readelf -d /s/cuda_ext/_C.so", "pip check"),
        ("ImportError: /usr/local/cuda/lib64/libcublas.so.12: undefined symbol: cublasLtMatmulX", "pip check", "readelf"),
        ("ImportError: /e/torch/lib/libtorch_cuda.so: undefined symbol: cublasLtMatmulX", "pip check", "readelf"),
        ("ImportError: /e/site-packages/torch/lib/libx.so: undefined symbol: cublasLtMatmulX", "pip check", "readelf"),
        # A folder that is made with all above it, and cannot be.
        (PARENTS + "FileNotFoundError: [Errno 2] No such file or directory: 'build/.x/y'\n" + CHAINED + "FileNotFoundError: [Errno 2] No such file or directory: 'build/.x'", "ls -ld build tells", "git status"),
        (PARENTS.replace("parents=True", "exist_ok=True") + "FileNotFoundError: [Errno 2] No such file or directory: 'build/x'", "Where a step before it makes", "ls -ld build"),
        # What stands before a compiler may fail at something else than its server.
        ("sccache: encountered fatal error\nsccache: error: Failed to parse included file path", "another release of it", "unset SCCACHE_BUCKET"),
        ("sccache: error: failed to connect to the server", "unset SCCACHE_BUCKET", "another release"),
        # A module whose file is for one Python is not found by another.
        ("ops.cpython-311-x86_64-linux-gnu.so\n" + LACKS, "for CPython 3.11", "No package"),
        ("copying build\\ops.cp312-win_amd64.pyd -> .\n" + LACKS, "for CPython 3.12", "No package"),
        ("opsx.cpython-311-x86_64-linux-gnu.so\n" + LACKS, "No package", "CPython 3.11"),
        # CMake's own module asks pkg-config as one of several ways; a project's own may know no other.
        (TRIED.format("/usr/share/cmake-3.25/Modules/FindMPI.cmake"), "libopenmpi-dev", "mpi-c.pc"),
        (TRIED.format("/v/data/share/cmake-4.4/Modules/FindMPI.cmake"), "libopenmpi-dev", "mpi-c.pc"),
        (TRIED.format("cmake/Modules/FindMPI.cmake"), "mpi-c.pc", "libopenmpi-dev"),
    ],
)  # fmt: skip
def test_the_answer_is_for_the_one_that_it_is_of(log: str, said: str, not_said: str) -> None:
    told = elsewhere(log)
    assert said in told.fix
    assert not_said not in told.fix
