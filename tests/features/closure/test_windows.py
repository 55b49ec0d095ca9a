"""The search of Windows, on paper, decided on any system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.support.closures import Values, lib
from tests.support.for_each import each_case
from torchbuild_tasks.features.closure.choose import close
from torchbuild_tasks.model.closure import Break, FoundLibrary, Image, Loader, Symbol

LIB = "C:\\p\\torch\\lib"
SYSTEM = "C:\\Windows\\System32"
PYTHON = "C:\\p\\python.exe"
RUNTIMES = ("vcruntime140.dll", "msvcp140.dll", "vcruntime140_1.dll")


def closed(
    *images: Image,
    takes: Mapping[str, Sequence[Symbol]] | None = None,
    gives: Mapping[str, Collection[str]] | None = None,
    **loader: object,
) -> tuple[tuple[FoundLibrary, ...], tuple[Break, ...]]:
    values: dict[str, object] = {
        "executable": PYTHON,
        "roots": (f"{LIB}\\torch_cpu.dll",),
        "loaded": (PYTHON,),
        "cache": {"kernel32.dll": (f"{SYSTEM}\\KERNEL32.dll",)},
        "defaults": (SYSTEM, "C:\\Windows"),
        "extra": (LIB,),
        **loader,
    }
    system = [lib(f"{SYSTEM}\\{name}") for name in (*RUNTIMES, "KERNEL32.dll")]
    files = {image.real: image for image in (lib(PYTHON), *system, *images)}
    process = Loader(system="windows", machine="x86_64", **values)  # type: ignore[arg-type]
    return close(process, Values(files, takes or {}, gives or {}), ())


def cpu(*needed: str, **columns: Any) -> Image:
    return lib(f"{LIB}\\torch_cpu.dll", *needed, **columns)


@each_case(
    ("folders", "how"),
    [
        ((LIB, "C:\\p", "C:\\add", SYSTEM, "C:\\path"), "beside the DLL that is loaded"),
        (("C:\\p", "C:\\add", SYSTEM, "C:\\path"), "beside python.exe"),
        (("C:\\add", SYSTEM, "C:\\path"), "a folder that torch adds"),
        ((SYSTEM, "C:\\path"), "a folder of Windows"),
        (("C:\\path",), "PATH"),
    ],
)
def test_the_order_of_the_search(folders: Sequence[str], how: str) -> None:
    images = [lib(f"{folder}\\uv.dll") for folder in folders]
    libraries, breaks = closed(cpu("uv.dll"), *images, extra=("C:\\add",), search_path=("C:\\path",))
    assert next(each for each in libraries if each.name == "uv.dll").how == how
    assert not breaks


def test_known_dlls_and_api_sets_are_the_systems_own() -> None:
    beside = lib(f"{LIB}\\KERNEL32.dll")
    libraries, breaks = closed(cpu("KERNEL32.dll", "api-ms-win-crt-math-l1-1-0.dll", "ext-ms-x.dll"), beside)
    states = {each.name: (each.state, each.how) for each in libraries}
    assert states["KERNEL32.dll"] == ("found", "a known DLL of Windows")
    assert states["api-ms-win-crt-math-l1-1-0.dll"][0] == states["ext-ms-x.dll"][0] == "api set"
    assert not breaks


def test_the_missing_leaf_and_not_the_dll_that_windows_names() -> None:
    roots = (f"{LIB}\\shm.dll", f"{LIB}\\torch_cpu.dll")
    _, [found] = closed(lib(roots[0], "torch_cpu.dll"), cpu("uv.dll"), roots=roots)
    assert (found.kind, found.library) == ("missing", "uv.dll")
    assert [path.rpartition("\\")[2].lower() for path in found.chain] == ["shm.dll", "torch_cpu.dll"]
    assert found.looked[:2] == (LIB, "C:\\p")


def test_a_name_is_found_whatever_its_letters() -> None:
    process = lib("C:\\elsewhere\\C10.DLL")
    libraries, breaks = closed(cpu("c10.dll"), process, loaded=(PYTHON, process.real))
    assert not breaks
    assert sum(each.name.lower() == "c10.dll" for each in libraries) == 1


@each_case(
    ("image", "kind"),
    [
        (lib(f"{LIB}\\uv.dll", machine="x86"), "other machine"),
        (Image(real=f"{LIB}\\uv.dll", damage="empty"), "damaged"),
    ],
)
def test_the_first_that_is_found_counts_even_where_it_is_wrong(image: Image, kind: str) -> None:
    """Windows loads the first match and fails with error 193; each damaged file is reported once."""
    roots = (f"{LIB}\\torch_cpu.dll", f"{LIB}\\uv.dll")
    _, [found] = closed(cpu("uv.dll"), image, lib(f"{SYSTEM}\\uv.dll"), roots=roots)
    assert (found.kind, found.path) == (kind, f"{LIB}\\uv.dll")


def test_what_is_loaded_on_demand_may_be_missing() -> None:
    libraries, breaks = closed(cpu(delayed=("nvcuda.dll",)))
    assert ("nvcuda.dll", "on demand") in {(each.name, each.state) for each in libraries}
    assert not breaks


def test_a_function_that_the_dll_lacks() -> None:
    path = f"{LIB}\\c10.dll"
    _, [found] = closed(
        *(cpu("c10.dll", "KERNEL32.dll"), lib(path)),
        takes={f"{LIB}\\torch_cpu.dll": [Symbol("f", "", "C10.dll"), Symbol("g", "", "kernel32.dll")]},
        gives={path: (), f"{SYSTEM}\\KERNEL32.dll": ()},
    )
    assert (found.kind, found.library, found.wanted) == ("symbol", "c10.dll", ("f",))


@each_case(("release", "warned"), [((14, 38), True), ((14, 42), False), ((0, 0), False)])
def test_a_runtime_older_than_the_toolset_is_a_warning(release: tuple[int, int], warned: bool) -> None:
    old = lib("C:\\p\\msvcp140.dll", release=release)
    _, breaks = closed(cpu("MSVCP140.dll", linker=(14, 42)), old)
    assert [(each.kind, each.status) for each in breaks] == ([("old runtime", "warn")] if warned else [])


def test_a_missing_root_and_a_missing_runtime() -> None:
    _, [found] = closed()
    assert (found.kind, found.path) == ("missing", f"{LIB}\\torch_cpu.dll")
