"""Break small real builds in many ways and score the diagnosis: `nox -s diagnosis_score -- --break`.

Every case is a folder of files and a command that fails, run by the real programs of this machine. A third of
the cases (by a digest of their names) is held out: its score is printed, its misses only with --held.
"""

# ruff: noqa: E501  (sources in one line each)
from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.support.diagnosis import read
from torchbuild_tasks.model import Reading

_SECONDS: Final = 120
_PYTHON: Final = sys.executable
_MAKE: Final = "all: a.o\na.o: a.cpp\n\t{command}\n"
_NINJA: Final = "rule r\n  command = {command}\nbuild a.o: r a.cpp\n"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A build that fails: its files, its shell command, and the expected diagnosis.

    `line` is a regular expression for the line of the error; `kind` "" stands for a good build, and of
    several kinds each is right.
    """

    name: str
    command: str
    line: str
    kind: tuple[str, ...]
    component: str = ""
    files: Mapping[str, str] = {}
    needs: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        """Say whether its misses are not looked at."""
        return hashlib.sha256(self.name.encode()).digest()[0] % 3 == 0


HEADERS: Final = {
    "gloo/algorithm.h": "Gloo",
    "cudnn.h": "cuDNN",
    "onnx/onnx_pb.h": "ONNX",
    "ATen/ATen.h": "torch",
    "nccl.h": "NCCL",
    "mkl_vsl.h": "Intel's MKL",
    "cutlass/gemm.h": "CUTLASS",
    "rocblas/rocblas.h": "ROCm",
    "opencv2/core.hpp": "OpenCV",
    "sleef.h": "SLEEF",
    "fbgemm/Fbgemm.h": "FBGEMM",
    "cub/cub.cuh": "the CUDA toolkit's CCCL (Thrust, CUB, libcu++)",
    "tensorpipe/tensorpipe.h": "TensorPipe",
    "nobody/knows.h": "",
}
LIBRARIES: Final = {
    "openblas": "BLAS and LAPACK",
    "cudnn": "cuDNN",
    "mkl_core": "Intel's MKL",
    "cublasLt": "the CUDA toolkit's cuBLAS",
    "gloo": "Gloo",
    "magma": "MAGMA",
    "nobody_knows": "",
}
SYMBOLS: Final = {
    "namespace at { void empty(int); } int main() { at::empty(1); }": "torch",
    "namespace c10 { struct Error { Error(int); }; } int main() { c10::Error e(1); }": "torch",
    "namespace google { namespace protobuf { void Init(); } } int main() { google::protobuf::Init(); }": "protobuf",
    'extern "C" void cblas_sgemm(); int main() { cblas_sgemm(); }': "BLAS and LAPACK",
    'extern "C" void cublasCreate_v2(); int main() { cublasCreate_v2(); }': "the CUDA toolkit's cuBLAS",
    'extern "C" void ncclAllReduce(); int main() { ncclAllReduce(); }': "NCCL",
    'extern "C" void magma_init(); int main() { magma_init(); }': "MAGMA",
    'extern "C" void GOMP_parallel(); int main() { GOMP_parallel(); }': "OpenMP",
    'extern "C" void __kmpc_fork_call(); int main() { __kmpc_fork_call(); }': "Intel's OpenMP",
    "namespace fbgemm { int go(); } int main() { return fbgemm::go(); }": "FBGEMM",
    "namespace mine { int go(); } int main() { return mine::go(); }": "",
}
LINKERS: Final = {"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld", "mold": "mold"}
SOURCES: Final = {
    "undeclared": ("int f() { return nope; }", "nope", "compile-error", ""),
    "syntax": ("int f( {", "expected", "compile-error", ""),
    "std-member": (
        "#include <vector>\nint f() { return std::nope(1); }",
        "nope",
        "api-mismatch",
        "the C++ standard library",
    ),
    "torch-member": (
        "namespace at { struct Tensor {}; }\nint f(at::Tensor t) { return t.dims(); }",
        "dims",
        "api-mismatch",
        "torch",
    ),
    "need-17": (
        "#if __cplusplus < 202302L\n#error You need C++23 to compile PyTorch\n#endif",
        "C\\+\\+23",
        "language-standard",
        "",
    ),
    "cuda-name": (
        "int f() { return cudaDeviceSynchronize(); }",
        "cudaDevice",
        "api-mismatch",
        "the CUDA toolkit's runtime",
    ),
    "asm": ('void f() { asm("vzork %ymm0"); }', "vzork", "target-feature assembler", ""),
    "python-api": ("int f() { return PyUnicode_GET_SIZE(0); }", "PyUnicode", "python-c-api", ""),
}
OPTIONS: Final = {
    "-fzork": ("zork", "unknown-option"),
    "-std=c++99": ("c\\+\\+99", "unknown-option bad-value"),
    "-march=zork": ("zork", "bad-value"),
    "-Werror -Wall": ("unused", "warning-as-error"),
    "-fuse-ld=zork a.cpp -o a": ("zork", "unknown-option missing-tool bad-value"),
    "-mtune=zork": ("zork", "bad-value"),
    "-std=c++11 -DNEED": ("optional", "language-standard missing-header"),
    "-fno-zork": ("zork", "unknown-option"),
}
NVCC: Final = {
    "-arch=compute_30": ("compute_30", "unsupported-arch", ""),
    "-gencode arch=compute_999,code=sm_999": ("999", "unsupported-arch", ""),
    "-std=c++99": ("99", "bad-value", ""),
    "--zork": ("zork", "unknown-option", ""),
    "-ccbin /nowhere/g++": ("nowhere|g\\+\\+", "missing-tool host-compiler", ""),
    "-DUNDECLARED": ("nope", "compile-error", ""),
    "-DHEADER": ("cudnn.h", "missing-header", "cuDNN"),
    "-DASM": ("zork", "assembler", ""),
    "-Xcompiler -fzork": ("zork", "unknown-option", ""),
    "-Xptxas --zork": ("zork", "unknown-option", ""),
}
CUDA: Final = """__global__ void k() {
#ifdef UNDECLARED
  nope = 1;
#endif
#ifdef ASM
  asm("zork.u32 %r1;");
#endif
}
#ifdef HEADER
#include "cudnn.h"
#endif
"""
CMAKE: Final = {
    "package": ("find_package(Zork REQUIRED)", "CMakeLists.txt", "missing-package", ""),
    "package-cuda": ("find_package(cuDSS REQUIRED)", "CMakeLists.txt", "missing-package", "cuDSS"),
    "package-module": ("find_package(HDF5 REQUIRED)", "FindPackage|HDF5", "missing-package", "HDF5"),
    "subdirectory": ("add_subdirectory(third_party/gloo)", "CMakeLists.txt", "missing-source", "Gloo"),
    "source": ("add_library(x nowhere.cpp)", "CMakeLists.txt", "missing-source", ""),
    "command": ("zork_it()", "CMakeLists.txt", "cmake-script", ""),
    "parse": ("message(", "CMake", "cmake-script", ""),
    "include": ("include(cmake/zork.cmake)", "CMakeLists.txt", "missing-source", ""),
    "target": (
        "add_library(x a.cpp)\ntarget_link_libraries(x CUDA::cublas)",
        "CMakeLists.txt",
        "missing-package",
        "",
    ),
    "version": ("cmake_minimum_required(VERSION 9.1)", "CMakeLists.txt", "cmake-version", ""),
    "message": ('message(FATAL_ERROR "nobody likes it")', "CMakeLists.txt", "cmake-error", ""),
    "if": ("if(A STREQUAL)\nendif()", "CMakeLists.txt", "cmake-script", ""),
}
PYTHONS: Final = {
    "module": ("import yaml_zork", "yaml_zork", "missing-module", ""),
    "module-torchvision": ("import torchvision.zork", "torchvision", "missing-module", "torchvision"),
    "attribute": ("import os\nos.zork", "zork", "python-api", ""),
    "name": ("from os import zork", "zork", "python-api", ""),
    "syntax": ("def f(:\n  pass", "SyntaxError", "python-syntax", ""),
    "segv": (
        "import faulthandler, ctypes\nfaulthandler.enable()\nctypes.string_at(0)",
        "Segmentation|Fatal",
        "crash",
        "",
    ),
    "abort": ("import faulthandler, os\nfaulthandler.enable()\nos.abort()", "Aborted|Fatal", "crash", ""),
    "library": (
        "import ctypes\nctypes.CDLL('libcudnn.so.99')",
        "libcudnn",
        "missing-shared-library",
        "cuDNN",
    ),
    "not-elf": (
        "import ctypes\nopen('x.so','w').write('version https')\nctypes.CDLL('./x.so')",
        "x.so",
        "bad-object",
        "",
    ),
    "memory": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (10**8, 10**8))\nx = 'x' * 10**9",
        "MemoryError",
        "out-of-memory",
        "",
    ),
    "files": (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\nx = [open('a.py') for _ in range(9)]",
        "Too many",
        "too-many-files",
        "",
    ),
    "file": ("open('/nowhere/native_functions.yaml')", "native_functions", "missing-file", ""),
    "permission": ("open('/proc/version', 'w')", "ermission", "permission", ""),
    "keyword": ("def f(a): pass\nf(zork=1)", "zork", "python-api", ""),
    "interrupt": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nimport time\ntime.sleep(5)",
        "KeyboardInterrupt",
        "interrupted",
        "",
    ),
    "full": ("open('/dev/full', 'w').write('x' * 99999)", "No space", "disk-full", ""),
    "refused": (
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')",
        "refused",
        "network",
        "",
    ),
}
COMMANDS: Final = {
    "no-program": ("zork-compiler a.cpp", "zork-compiler", "missing-tool", ""),
    "not-executable": ("./a.cpp", "ermission", "permission", ""),
    "git-no-repository": ("git -c safe.directory=x -C / log", "not a git", "git-state", ""),
    "git-ref": ("git init -q . && git checkout v9.9", "v9.9", "git-state", ""),
    "git-patch": ("git init -q . && git apply a.patch", "patch", "patch-failed", ""),
    "patch": ("patch -p1 < a.patch", "FAILED", "patch-failed", ""),
    "git-clone": ("unshare -n git clone https://github.com/pytorch/gloo", "github.com", "network", ""),
    "curl": (
        "unshare -n curl -f https://download.pytorch.org/x",
        "download.pytorch.org|resolve",
        "network",
        "",
    ),
    "pip-network": (
        f"unshare -n {_PYTHON} -m pip download --retries 0 --timeout 3 --no-deps -i https://pypi.org/simple zork-none",
        "zork-none|resolve",
        "network package-not-found",
        "",
    ),
    "pip-none": (f"{_PYTHON} -m pip download --no-index zork-none", "zork-none", "package-not-found", ""),
    "pip-wheel": (
        f"{_PYTHON} -m pip install --no-deps ./x-1.0-cp39-cp39-win_amd64.whl",
        "whl",
        "wheel-platform",
        "",
    ),
    "pip-zip": (
        f"{_PYTHON} -m pip install --no-deps ./x-1.0-py3-none-any.whl",
        "whl|zip|Wheel",
        "damaged-download",
        "",
    ),
    "pip-toml": (
        f"{_PYTHON} -m pip install --no-deps --no-build-isolation ./toml",
        "toml|TOML|Invalid",
        "packaging-metadata",
        "",
    ),
    "pip-python": (
        f"{_PYTHON} -m pip install --no-deps --no-build-isolation ./old",
        "Python",
        "python-version",
        "",
    ),
    "object-text": ("g++ bad.o -o a", "bad.o", "bad-object", ""),
    "object-cut": ("g++ -c a.cpp && head -c 200 a.o > b.o && g++ b.o -o a", "b.o", "bad-object", ""),
    "archive-cut": (
        "g++ -c a.cpp && ar rc libx.a a.o && head -c 40 libx.a > liby.a && g++ a.o -L. -ly -o a",
        "liby.a|undefined|main",
        "bad-object undefined-symbol",
        "",
    ),
    "twice": (
        "g++ -c twice.cpp -o a.o && cp a.o b.o && g++ a.o b.o -o a",
        "multiple",
        "duplicate-symbol",
        "",
    ),
    "limit-file": ("ulimit -f 1; g++ -g -c big.cpp", "size|large|File", "file-size-limit", ""),
    "limit-memory": (
        "ulimit -v 60000; g++ -c big.cpp",
        "memory|allocat|Killed|exhausted|exec|shared",
        "out-of-memory missing-shared-library",
        "",
    ),
    "limit-time": ("ulimit -t 1; g++ -c slow.cpp", "time|CPU|Killed", "out-of-time killed", ""),
    "full": ("g++ ok.cpp -o /dev/full", "space", "disk-full", ""),
    "killed": ("make -f killed.mk", "Killed", "killed", ""),
    "cxx-nowhere": ("CXX=/nowhere/g++ cmake -G Ninja -S cmk -B b", "CXX|CMake", "no-compiler", ""),
    "generator": (
        "cmake -G Ninja -S cmk -B b >/dev/null; cmake -G 'Unix Makefiles' -S cmk -B b",
        "generator",
        "cmake-cache",
        "",
    ),
    "cmake-folder": ("cmake -S nowhere -B b", "nowhere", "missing-source", ""),
    "ninja-rule": ("ninja -f rule.ninja", "c.cpp", "missing-source", ""),
    "ninja-library": ("ninja -f library.ninja", "libpng", "missing-library", "libpng"),
    "ninja-cycle": ("ninja -f cycle.ninja", "cycle|root nodes", "build-graph", ""),
    "ninja-syntax": ("ninja -f syntax.ninja", "ninja", "build-graph", ""),
    "make-rule": ("make -f rule.mk", "No rule", "missing-source build-graph", ""),
    "make-separator": ("make -f separator.mk", "separator", "build-graph", ""),
    "loader": (
        "g++ -shared -fPIC ok.cpp -o libgloo.so && g++ ok.cpp -L. -Wl,--no-as-needed -lgloo -o a && ./a",
        "libgloo",
        "missing-shared-library",
        "Gloo",
    ),
    "pytest": (f"{_PYTHON} -m pytest -q -p no:cacheprovider test_it.py", "assert", "test-failure", ""),
    "unittest": (f"{_PYTHON} -m unittest test_unit", "Assertion|FAIL", "test-failure", ""),
    "assembler": ("as bad.s -o a.o", "zork", "target-feature assembler", ""),
}
FILES: Final = {
    "a.cpp": "int f() { int unused; return 1; }\n#ifdef NEED\n#include <optional>\nstd::optional<int> x;\n#endif\n",
    "ok.cpp": "int main() { return 0; }\n",
    "twice.cpp": "int twice() { return 1; }\nint main() { return twice(); }\n",
    "bad.o": "this is not an object\n",
    "bad.s": "\tzork %eax\n",
    "big.cpp": "#include <map>\n#include <string>\n#include <vector>\n#include <algorithm>\n"
    "std::map<std::string, std::vector<std::string>> f() { return {}; }\n",
    "slow.cpp": "constexpr unsigned f(unsigned n) { return n < 2 ? n : f(n - 1) + f(n - 2) + 1; }\n"
    "template <unsigned N> struct A { static constexpr unsigned v = f(N % 24); };\n"
    "template <unsigned N> struct B { static constexpr unsigned v = A<N>::v + B<N - 1>::v; };\n"
    "template <> struct B<0> { static constexpr unsigned v = 0; };\nunsigned x = B<800>::v;\n",
    "killed.mk": "all:\n\tsh -c 'kill -9 $$$$'\n",
    "rule.mk": "all: c.cpp\n\techo\n",
    "separator.mk": "all:\n    echo\n",
    "rule.ninja": "rule r\n  command = cp $in $out\nbuild a: r c.cpp\n",
    "library.ninja": "rule r\n  command = cp $in $out\nbuild a: r /usr/zork/libpng.so\n",
    "cycle.ninja": "rule r\n  command = cp $in $out\nbuild a: r b\nbuild b: r a\n",
    "syntax.ninja": "rule r\ncommand\n",
    "a.patch": "--- a/ok.cpp\n+++ b/ok.cpp\n@@ -1,2 +1,2 @@\n-int zork() { return 0; }\n"
    "+int mine() { return 0; }\n context\n",
    "x-1.0-cp39-cp39-win_amd64.whl": "no zip",
    "x-1.0-py3-none-any.whl": "no zip",
    "toml/pyproject.toml": "[project\nname=",
    "old/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "old"\nversion = "1"\nrequires-python = ">=9"\n',
    "cmk/CMakeLists.txt": "cmake_minimum_required(VERSION 3.18)\nproject(x CXX)\n",
    "test_it.py": "def test_it():\n    text = 'a.cpp:1:2: error: quoted'\n    assert text == 'no'\n",
    "test_unit.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 2)\n",
}


def cases() -> Iterator[Case]:
    """Yield every build that is broken, and good ones."""
    yield from _compiles()
    yield from _links()
    yield from _others()
    for front in ("plain", "make", "ninja"):
        yield _fronted("good", front, "g++ -c a.cpp", {"a.cpp": FILES["ok.cpp"]}, "", "")


def _fronted(
    name: str, front: str, command: str, files: Mapping[str, str], line: str, kind: str, component: str = ""
) -> Case:
    """Return a compile that is run as it is, by make or by Ninja."""
    scripts = {
        "plain": (command, {}, ()),
        "make": ("make", {"Makefile": _MAKE.format(command=command)}, ("make",)),
        "ninja": ("ninja", {"build.ninja": _NINJA.format(command=command)}, ("ninja",)),
    }
    run, more, needs = scripts[front]
    return Case(
        name=f"{front}: {name}",
        command=run,
        line=line,
        kind=tuple(kind.split()),
        component=component,
        files={**FILES, **files, **more},
        needs=(*needs, command.split()[0]),
    )


def _compiles() -> Iterator[Case]:
    for index, (header, component) in enumerate(HEADERS.items()):
        front = ("plain", "make", "ninja")[index % 3]
        files = {"a.cpp": f"#include <{header}>\n"}
        yield _fronted(
            f"header {header}", front, "g++ -c a.cpp", files, re.escape(header), "missing-header", component
        )
    for index, (name, (source, line, kind, component)) in enumerate(SOURCES.items()):
        front = ("ninja", "plain", "make")[index % 3]
        yield _fronted(f"source {name}", front, "g++ -c a.cpp", {"a.cpp": source}, line, kind, component)
    for index, (option, (line, kind)) in enumerate(OPTIONS.items()):
        front = ("make", "ninja", "plain")[index % 3]
        yield _fronted(
            f"option {option}",
            front,
            f"g++ -c {option} a.cpp" if "-o a" not in option else f"g++ {option}",
            {},
            line,
            kind,
        )
    for index, (option, (line, kind, component)) in enumerate(NVCC.items()):
        front = ("ninja", "make", "plain")[index % 3]
        yield _fronted(
            f"nvcc {option}", front, f"nvcc -c {option} k.cu", {"k.cu": CUDA}, line, kind, component
        )


def _links() -> Iterator[Case]:
    for index, (linker, program) in enumerate(LINKERS.items()):
        for at, (library, component) in enumerate(LIBRARIES.items()):
            front = ("plain", "make", "ninja")[(index + at) % 3]
            command = f"g++ -fuse-ld={linker} ok.cpp -o a.o -l{library}"
            case = _fronted(
                f"{linker} -l{library}", front, command, {}, library, "missing-library", component
            )
            yield msgspec.structs.replace(case, needs=(*case.needs, program))
        for at, (source, component) in enumerate(SYMBOLS.items()):
            front = ("ninja", "plain", "make")[(index + at) % 3]
            command = f"g++ -fuse-ld={linker} a.cpp -o a.o"
            called = (
                source.rpartition("{ ")[2].split("(")[0].removeprefix("return ").split("::")[-1].split()[0]
            )
            case = _fronted(
                f"{linker} {called}",
                front,
                command,
                {"a.cpp": source},
                "undefined",
                "undefined-symbol",
                component,
            )
            yield msgspec.structs.replace(case, needs=(*case.needs, program))


def _others() -> Iterator[Case]:
    for name, (text, line, kind, component) in CMAKE.items():
        head = "cmake_minimum_required(VERSION 3.18)\nproject(x CXX)\n"
        files = {**FILES, "CMakeLists.txt": f"{head}{text}\n"}
        yield Case(
            name=f"cmake: {name}", command="cmake -G Ninja -B b .", line=line, kind=tuple(kind.split()),
            component=component, files=files, needs=("cmake", "ninja"),
        )  # fmt: skip
    for name, (text, line, kind, component) in PYTHONS.items():
        yield Case(
            name=f"python: {name}", command=f"{_PYTHON} a.py", line=line, kind=tuple(kind.split()),
            component=component, files={"a.py": f"{text}\n"},
        )  # fmt: skip
    for name, (command, line, kind, component) in COMMANDS.items():
        needs = tuple(
            word for word in ("unshare", "curl", "patch", "git", "ninja", "cmake") if word in command
        )
        yield Case(
            name=f"command: {name}", command=command, line=line, kind=tuple(kind.split()),
            component=component, files=FILES, needs=needs,
        )  # fmt: skip


def run(case: Case) -> tuple[int, str]:
    """Return the exit status of a case and what it says, in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in case.files.items():
            path = Path(scratch, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        env = {**os.environ, "LC_ALL": "C.UTF-8", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        argv = ["bash", "-c", case.command]
        done = subprocess.run(
            argv,
            cwd=scratch,
            env=env,
            timeout=_SECONDS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout.decode(errors="replace")


def misses(case: Case, reading: Reading) -> list[str]:
    """Say what of line, kind and component is not right."""
    if not case.kind:
        return [] if reading.status == "clean" else ["line", "kind"]
    wrong = {
        "line": re.search(case.line, reading.error_line) is None,
        "kind": reading.kind not in case.kind,
        "component": bool(case.component) and reading.component != case.component,
    }
    return [name for name, is_wrong in wrong.items() if is_wrong]


def main(*, held_too: bool = False) -> None:
    """Run all cases that this machine has the programs for, and print the score by kind."""
    counts: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    kinds: dict[str, Counter[str]] = {}
    for case in cases():
        if not all(shutil.which(program) for program in case.needs):
            continue
        status, said = run(case)
        if (status != 0) != bool(case.kind):  # this machine has what the case takes away
            continue
        reading = read(said or "\n")
        wrong = misses(case, reading)
        count = counts[case.held]
        count.update(
            [
                "cases",
                *(f"not {name}" for name in wrong),
                *(["clean"] if reading.status == "clean" and case.kind else []),
            ]
        )
        kinds.setdefault(case.kind[0] if case.kind else "good", Counter()).update(["cases", *wrong])
        if wrong and (held_too or not case.held):
            print(
                f"{case.name}: not the {', '.join(wrong)}:",
                f"{reading.kind!r} {reading.component!r} {reading.error_line!r}",
            )
    for held, count in counts.items():
        print("held out:" if held else "seen:", _score(count))
    for kind, count in sorted(kinds.items()):
        right = count["cases"] - max(count["line"], count["kind"], count["component"])
        print(f"  {kind}: {right} of {count['cases']}")


def _score(count: Counter[str]) -> str:
    total = count["cases"]
    parts = (f"{name} {total - count[f'not {name}']} of {total}" for name in ("line", "kind", "component"))
    return ", ".join([*parts, f"called clean {count['clean']}"])


if __name__ == "__main__":
    main(held_too="--held" in sys.argv)
