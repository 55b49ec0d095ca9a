"""The sentences, the rows behind them, and the doubts that are warnings."""

from __future__ import annotations

from tests.support.closures import Values, lib, shelf
from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.closure.choose import close, explain, row_of
from torchbuild_tasks.model.closure import Break, Loader

ROWS = load_catalog().library
ROOT = "/t/_C.so"


@each_case("row", ROWS, ids=lambda row: row.what)
def test_a_row_is_the_first_that_knows_its_own_files(row: object) -> None:
    for pattern in row.files:  # type: ignore[attr-defined]
        name = pattern.replace("*", "9")
        found = row_of(name, ROWS)
        assert found is not None
        assert found.what == row.what or "*" in pattern, name  # type: ignore[attr-defined]


@each_case(
    ("name", "what"),
    [
        ("libtorch_cpu.so", "part of torch"),
        ("TORCH_CPU.dll", "part of torch"),
        ("_C.cpython-311-x86_64-linux-gnu.so", "part of torch"),
        ("libcudart.so.11.0", "CUDA's runtime"),
        ("libcudart.so.13", "CUDA 13's runtime"),
        ("libgomp-a34b3233.so.1", "GCC's OpenMP runtime"),
        ("MSVCP140.dll", "Microsoft's C++ runtime"),
    ],
)
def test_the_row_of_a_library(name: str, what: str) -> None:
    row = row_of(name, ROWS)
    assert row is not None
    assert row.what == what


def test_an_unknown_library_has_no_row_and_no_invented_package() -> None:
    found = explain(Break(kind="missing", status="error", library="libodd.so.1", chain=(ROOT,)), ROWS)
    assert (found.fix, dict(found.packages)) == ("", {})
    assert found.text == "libodd.so.1 is missing, which _C.so needs."


def test_an_old_runtime_is_named_with_what_was_linked_by_a_newer_toolset() -> None:
    old = Break(
        kind="old runtime",
        status="warn",
        library="msvcp140.dll",
        path="C:\\w\\msvcp140.dll",
        chain=("C:\\t\\_C.pyd", "C:\\t\\torch_cpu.dll"),
        detail="14.29, older than toolset 14.40 of",
    )
    said = "is old: C:\\w\\msvcp140.dll is 14.29, older than toolset 14.40 of torch_cpu.dll."
    assert explain(old, ROWS).text.endswith(said)


def test_the_package_that_brings_it() -> None:
    found = explain(Break(kind="missing", status="error", library="libcublas.so.12", chain=(ROOT,)), ROWS)
    assert found.packages["pip"] == "nvidia-cublas-cu12"
    assert "pip: nvidia-cublas-cu12" in found.fix


def test_packages_are_those_of_the_system_of_the_file() -> None:
    dll = explain(Break(kind="missing", status="error", library="uv.dll", chain=("C:\\x.dll",)), ROWS)
    assert dll.fix == "It comes with pip: torch; conda: libuv."
    library = explain(Break(kind="missing", status="error", library="libuv.so.1", chain=(ROOT,)), ROWS)
    assert "apt" in library.packages


def test_two_openmp_runtimes_are_a_warning() -> None:
    images = shelf(lib(ROOT, "libgomp.so.1", "libiomp5.so"), lib("/l/libgomp.so.1"), lib("/l/libiomp5.so"))
    process = Loader(system="linux", machine="x86_64", roots=(ROOT,), defaults=("/l",))
    [found] = close(process, Values(images), ROWS)[1]
    assert (found.kind, found.status) == ("twice", "warn")
    assert "/l/libgomp.so.1 and /l/libiomp5.so" in found.text


def test_a_copy_before_torchs_own_is_a_warning() -> None:
    images = shelf(
        lib(ROOT, "libtorch.so", runpath=("/t/lib",)),
        lib("/t/lib/libtorch.so", "libgomp.so.1", runpath=("/t/lib",)),
        *(lib("/x/libgomp.so.1"), lib("/t/lib/libgomp.so.1"), lib("/t/lib/deps.so")),
    )
    process = Loader(
        system="linux", machine="x86_64", roots=("/t/lib/deps.so", ROOT), search_path=("/x",), shared=1
    )
    [found] = close(process, Values(images), ROWS)[1]
    assert (found.kind, found.status, found.path) == ("shadowed", "warn", "/x/libgomp.so.1")
    assert found.fix == "Remove /x from LD_LIBRARY_PATH."
