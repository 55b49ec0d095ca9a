"""The kind of an error, what it is about, and whose that is, for wordings that no row knows."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import re

import pytest

from tests.support.diagnosis import machine, read
from tests.support.for_each import each_case, for_each
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.diagnosis import ComponentRow, KindRow
from torchbuild_tasks.features.diagnosis.block import Line
from torchbuild_tasks.features.diagnosis.choose import explain_kind
from torchbuild_tasks.features.diagnosis.components import Components, owner, readable
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.names import list_names

CATALOG = load_catalog()
ABOUT = [
    ("a.cu:3:10: fatal error: cusparse.h: No such file or directory", "missing-header", "the CUDA toolkit's cuSPARSE"),
    ("a.cpp:1:10: fatal error: torch/extension.h: No such file or directory", "missing-header", "torch"),
    ("k.cu:73:10: fatal error: ATen/cuda/Atomic.cuh: No such file or directory", "missing-header", "torch"),
    ("a.h:14:19: fatal error: TH/TH.h: No such file or directory", "missing-header", "torch's old TH and THC"),
    ("a.cpp(2): fatal error C1083: Cannot open include file: 'gloo/x.h': No such file", "missing-header", "Gloo"),
    ("a.h:29:25: error: ‘class c10::Handle’ has no member named ‘typed’", "api-mismatch", "torch"),
    ("a.h:13:14: error: ‘Norm’ in namespace ‘torch::nn’ does not name a type", "api-mismatch", "torch"),
    ("libx.so: undefined reference to `ncclAllReduce'", "undefined-symbol", "NCCL"),
    ("libx.so: undefined reference to `sgebak_'", "undefined-symbol", "BLAS and LAPACK"),
    ("x.so: undefined reference to `cusparseGetX(cusparseStatus_t)'", "undefined-symbol", "the CUDA toolkit's cuSPARSE"),
    ("a.obj : error LNK2001: unresolved external symbol __imp_PyExc_TypeError", "undefined-symbol", "CPython"),
    ("Error\tLNK2001\tunresolved external symbol \\?warp_size@cuda@at@@YAHXZ\\\ttorch", "undefined-symbol", "torch"),
    ("a.obj : error LNK2001: unresolved external symbol __imp_THFloatTensor_fill", "undefined-symbol", "torch's old TH and THC"),
    (
        'a.obj : error LNK2019: unresolved external symbol "public: bool __cdecl c10::Options::pinned(void)const " (?x@@)',
        "undefined-symbol",
        "torch",
    ),
    ("ImportError: /e/x.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "undefined-at-load", "torch"),
    ("ImportError: /e/x.so: undefined symbol: _ZNK3c105Error4whatEv", "undefined-at-load", "torch"),
    ("LINK : fatal error LNK1181: cannot open input file '..\\lib\\Release\\dnnl.lib'", "missing-library", "oneDNN"),
    ("LINK : fatal error LNK1181: 无法打开输入文件“C:\\x\\ball.obj”", "missing-library", ""),
    ("a.h:4:2: error: #error C++14 or later compatible compiler is required to use PyTorch.", "language-standard", ""),
    ("a.s:3: Error: no such instruction: `vfoo %ymm0'", "old-assembler", ""),
    ("ptxas /tmp/a.ptx, line 9; error   : Feature 'f16 arithmetic' requires .target sm_53 or higher", "arch-too-low", ""),
    ('  a.obj : error LNK2019: unresolved external symbol "public: __cdecl onnx_torch::ValueInfoPr\noto(void)" (??0V@@QEAA@XZ)', "undefined-symbol", "ONNX"),
    ('a.obj : error LNK2019: unresolved external symbol "__declspec(dllimport) public: __cdecl c10::Error::Error(int)" (__imp_x)', "undefined-symbol", "torch"),
    ("a.cpp(3,1): error C4430: missing type specifier - int assumed.", "compile-error", ""),
    ("a.cpp(3): fatal error C1083: 无法打开编译器生成的文件: “”: Invalid argument", "path-too-long", ""),
    ("CMake Error: Error required internal CMake variable not set, cmake may not be built correctly.", "cmake-version", ""),
    ("CMake Error at a.cmake:9 (file):\n  file does not recognize sub-command REAL_PATH", "cmake-version", ""),
    ("C:\\Program Files (x86)\\a\\clang-offload-bundler: error: 'D:/a.obj': no such file or directory", "missing-source", ""),
    ("`Foo (/opt/foo) was built using bar 3, but you are using /opt/bar with version 4.", "abi-mismatch", ""),
    ("AttributeError: 'NoneType' object has no attribute 'group'", "script-fault", ""),
    ("ImportError: DLL load failed: Je to rozbité.", "missing-shared-library", ""),
    ("Fatal Python error: Segmentation fault", "crash", ""),
    ("ERROR HTTPError: 403 Client Error: Forbidden for url: https://x/y", "access-denied", ""),
    ("curl: (6) Could not resolve host: github.com", "network", ""),
    ("b.cpp:(.text+0x0): multiple definition of `f()'; a.o:a.cpp:(.text+0x0): first defined here", "duplicate-symbol", ""),
    ("./a: error while loading shared libraries: libfoo.so: cannot open shared object file", "missing-shared-library", ""),
    ("c++: fatal error: File size limit exceeded signal terminated program as", "file-size-limit", ""),
    ("1 out of 1 hunk FAILED -- saving rejects to file a.c.rej", "patch-failed", ""),
    ("x.proto:3:1: Expected top-level statement.", "generator", ""),
    ("/e/include/cub/device/dispatch/x.cuh(722): error: identifier \"OffsetT\" is undefined", "compile-error", "the CUDA toolkit's CCCL (Thrust, CUB, libcu++)"),
    ("external/sleef/src/arch/x.h:111:1: error: unknown type name '__sizeless_struct'", "compile-error", "SLEEF"),
    ("../third_party/QNNPACK/src/init.c:240:4: error: #error \"Unsupported architecture\"", "no-port", "QNNPACK"),
    ("C:\\third_party\\benchmark\\src\\b.cc(192) error C3536: 'x': cannot be used before it is initialized", "compile-error", "Google Benchmark"),
    ("x.cpp(41): error C2039: packed_accessor: не является членом \"at::Tensor\"", "api-mismatch", "torch"),
    ("/e/x.h:446:36: error: member access into incomplete type 'PyFrameObject' (aka '_frame')", "python-c-api", ""),
    ("x.hpp:193:2: error: ‘requires’ does not name a type", "language-standard", ""),
    ("a.obj : error LNK2019: unresolved external symbol nvrtcCreateProgram referenced in function f", "undefined-symbol", "the CUDA toolkit's NVRTC"),
    ("a.obj : error LNK2019: unresolved external symbol \"unsigned char const * const THP_PyOpcode_Caches\" (?THP_PyOpcode_Caches@@3PEBEEB)", "undefined-symbol", "torch"),
    ("ImportError: dlopen(/e/torch/_C.so, 10): Symbol not found: __ZNSs4_Rep20_S_empty_rep_storageE", "undefined-at-load", "the C++ standard library"),
    ("error: [WinError 2] Das System kann die angegebene Datei nicht finden", "missing-tool", ""),
    ("UnicodeDecodeError: 'ascii' codec can't decode byte 0xe2 in position 8: ordinal not in range(128)", "text-encoding", ""),
    ("FileNotFoundError: [Errno 2] No such file or directory: 'C:\\\\" + "long\\\\" * 50 + "x.cu'", "path-too-long", ""),
    ("CMake Error at ggml/CMakeLists.txt:187 (message):\n  CUDA Toolkit not found", "missing-package", "the CUDA toolkit"),
    ("CMake Error at cmake/OpenMP.cmake:67 (message):\n  Intel OpenMP runtime could not be found.", "missing-package", "OpenMP"),
    ("clang (LLVM option parsing): Unknown command line argument '-amdgpu-x=1'.  Try: '--help'", "unknown-option", ""),
    ("##[error]Unable to download artifact(s): Artifact not found for name: manywheel", "not-on-server", ""),
    ("k.asm:4: error: parser: instruction expected", "assembler", ""),
    ("nvFatbin error: fatbinary elf mismatch: elf size doesn't match user-specified size", "bad-object", ""),
    ("patchelf: missing ELF header", "bad-object", ""),
    ("CMake Error at a.cmake:7 (message):\n  CMAKE_CUDA_ARCHITECTURES must be non-empty if set.", "unsupported-arch", ""),
    ('CMake Error at a.cmake:1 (message):\n  Could not find toolchain file: "/x/y.cmake"', "missing-source", ""),
    ("CMake Error at a:4 (file):\n  file cannot create directory: /x.  Maybe need administrative\n  privileges.", "permission", ""),
    ("configure: error: libnuma is required for NCCL", "missing-package", "libnuma"),
    ("configure.ac:3: error: possibly undefined macro: AM_INIT", "missing-package", ""),
    ("FAILED a.py::test_a - Failed: Timeout (>1.0s) from pytest-timeout.", "out-of-time", ""),
    ('err:module:import_dll Library c10.dll (which is needed by L"Z:\\\\a.exe") not found', "missing-shared-library", "torch"),
    ("AssertionError: libcuda.so cannot found!", "missing-shared-library", "the NVIDIA driver"),
    ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "no-compiler", "GCC"),
    ("LINK : fatal error LNK1318: Unexpected PDB error; LIMIT (12) ''", "link-limit", ""),
    ('a.h(361): fatal error C1189: #error:  "64-bit Windows is required"', "no-port", ""),
    ("nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.", "gpu-driver", ""),
    ("E: Version '2.99' for 'libnccl2' was not found", "system-package-not-found", ""),
    ("ERROR: unable to select packages:\n  openblas (no such package):", "system-package-not-found", ""),
    ('Error: No available formula with the name "libomp@99".', "system-package-not-found", ""),
    ("ERROR: no such target '//third_party:x': target 'x' not declared in package 'third_party'", "missing-target", ""),
    ("*** buffer overflow detected ***: terminated", "crash", ""),
    ("==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60", "crash", ""),
    ("a.cpp:3:4: runtime error: signed integer overflow: 1 + 2 cannot be represented in type 'int'", "crash", ""),
    ("ld.lld: error: version script assignment of 'V1' to symbol 'torch_init' failed: symbol not defined", "undefined-symbol", "torch"),
    ("p.y:1.10-14: error: require bison 4.0, but have 3.8.2", "tool-version", ""),
    ("meson.build:2:2: ERROR: Program 'pythran' not found or not executable", "missing-tool", ""),
    ("git-lfs smudge -- 'model.bin': 1: git-lfs: not found", "missing-tool", "Git LFS"),
    ("error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly", "missing-tool", "Rust"),
    ("ERROR: Wheel 'torch' located at /x/torch.whl is invalid.", "damaged-download", ""),
    ("error: No interpreter found for Python 3.99 in managed installations or search path", "python-version", ""),
    ("RuntimeError: MPS backend out of memory (MPS allocated: 17.02 GB)", "gpu-memory", ""),
    ("  └─ cudnn 9.99** does not exist (perhaps a typo or a missing channel).", "package-not-found", ""),
    ("#2 ERROR: docker.io/nvidia/cuda:13.9.0-devel-ubuntu24.04: not found", "not-on-server", ""),
    ("Public key for cuda-nvcc-12-4.x86_64.rpm is not installed", "damaged-download", ""),
    ("cp: kan inte ta status på 'libtorch.so.2': Filen eller katalogen finns inte", "missing-file", ""),
    ("/tmp/a.s: Fatal error: can't write 454 bytes to a.o: 'Na zařízení není volné místo'", "disk-full", ""),
    ('b.sh: riga 5: errore di sintassi vicino al token non atteso ")"', "shell-script", ""),
    ("error: Los cambios locales de los siguientes archivos serán sobrescritos por checkout:", "git-state", ""),
    ("2025-03-04 09:02:27,476 - builder - INFO - error: corrupt patch at line 7", "patch-failed", ""),
    ("2m    Warning   Evicted   pod/x   The node was low on resource: ephemeral-storage.", "disk-full", ""),
    ("ld: can't open output file for writing: a.out, errno=28", "disk-full", ""),
    ("ld: file not found: libfoo.dylib", "missing-library", ""),
    ("ld: framework not found Metal", "missing-library", ""),
    ("ERROR: Invalid requirement: 'torch=2.9': Expected end or semicolon", "packaging-metadata", ""),
    ("ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'r.txt'", "missing-file", ""),
    ("ERROR: Cannot uninstall 'PyYAML'. It is a distutils installed project", "package-conflict", ""),
    ("ERROR: To use the editable mode, setuptools must be at least 64", "tool-version", ""),
    ("TypeError: unsupported operand type(s) for |: 'type' and 'NoneType'", "python-version", ""),
    ("ImportError: libx.so: failed to map segment from shared object", "permission", ""),
    ("x.RendezvousConnectionError: The connection to the C10d store has failed.", "gpu-communication", ""),
    ("FileNotFoundError: [Errno 2] No such file or directory: '/opt/gone/gcc'", "missing-tool", "GCC"),
    ("RuntimeError: CUDA error: too many resources requested for launch", "gpu-limit", ""),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu-hardware", ""),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "gpu-libraries", ""),
    ("RuntimeError: CUDA error: operation not permitted when stream is capturing", "gpu-runtime", ""),
    ("ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "nccl-usage", ""),
    ("ptxas a.ptx, line 5; error   : Instruction 'tcgen05.mma' not supported on .target 'sm_100'", "arch-feature", ""),
    ("ptxas a.ptx, line 5; error   : Feature '.bf16' requires .target sm_80 or higher", "arch-too-low", ""),
    ("fatal: unable to create threaded lstat: Resource temporarily unavailable", "too-many-processes", ""),
    ("CondaError: Downloaded bytes did not match Content-Length", "damaged-download", ""),
    ("EnvironmentNotWritableError: The current user does not have write permissions", "permission", ""),
    ("The following required packages can not be built:\n  * freetype, png", "build-dependencies", ""),
    ("CMake Error in CMakeLists.txt:\n  install(EXPORT \"T\") includes target \"core\" which requires target \"dep\" that is not in any export set.", "cmake-script", ""),
    ('CMake Error at a.cmake:3 (file):\n  file STRINGS file "/b/version.txt" cannot be read.', "missing-source", ""),
    ("/usr/bin/ld: unrecognised emulation mode: elf_i999", "bad-value", ""),
    ("ld: a.out section `.text' will not fit in region `ram'", "link-limit", ""),
    ("nvcc fatal   : 'maybe': expected true or false", "bad-value", ""),
    ("nvcc fatal   : Incompatible code generation requested: arch='compute_90', code='sm_80'", "bad-value", ""),
    ("error: Failed to spawn: ninja-gone\n  cause: No such file or directory (os error 2)", "missing-tool", "Ninja"),
    ('error: unable to find dynamic system library "avutil" using strategy paths_first.', "missing-library", "FFmpeg"),
    ("error[E0554]: `#![feature]` may not be used on the stable release channel", "compiler-version", ""),
    ("error[E0463]: can't find crate for `std`", "missing-package", ""),
    ("error: invalid type: integer `2021`\n --> Cargo.toml:7:11", "packaging-metadata", ""),
    ("sed: -e expression #1, char 5: unterminated `s' command", "shell-script", ""),
    ("meson.build:1:48: ERROR: Meson version is 1.12.1 but project requires >=99.0", "tool-version", ""),
    ("l2.l:2: unrecognized rule", "generator", ""),
    ("💥 maturin failed\n  Caused by: Can't find /b/Cargo.toml (in /b)", "missing-file", ""),
    ("wine: Unhandled page fault on read access to 0000000000000000" + "\nrax:0" * 50, "crash", ""),
]  # fmt: skip


@for_each(CATALOG.kind, lambda row: row.id)
def test_a_kind_has_words_where_nothing_else_is_known(row: KindRow) -> None:
    kind = Kind(row=row, program="it", line=Line(1, "", "x says"), groups={})
    told = explain_kind(kind, machine(), list_names(kind, machine()))
    assert told.cause
    assert told.fix


@each_case(("text", "kind", "component"), ABOUT)
def test_kind_and_component_are_told(text: str, kind: str, component: str) -> None:
    reading = read(text)
    assert (reading.kind, reading.component) == (kind, component)
    told = reading.diagnoses[0]
    assert told.cause
    assert told.fix
    assert "{" not in told.cause + told.fix


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("[ 50%] Building a.o\na.cpp:3:4: error: 'x' was not declared\n[100%] Built target a\n", 2),
        ("c++: fatal error: Killed signal terminated program cc1plus\n-- Installing: /x\n", 1),
        ("web-1  | a.cpp:1:10: fatal error: x.h: No such file or directory\n", 1),
        ("a.cpp:1:2: error : 'x' was not declared\n", 1),
    ],
)
def test_no_log_with_an_error_is_clean(log: str, line: int) -> None:
    reading = read(log)
    assert (reading.status != "clean", reading.line_number) == (True, line)


def test_a_failed_command_without_an_error_shows_the_one_before() -> None:
    log = "[1/3] A\na.cpp:1:1: error: unknown type name 'x'\n[2/3] c++ a\nFAILED: a.o\nc++ -c a.cpp\n"
    assert read(log).line_number == 2


def test_only_a_test_that_is_named_is_to_be_run_alone() -> None:
    named = read("FAILED test/test_ops.py::TestOps::test_add - assert 1 == 2\n").diagnoses[0]
    assert named.fix.endswith("-m pytest test/test_ops.py::TestOps::test_add")
    quoted = read("E           IndexError: tuple index out of range\n").diagnoses[0]
    assert quoted.fix.startswith("Run that test alone, with its output")


def test_a_path_with_blanks_that_may_not_be_written_is_named_whole() -> None:
    path = "D:/a & (b) 100%/torch/lib/x.dll"
    for log in (
        f'CMake Error at a:4 (file):\n  file INSTALL cannot copy file "D:/y z/x.dll"\n  to "{path}": Permission\n  denied.',
        f"ld.lld: error: failed to open {path}: Permission denied",
    ):
        (cause, *_) = read(f"{log}\n").diagnoses
        assert cause.cause == f"The system does not allow it: {path}."


def test_apts_last_line_is_an_end_in_order() -> None:
    log = "Setting up libgomp1 (12.2.0-14) ...\n0 upgraded, 1 newly installed, 0 to remove and 3 not upgraded.\n"
    assert read(log).status == "clean"


def test_quoted_source_of_a_test_is_no_error() -> None:
    log = "    def test():\n>       raise E('a.cpp:1:2: error: quoted')\nE       AssertionError: assert 1 == 2\n"
    reading = read(log)
    assert (reading.line_number, reading.kind) == (3, "test-failure")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN2at4_ops5zeros4callEN3c108ArrayRefE", "at::_ops::zeros::call"),
        ("_ZTVN5torch8autograd4NodeE", "torch::autograd::Node"),
        ("?layout_opt@TensorOptions@c10@@QEBA", "c10::TensorOptions::layout_opt"),
        ("__imp_PyExc_TypeError", "PyExc_TypeError"),
        ("vtable for at::native::X", "at::native::X"),
        ("std::vector<int> at::f(c10::Y const&)", "at::f"),
        ("_ZNSt7__cxx1112basic_stringE", "std::__cxx11::basic_string"),
    ],
)
def test_a_symbols_owner_is_read_from_its_name(symbol: str, name: str) -> None:
    assert owner(symbol) == name
    assert readable(symbol)


def test_the_longest_beginning_names_the_part() -> None:
    known = Components(CATALOG.component)
    found = known.find("header", "cudnn_frontend.h")
    assert found is not None
    assert found.name == "cuDNN's front end"
    assert known.find("header", "nobody/knows.h") is None


@each_case(
    ("look", "subject", "name"),
    [
        ("header", "zork/a.h", "first"),  # of two rows with the same name
        ("header", "zorkest/a.h", None),
        ("header", "ZORK/a.h", None),
        ("library", "libZork_core.so.1", "first"),
        ("library", "-lzork_more", "second"),
        ("library", "-lzork_cores", "second"),
        ("library", "-lzork", None),
        ("package", "ZORK", "second"),
        ("package", "ZorkConfig", "second"),
        ("package", "zorkest", None),
        ("tool", "/usr/bin/zork-12", "first"),
        ("tool", "zorkest", None),
        ("module", "zork.part", "second"),
        ("module", "zorkest", None),
        ("symbol", "_ZN4zork1fEv", "second"),
    ],
)
def test_a_part_is_found_by_its_name_as_each_kind_is_written(
    look: str, subject: str, name: str | None
) -> None:
    first = ComponentRow(name="first", headers=("zork/",), libs=("Zork_core$",), tools=("zork",))
    second = ComponentRow(
        name="second",
        headers=("zork/",),
        libs=("zork_*",),
        packages=("zork",),
        modules=("zork",),
        symbols=("zork::",),
    )
    found = Components((first, second)).find(look, subject)
    assert (found.name if found else None) == name


@each_case(
    ("library", "known"),
    [
        ("-lpng16d", True),
        ("-lopenblas64_", True),
        ("libopenblasp-r0.3.21.so", True),
        ("-lfftw3f_threads", True),
        ("cudart64_12.dll", True),
        ("libgomp-24e2ab19.so.1", True),
        ("zlibstatic.lib", True),
        ("-lopenblas_own", False),
        ("-lnccl_none", False),
        ("-lpngwriter", False),
        ("-lz-ng", False),
        ("-ljpegxl", False),
    ],
)
def test_a_library_that_only_begins_like_a_known_one_is_another(library: str, known: bool) -> None:
    assert (Components(CATALOG.component).find("library", library) is not None) is known


def test_every_shape_names_a_kind_and_every_kind_is_named() -> None:
    assert {shape.kind for shape in CATALOG.shape} == {row.id for row in CATALOG.kind}
    assert all(re.compile(pattern) for shape in CATALOG.shape for pattern in shape.patterns)
    names = {row.name for row in CATALOG.component}
    assert all(row.like in names for row in CATALOG.component if row.like)


def test_the_quotes_of_a_name_inside_a_cause_stay() -> None:
    told = read("a.cpp:3:1: error: ‘broken’ does not name a type").diagnoses[0]
    assert "'broken' does not name a type" in told.cause


def test_what_a_step_said_is_in_the_file_that_cmake_names() -> None:
    log = (
        "FAILED: nccl-build\ncmake -P nccl-build.cmake\nCMake Error at nccl-build.cmake:49 (message):\n"
        "  Command failed: 2\n\n   'make'\n\n  See also\n\n    /b/nccl-build-*.log\n"
    )
    assert "/b/nccl-build-*.log" in read(log).diagnoses[0].cause


@each_case(
    ("log", "line"),
    [
        (
            "/usr/bin/ld: unrecognised emulation mode: x\n/usr/bin/ld: supported: y\ncollect2: error: ld returned 1 exit status\n",
            1,
        ),
        (
            "test b ... FAILED\n\nfailures:\n\n---- b stdout ----\nerror: test failed, to rerun pass `--bin toks`\n",
            1,
        ),
        (
            "ERROR: usage: pytest [options]\npytest: error: unrecognized arguments: --run-gpu\n  inifile: None\n",
            2,
        ),
        (
            "x/3.9: Not found in local cache, looking in remotes\nERROR: Package 'x/3.9' not resolved: Max retries exceeded\n",
            2,
        ),
        ("configure: error: in `/b':\nconfigure: error: C compiler cannot create executables\n", 2),
        (
            "test.py .E  [100%]\nE       fixture 'gpu' not found\nERROR t.py::test_a\n1 passed, 1 error in 0.02s\n",
            2,
        ),
        (
            "  WARNING: Built wheel for x is invalid: Metadata 1.2\nFailed to build x\nERROR: Could not build\n",
            1,
        ),
        ("gcc -c a.c\ntimeout waiting for the licence server\n", 2),
        ("step 1\nb.sh: line 3: unexpected EOF while looking for matching `\"'\n", 2),
        ("copying a.py -> b\npigz: abort: zlib version less than 1.2.3\n", 2),
        ("copying a.py -> b\nAccess is denied.\n", 2),
        ("copying a.py -> b\n*** Signal 15\n", 2),
        ("copying a.py -> b\nJob terminated by preemption\n", 2),
        (
            "copying a.py -> b\nHost key verification failed.\nfatal: Could not read from remote repository.\n",
            2,
        ),
        ("step 1\ntimeout -v 2 ./run\ntimeout: sending signal TERM to command './run'\n", 3),
        ("WARNING:a.b:The name could not be read\nINFO:a.b:This does not look like a platform wheel\n", 2),
        ("error: failed to run custom build command for `x`\nthread 'main' (251) panicked at b.rs:1:1:\n", 2),
        (
            "a:1:2 [0] NCCL WARN Net : Connection closed\nmpirun detected that one or more processes exited\n",
            1,
        ),
        (
            'CMake Warning at a.cmake:3 (message):\n  Target "Linux" is not supported by x\n'
            "error: unknown warning option '-Wx' [-Werror,-Wunknown-warning-option]\n",
            3,
        ),
    ],
)
def test_the_line_that_tells_most_is_the_error(log: str, line: int) -> None:
    assert read(log).line_number == line


@pytest.mark.parametrize(
    "log",
    [
        "t.py::test_a Traceback (most recent call last):\nRuntimeError: x\nterminate called\nPASSED\n\ncc -o a a.o\n",
        "2: fatal error: expected\n2/2 Test #2: fatal .....   Passed    0.01 sec\n\n100% tests passed\n",
        "SKIPPED [1] test_a.py:8: error: no GPU\n1 passed, 1 skipped in 0.1s\n",
        "#7 1.30 x: error: no alternatives\n#7 1.40 + true\n#7 DONE 14.2s\n#8 DONE 33.0s\n",
        "Cache hits: 0, Cache errors: 0, failed to compile: 3\n",
        "a.cpp:9: note: error is declared here\nar: creating libx.a\n",
        "error.cpp\nfatal.cpp\nGenerating Code...\n",
        "ok 1 - error is thrown\n1..1\n# tests 1\n",
        "  CC      lib/error.o\n  LD      x\n",
        "Exception ignored in: <function X.__del__>\nTraceback (most recent call last):\n  File 'a'\nTypeError: x\nresult: 42\n",
        "Fontconfig error: Cannot load default config file\nplot saved to a.png\n",
        "checking whether fork fails... no\nmake  all-am\nar cru liberr.a error.o\nmake[1]: Leaving directory '/b'\n",
        "E: Some index files failed to download. They have been ignored, or old ones used instead.\nmake: 'all' is up to date.\n",
        "git: 'lfs' is not a git command. See 'git --help'.\nx.tar.gz: OK\nmake: Nothing to be done for 'all'.\n",
        "terminate called in the child\n[       OK ] Errors.Fatal (12 ms)\n[  PASSED  ] 3 tests.\n",
        "  libfail2 error-utils\n0 upgraded, 3 newly installed, 0 to remove and 0 not upgraded.\n",
        "Error: No such container: build-cache\nSuccessfully built 7d1f2b3c\nSuccessfully tagged torch:latest\n",
        "[master (root-commit) 45cb237] Fix fatal error in CUDA path\n45cb237 Fix fatal error in CUDA path\n",
        "HEAD is now at 45cb237 Fix error: CUDA error path\n",
        "a.cu(1): warning #177-D: x was declared\n  void k(){ int error; }\n                ^\n",
        "no tags, version unknown\nSwitched to a new branch 'error'\nok\n",
        "[W NNPACK.cpp:64] Could not initialize NNPACK! Reason: Unsupported hardware.\nSaved model\n",
    ],
)  # fmt: skip
def test_what_is_no_failure_is_none(log: str) -> None:
    assert read(log).status == "clean"


def test_who_speaks_is_named() -> None:
    told = read(
        "pytest: error: unrecognized arguments: --run-gpu\n  inifile: None\n  rootdir: /b\n"
    ).diagnoses[0]
    assert told.cause == "pytest does not know the option --run-gpu."
