"""Find libraries where PyTorch's CMake files search: for BLAS, and what switches link with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from torchbuild_tasks.catalog.rows import FilesRow
from torchbuild_tasks.facts.probe import Probe, multiarch_triplet
from torchbuild_tasks.model import Library, Python

SYSTEM = ("/usr/local", "/usr")
_INCLUDES = ("include", "include/openblas", "")
_LIBRARIES_IN = ("CMAKE_LIBRARY_PATH", "LD_LIBRARY_PATH")
_HEADERS_IN = ("CMAKE_INCLUDE_PATH",)
_LIBRARIES = ("lib", "lib64", "lib/intel64", "lib/x64", "")


def look_for_libraries(
    probe: Probe, rows: Sequence[FilesRow], prefixes: Mapping[str, str]
) -> tuple[Library, ...]:
    """Return each library that can be linked once, in the order of the rows that name files.

    Args:
        probe: the machine, with the variables that flags and settings name.
        prefixes: further folders, and how each was found.
    """
    named = (row for row in rows if row.libraries or row.headers or row.programs)
    return tuple(found for row in named if (found := _find(probe, row, prefixes)))


def conda_prefixes(probe: Probe, pythons: Sequence[Python]) -> dict[str, str]:
    """Return the folders of conda environments, which a build is given as CMAKE_PREFIX_PATH."""
    folders = [python.prefix for python in pythons if python.environment == "conda" and python.prefix]
    return {probe.join(each, "Library") if probe.windows else each: "conda" for each in folders}


def path_prefixes(probe: Probe) -> dict[str, str]:
    """Return the folders above those on PATH, in which CMake's find_package() looks too."""
    split = (folder.replace("\\", "/").rpartition("/") for folder in probe.path_folders)
    return {above: "PATH" for above, _, name in split if name in ("bin", "sbin") and above}


def _find(probe: Probe, row: FilesRow, prefixes: Mapping[str, str]) -> Library | None:
    program = next((path for name in row.programs if (path := probe.which(name))), None)
    if program:
        return Library(name=row.name, found_via=program)
    places = list(_places(probe, row, prefixes))
    library = _first(places, lambda via, root: _library_in(probe, row, via, root)) if row.libraries else None
    include = _first(places, lambda via, root: _header_in(probe, row, via, root)) if row.headers else None
    if (row.libraries and library is None) or (row.headers and include is None):
        return None
    via, folder = library or include or ("", None)
    return Library(
        name=row.name,
        include=include[1] if include else None,
        library=folder if library else None,
        found_via=via,
    )


def _first(
    places: Sequence[tuple[str, str]], look: Callable[[str, str], str | None]
) -> tuple[str, str] | None:
    """Return the first place's name and folder: CMake looks for header and library one after the other."""
    return next(((via, found) for via, root in places if (found := look(via, root))), None)


def _places(probe: Probe, row: FilesRow, prefixes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each folder with how it was found."""
    separator = ";" if probe.windows else ":"
    for name in row.variables:
        if value := probe.variable(name):
            yield name, probe.absolute(value)
    for name in ("CMAKE_PREFIX_PATH", *_LIBRARIES_IN, *_HEADERS_IN):
        for entry in probe.names.split_path(probe.variable(name).replace(";", separator)):
            yield name, probe.absolute(entry)
    yield from ((via, folder) for folder, via in prefixes.items())
    if not probe.windows:
        for folder in (*row.folders, *SYSTEM):
            yield "system", folder


def _library_in(probe: Probe, row: FilesRow, via: str, root: str) -> str | None:
    if via in _HEADERS_IN:
        return None
    folders = ("",) if via in _LIBRARIES_IN else (*_of_system(probe, via, root, "lib"), *_LIBRARIES)
    return next((each for each in _within(probe, root, folders) if _has_files(probe, row, each)), None)


def _header_in(probe: Probe, row: FilesRow, via: str, root: str) -> str | None:
    if via in _LIBRARIES_IN:
        return None
    folders = (*_of_system(probe, via, root, "include"), *_INCLUDES)
    headers = ((each, name) for each in _within(probe, root, folders) for name in row.headers)
    return next((each for each, name in headers if probe.is_file(probe.join(each, name))), None)


def _of_system(probe: Probe, via: str, root: str, kind: str) -> tuple[str, ...]:
    """Return the folder in which Debian keeps what is of one architecture."""
    return (f"{kind}/{multiarch_triplet(probe)}",) if via == "system" and root == "/usr" else ()


def _within(probe: Probe, root: str, parts: Sequence[str]) -> list[str]:
    return [probe.join(root, *part.split("/")) if part else root for part in parts]


def _has_files(probe: Probe, row: FilesRow, folder: str) -> bool:
    endings = (".lib", "_dll.lib") if probe.windows else (".so", ".a")
    start = "" if probe.windows else "lib"
    names = (f"{start}{name}{ending}" for name in row.libraries for ending in endings)
    return any(probe.exists(probe.join(folder, name)) for name in names)
