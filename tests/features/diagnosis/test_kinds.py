"""The kind of an error, what it is about, and whose that is, for wordings that no row knows."""

# ruff: noqa: E501  (a wording in one line)

from __future__ import annotations

import re

import pytest

from tests.support.diagnosis import machine, read
from torchbuild_tasks.catalog import KindRow, load_catalog
from torchbuild_tasks.features.diagnosis.answer import answer
from torchbuild_tasks.features.diagnosis.block import Line
from torchbuild_tasks.features.diagnosis.components import component_of, owner, readable
from torchbuild_tasks.features.diagnosis.kinds import Kind

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
    ("a.s:3: Error: no such instruction: `vfoo %ymm0'", "target-feature", ""),
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
    ("../third_party/QNNPACK/src/init.c:240:4: error: #error \"Unsupported architecture\"", "unsupported-arch", ""),
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
]  # fmt: skip


@pytest.mark.parametrize("row", CATALOG.kind, ids=lambda row: row.id)
def test_a_kind_has_words_where_nothing_else_is_known(row: KindRow) -> None:
    kind = Kind(row=row, program="it", line=Line(1, "", "x says"), groups={})
    assert answer(kind, machine()).cause
    assert answer(kind, machine()).fix


@pytest.mark.parametrize(("text", "kind", "component"), ABOUT)
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
    assert quoted.fix == "Run that test alone."


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
    found = component_of("header", "cudnn_frontend.h", CATALOG.component)
    assert found is not None
    assert found.name == "cuDNN's front end"
    assert component_of("header", "nobody/knows.h", CATALOG.component) is None


def test_every_shape_names_a_kind_and_every_kind_is_named() -> None:
    assert {shape.kind for shape in CATALOG.shape} == {row.id for row in CATALOG.kind}
    assert all(re.compile(pattern) for shape in CATALOG.shape for pattern in shape.patterns)
    names = {row.name for row in CATALOG.component}
    assert all(row.like in names for row in CATALOG.component if row.like)


def test_the_quotes_of_a_name_inside_a_cause_stay() -> None:
    told = read("a.cpp:3:1: error: ‘broken’ does not name a type").diagnoses[0]
    assert "'broken' does not name a type" in told.cause
