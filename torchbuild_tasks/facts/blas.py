"""Find libraries for BLAS and LAPACK where PyTorch's CMake files search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchbuild_tasks.catalog import BlasRow
from torchbuild_tasks.facts.probe import Probe, multiarch_triplet
from torchbuild_tasks.model import Library

SYSTEM = ("/usr/local", "/usr")
_INCLUDES = ("include", "include/openblas", "")
_LIBRARIES = ("lib", "lib64", "lib/intel64", "lib/x64", "")


def look_for_blas(probe: Probe, rows: Sequence[BlasRow], prefixes: Sequence[str] = ()) -> tuple[Library, ...]:
    """Return each linkable library once, in the order of the rows.

    Args:
        probe: the machine, with the variables that flags and settings name.
        prefixes: of conda environments, which a build is given as CMAKE_PREFIX_PATH.
    """
    libraries = []
    for row in rows:
        places = _places(probe, row, prefixes)
        library = next((one for via, root in places if (one := _look(probe, row, via, root))), None)
        if library:
            libraries.append(library)
    return tuple(libraries)


def _places(probe: Probe, row: BlasRow, prefixes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each folder with how it was found."""
    separator = ";" if probe.windows else ":"
    for name in row.variables:
        if value := probe.variable(name):
            yield name, probe.absolute(value)
    for name in ("CMAKE_PREFIX_PATH", "CMAKE_LIBRARY_PATH", "LD_LIBRARY_PATH"):
        for entry in probe.names.split_path(probe.variable(name).replace(";", separator)):
            yield name, probe.absolute(entry)
    for prefix in prefixes:
        yield "conda", probe.join(prefix, "Library") if probe.windows else prefix
    if not probe.windows:
        for folder in (*row.folders, *SYSTEM):
            yield "system", folder


def _look(probe: Probe, row: BlasRow, via: str, root: str) -> Library | None:
    if via in ("CMAKE_LIBRARY_PATH", "LD_LIBRARY_PATH"):
        libraries: tuple[str, ...] = (root,)
    else:
        libraries = tuple(probe.join(root, part) if part else root for part in _LIBRARIES)
    if via == "system" and root == "/usr":
        libraries = (probe.join(root, "lib", multiarch_triplet(probe)), *libraries)
    folder = next((each for each in libraries if _has_files(probe, row, each)), None)
    if folder is None:
        return None
    includes = [probe.join(root, part) if part else root for part in _INCLUDES]
    headers = ((each, probe.join(each, name)) for each in includes for name in row.headers)
    include = next((each for each, path in headers if probe.is_file(path)), None)
    if row.headers and include is None:
        return None
    return Library(name=row.name, include=include, library=folder, found_via=via)


def _has_files(probe: Probe, row: BlasRow, folder: str) -> bool:
    endings = (".lib", "_dll.lib") if probe.windows else (".so", ".a")
    start = "" if probe.windows else "lib"
    names = (f"{start}{name}{ending}" for name in row.libraries for ending in endings)
    return any(probe.exists(probe.join(folder, name)) for name in names)
