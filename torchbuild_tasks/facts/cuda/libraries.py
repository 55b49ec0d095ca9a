"""Find cuDNN, NCCL, MAGMA, cuSPARSELt and cuDSS outside of toolkits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchbuild_tasks.facts.cuda.toolkit_folder import (
    find_library,
    library_version,
    list_folders,
)
from torchbuild_tasks.facts.cuda.toolkits import site_folders
from torchbuild_tasks.facts.probe import Probe, multiarch_triplet, program_files
from torchbuild_tasks.model import Library, Python
from torchbuild_tasks.model.cuda import FILES, INCLUDES, LIBRARIES, NOTE, ROOTS, BuiltFor

# File names that differ from the library's name: libcusparseLt.so.
FILE_NAMES = {"cusparselt": "cusparseLt"}
SYSTEM_LIBRARIES = ("/usr/lib64", "/usr/local/lib", "/usr/lib")
CUDNN_FOR_WINDOWS = "NVIDIA/CUDNN"  # NVIDIA's installer: v9.8\\include\\12.8, v9.8\\lib\\12.8\\x64

_IN_NAME = re.compile(r"\.so\.(\d+\.\d+\.\d+)$")


class Place(NamedTuple):
    """Folders in which one of the libraries may be."""

    name: str
    found_via: str
    includes: tuple[str, ...]
    libraries: tuple[str, ...]


def look_for_libraries(probe: Probe, pythons: Sequence[Python]) -> tuple[Library, ...]:
    """Return the libraries found by variables, in the system, in conda, and in NVIDIA's wheels."""
    libraries: dict[tuple[str | None, ...], Library] = {}
    for place in _places(probe, pythons):
        if library := _look(probe, place):
            # A venv's lib64 may be a link to its lib.
            real = (
                probe.realpath(folder) if folder else None for folder in (library.include, library.library)
            )
            libraries.setdefault((library.name, *real), library)
    return tuple(libraries.values())


def _look(probe: Probe, place: Place) -> Library | None:
    folders = list_folders(probe, list(place.includes), list(place.libraries))
    version, header = library_version(probe, folders, place.name)
    file = find_library(probe, folders, FILE_NAMES.get(place.name, place.name))
    if header is None and file is None:
        return None
    parent = probe.names.parent
    root = parent(parent(header)) if header and place.name == "magma" else None  # `helpers build` makes that
    return Library(
        name=place.name,
        version=version or _version_of_file(probe, file),
        include=parent(header) if header else None,
        library=parent(file) if file else None,
        found_via=place.found_via,
        built_for=probe.value(BuiltFor, probe.join(root, *NOTE)) if root else None,
    )


def _version_of_file(probe: Probe, file: str | None) -> str | None:
    """Return the version in the target's name of links: libcudnn.so is libcudnn.so.8.9.7."""
    match = _IN_NAME.search(probe.realpath(file)) if file else None
    return match[1] if match else None


def _places(probe: Probe, pythons: Sequence[Python]) -> Iterator[Place]:
    for name in LIBRARIES:
        yield from _places_in_variables(probe, name)
        yield from _places_of_installer(probe, name) if probe.windows else _of_linux(probe, name)
        if prefix := probe.variable("CONDA_PREFIX"):
            root = probe.join(prefix, "Library") if probe.windows else prefix
            yield _below(probe, name, "CONDA_PREFIX", root)
        for folder in site_folders(probe, pythons):
            yield _below(probe, name, "NVIDIA's wheels", probe.join(folder, "nvidia", name))


def _below(probe: Probe, name: str, found_via: str, root: str) -> Place:
    libraries = tuple(probe.join(root, part) for part in ("lib64", "lib", "lib/x64"))
    return Place(name, found_via, (probe.join(root, "include"),), libraries)


def _places_in_variables(probe: Probe, name: str) -> Iterator[Place]:
    """Yield the places in variables: a root, or separate headers and library (a folder or a file)."""
    for variable in (text.format(name.upper()) for text in ROOTS):
        if value := probe.variable(variable):
            yield _below(probe, name, variable, probe.absolute(value))
    includes, with_includes = _values(probe, name, INCLUDES)
    libraries, with_libraries = _values(probe, name, FILES)
    if includes or libraries:
        folders = tuple(probe.names.parent(p) if probe.is_file(p) else p for p in libraries)
        yield Place(name, ", ".join(with_includes + with_libraries), includes, folders)


def _values(probe: Probe, name: str, texts: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the values of the variables that are set, as paths, and their names."""
    names = [variable for text in texts if probe.variable(variable := text.format(name.upper()))]
    return tuple(probe.absolute(probe.variable(variable)) for variable in names), names


def _of_linux(probe: Probe, name: str) -> Iterator[Place]:
    if name == "magma":  # where PyTorch's FindMAGMA.cmake looks without a variable
        yield _below(probe, name, "system", "/usr/local/magma")
        return
    arch = multiarch_triplet(probe)
    includes = ("/usr/include", f"/usr/include/{arch}", "/usr/local/include")
    yield Place(name, "system", includes, (f"/usr/lib/{arch}", *SYSTEM_LIBRARIES))


def _places_of_installer(probe: Probe, name: str) -> Iterator[Place]:
    """Yield the folders of cuDNN's installer for Windows: one for each of its versions and each CUDA."""
    installed = probe.join(program_files(probe), CUDNN_FOR_WINDOWS)
    for version in probe.children(installed) if name == "cudnn" else ():
        root = probe.join(installed, version)
        for cuda in probe.children(probe.join(root, "include")):
            libraries = probe.join(root, "lib", cuda, "x64")
            yield Place(name, "Program Files", (probe.join(root, "include", cuda),), (libraries,))
