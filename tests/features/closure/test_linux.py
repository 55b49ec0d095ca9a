"""The search of ld.so, on paper: each rule by the file that it finds."""

from __future__ import annotations

from typing import Any

from tests.support.closures import Values, lib, shelf
from tests.support.for_each import each_case
from torchbuild_tasks.features.closure.graph import Graph
from torchbuild_tasks.features.closure.linux import walk_elf
from torchbuild_tasks.model.closure import Image, Loader

ROOT = "/t/_C.so"
CACHE = {"liba.so": ("/cached/liba.so",)}


def walk(*images: Image, **loader: object) -> Graph:
    values: dict[str, object] = {"roots": (ROOT,), "defaults": ("/lib",), "cache": CACHE, **loader}
    process = Loader(system="linux", machine="x86_64", **values)  # type: ignore[arg-type]
    return walk_elf(process, Values(shelf(*images)))


def where(graph: Graph, name: str) -> tuple[str, str]:
    node = next(node for node in graph.nodes if node.name == name)
    return node.path, node.how


EVERYWHERE = [lib(f"/{place}/liba.so") for place in ("rpath", "ld", "runpath", "cached", "lib", "wheel")]


@each_case(
    ("root", "gone", "found"),
    [
        ({"rpath": ("/rpath",)}, "", ("/rpath/liba.so", "RPATH of _C.so")),
        ({"rpath": ("/rpath",), "runpath": ("/runpath",)}, "", ("/ld/liba.so", "LD_LIBRARY_PATH")),
        ({"runpath": ("/runpath",)}, "ld", ("/runpath/liba.so", "RUNPATH of _C.so")),
        ({}, "ld", ("/cached/liba.so", "/etc/ld.so.cache")),
        ({}, "ld cached", ("/lib/liba.so", "a folder of the system")),
        ({}, "ld cached lib", ("/wheel/liba.so", "torch's own search of NVIDIA's wheels")),
    ],
)
def test_the_order_of_the_search(root: dict[str, Any], gone: str, found: tuple[str, str]) -> None:
    """RPATH, LD_LIBRARY_PATH, RUNPATH, the cache, the system; a RUNPATH disables the RPATH of its file."""
    images = [each for each in EVERYWHERE if each.real.split("/")[1] not in gone.split()]
    graph = walk(lib(ROOT, "liba.so", **root), *images, search_path=("/ld",), extra=("/wheel",))
    assert where(graph, "liba.so") == found
    assert not graph.breaks


def test_an_rpath_counts_for_what_is_below_and_a_runpath_does_not() -> None:
    middle = lib("/p/libm.so", "libb.so")
    below = lib("/p/libb.so")
    assert not walk(lib(ROOT, "libm.so", rpath=("/p",)), middle, below).breaks
    [broken] = walk(lib(ROOT, "libm.so", runpath=("/p",)), middle, below).breaks
    assert (broken.kind, broken.library, broken.chain) == ("missing", "libb.so", (ROOT, "/p/libm.so"))
    assert broken.looked == ("/lib",)


def test_the_rpath_of_the_executable_counts_for_all() -> None:
    """So conda's python finds conda's libraries first."""
    python = lib("/conda/bin/python", rpath=("$ORIGIN/../lib",))
    graph = walk(
        *(lib(ROOT, "liba.so"), python, lib("/conda/lib/liba.so"), lib("/cached/liba.so")),
        executable=python.real,
        loaded=(python.real,),
    )
    assert where(graph, "liba.so") == ("/conda/lib/liba.so", "RPATH of python")


@each_case("folder", ["$ORIGIN/lib", "${ORIGIN}/lib", "/t/$LIB", "/t/lib/../lib"])
def test_names_in_a_folder_are_expanded(folder: str) -> None:
    graph = walk(lib(ROOT, "libz.so", runpath=(folder,)), lib("/t/lib/libz.so"), lib="lib")
    assert where(graph, "libz.so")[0] == "/t/lib/libz.so"


def test_a_subfolder_for_this_processor_comes_first() -> None:
    levels = ("glibc-hwcaps/x86-64-v3",)
    graph = walk(
        lib(ROOT, "liba.so"), lib("/lib/liba.so"), lib("/lib/glibc-hwcaps/x86-64-v3/liba.so"), levels=levels
    )
    assert where(graph, "liba.so")[0] == "/lib/glibc-hwcaps/x86-64-v3/liba.so"


def test_a_library_that_wants_no_defaults_gets_none() -> None:
    [broken] = walk(lib(ROOT, "liba.so", no_defaults=True), *EVERYWHERE).breaks
    assert broken.library == "liba.so"


def test_what_is_in_the_process_is_found_by_its_name_wherever_it_lies() -> None:
    loaded = lib("/other/x.so", name="liba.so")
    graph = walk(lib(ROOT, "liba.so"), loaded, lib("/cached/liba.so"), loaded=(loaded.real,))
    assert [node.path for node in graph.nodes] == ["/other/x.so", ROOT]
    assert graph.roots[0].needs == [graph.nodes[0]]


def test_two_names_of_one_file_are_one_library() -> None:
    one = lib("/lib/liba.so.1", name="liba.so.1")
    images = {**shelf(lib(ROOT, "liba.so", "liba.so.1"), one), "/lib/liba.so": one}
    graph = walk_elf(
        Loader(system="linux", machine="x86_64", roots=(ROOT,), defaults=("/lib",)), Values(images)
    )
    assert len(graph.nodes) == 2


def test_a_library_of_another_machine_is_passed_over() -> None:
    strange = lib("/ld/liba.so", machine="aarch64")
    graph = walk(lib(ROOT, "liba.so"), strange, lib("/cached/liba.so"), search_path=("/ld",))
    assert where(graph, "liba.so")[0] == "/cached/liba.so"
    assert not graph.breaks
    [broken] = walk(lib(ROOT, "liba.so"), strange, search_path=("/ld",)).breaks
    assert (broken.kind, broken.path) == ("other machine", "/ld/liba.so")
    assert broken.detail == "for aarch64, this Python for x86_64"


def test_a_broken_library_ends_the_search() -> None:
    broken = Image(real="/ld/liba.so", damage="empty")
    [found] = walk(lib(ROOT, "liba.so"), broken, lib("/cached/liba.so"), search_path=("/ld",)).breaks
    assert (found.kind, found.path, found.how) == ("damaged", "/ld/liba.so", "LD_LIBRARY_PATH")


def test_an_unreadable_library_is_passed_over() -> None:
    locked = Image(real="/ld/liba.so", damage="cannot be read: Permission denied", passed_over=True)
    assert not walk(lib(ROOT, "liba.so"), locked, lib("/cached/liba.so"), search_path=("/ld",)).breaks
    [found] = walk(lib(ROOT, "liba.so"), locked, search_path=("/ld",), cache={}).breaks
    assert (found.kind, found.detail) == ("damaged", "cannot be read: Permission denied")


def test_each_missing_library_is_reported_once_the_nearest_first() -> None:
    graph = walk(lib(ROOT, "liba.so", "libx.so", "liby.so"), lib("/cached/liba.so", "libz.so", "libx.so"))
    assert [each.library for each in graph.breaks] == ["libx.so", "liby.so", "libz.so"]
    assert graph.breaks[2].chain == (ROOT, "/cached/liba.so")


@each_case("image", [None, Image(real=ROOT, damage="empty"), lib(ROOT, machine="x86")])
def test_a_root_that_cannot_be_loaded(image: Image | None) -> None:
    [broken] = walk(*([image] if image else [])).breaks
    assert broken.path == ROOT
    assert broken.chain == ()


def test_libraries_that_need_each_other_end() -> None:
    graph = walk(lib(ROOT, "liba.so"), lib("/cached/liba.so", "_C.so", "liba.so"))
    assert len(graph.nodes) == 2
