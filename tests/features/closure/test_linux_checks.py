"""Versions and functions: what is lacking, who lacks it, and which copy has it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tests.support.closures import Values, lib, shelf
from torchbuild_tasks.features.closure.choose import close
from torchbuild_tasks.model.closure import Break, Image, Loader, Symbol

ROOT = "/t/_C.so"
NEW = frozenset({"GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30"})
OLD = frozenset({"GLIBCXX_3.4"})
WANTS = {"libstdc++.so.6": ("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30")}


def breaks(
    *images: Image,
    takes: Mapping[str, Sequence[Symbol]] | None = None,
    gives: Mapping[str, Collection[str]] | None = None,
    **loader: object,
) -> tuple[Break, ...]:
    values: dict[str, object] = {"roots": (ROOT,), "defaults": ("/lib",), **loader}
    process = Loader(system="linux", machine="x86_64", **values)  # type: ignore[arg-type]
    return close(process, Values(shelf(*images), takes or {}, gives or {}), ())[1]


def test_an_older_libstdcxx_first_is_reported_with_the_one_that_would_do() -> None:
    [found] = breaks(
        lib(ROOT, "libstdc++.so.6", "libc10.so", wants=WANTS),
        lib("/lib/libc10.so", "libstdc++.so.6", wants=WANTS),
        lib("/conda/libstdc++.so.6", versions=OLD),
        lib("/lib/libstdc++.so.6", versions=NEW),
        search_path=("/conda",),
    )
    assert (found.kind, found.path, found.how) == ("version", "/conda/libstdc++.so.6", "LD_LIBRARY_PATH")
    assert found.wanted == ("GLIBCXX_3.4.30", "GLIBCXX_3.4.9")
    assert found.better == "/lib/libstdc++.so.6"
    assert found.chain == (ROOT,)
    assert found.fix == "Remove /conda from LD_LIBRARY_PATH."


def test_a_library_without_versions_is_taken_as_the_loader_takes_it() -> None:
    assert not breaks(lib(ROOT, "libstdc++.so.6", wants=WANTS), lib("/lib/libstdc++.so.6"))


def test_a_function_that_no_library_exports() -> None:
    [found] = breaks(
        *(lib(ROOT, "libc10.so"), lib("/lib/libc10.so")),
        takes={ROOT: [Symbol("one"), Symbol("two")]},
        gives={ROOT: (), "/lib/libc10.so": ("one",)},
    )
    assert (found.kind, found.library, found.wanted) == ("symbol", "", ("two",))
    assert found.text == "_C.so needs two, and no library that is loaded has it."


def test_another_copy_that_has_the_function_names_the_wrong_one() -> None:
    [found, _] = breaks(
        *(lib(ROOT, "libc10.so"), lib("/old/libc10.so"), lib("/t/libc10.so")),
        takes={ROOT: [Symbol("two")]},
        gives={ROOT: (), "/old/libc10.so": (), "/t/libc10.so": ("two",)},
        search_path=("/old", "/t"),
    )
    assert (found.library, found.path, found.better) == ("libc10.so", "/old/libc10.so", "/t/libc10.so")


def test_a_file_that_calls_itself_otherwise_is_the_wrong_one() -> None:
    [found] = breaks(
        *(lib(ROOT, "libc10.so", "liba.so"), lib("/lib/liba.so"), lib("/lib/libc10.so", name="libtorch.so")),
        takes={ROOT: [Symbol("two")]},
        gives={ROOT: (), "/lib/libc10.so": (), "/lib/liba.so": ()},
    )
    assert found.library == "libc10.so"
    assert "which calls itself libtorch.so, lacks two" in found.text


def test_what_the_executable_and_the_shared_roots_give_is_seen_by_all() -> None:
    python = lib("/bin/python")
    assert not breaks(
        *(python, lib("/t/deps.so", "libg.so"), lib("/lib/libg.so"), lib(ROOT)),
        takes={ROOT: [Symbol("PyFloat_Type"), Symbol("omp_get")]},
        gives={ROOT: (), python.real: ("PyFloat_Type",), "/lib/libg.so": ("omp_get",), "/t/deps.so": ()},
        executable=python.real,
        loaded=(python.real,),
        roots=("/t/deps.so", ROOT),
        shared=1,
    )


def test_the_functions_of_a_missing_library_are_no_second_finding() -> None:
    [found] = breaks(lib(ROOT, "libc10.so"), takes={ROOT: [Symbol("one")]}, gives={ROOT: ()})
    assert found.kind == "missing"


def test_a_preloaded_library_is_taken_out_of_the_variable() -> None:
    preloaded = lib("/x/libstdc++.so.6", versions=OLD)
    [found] = breaks(
        *(lib(ROOT, "libstdc++.so.6", wants=WANTS), preloaded),
        loaded=(preloaded.real,),
        preloaded=(preloaded.real,),
    )
    assert found.fix == "Remove /x/libstdc++.so.6 from LD_PRELOAD."
