"""Where the headers and libraries of a toolkit lie, which differs by who packaged it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from torchbuild_tasks.facts.probe import Probe

# Below the root. CUDA 13 for Windows and older ones for Linux differ in lib and lib64 only.
INCLUDES = ("include", "extras/CUPTI/include")
LIBRARIES = ("lib64", "lib", "lib/x64", "extras/CUPTI/lib64")
# A toolkit that can compile for other machines has those targets, too.
TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("aarch64-linux", "sbsa-linux")}
# Debian's and Ubuntu's package nvidia-cuda-toolkit: programs here, the rest where the system has it.
DEBIAN = ("/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda")
CUDART = ("libcudart.so", "cudart.lib")


class Folders(msgspec.Struct, frozen=True):
    """Folders with headers, and the names of the files in each folder with libraries."""

    includes: tuple[str, ...]
    libraries: Mapping[str, frozenset[str]]


def folders_of(probe: Probe, root: str) -> Folders:
    """The folders of the toolkit at `root`, best first; they need not exist."""
    targets = [f"targets/{name}" for name in TARGETS.get(probe.uname().machine or "", ())]
    includes = [probe.join(root, part) for part in (*INCLUDES, *(f"{t}/include" for t in targets))]
    libraries = [probe.join(root, part) for part in (*LIBRARIES, *(f"{t}/lib" for t in targets))]
    if root in DEBIAN:
        includes.append("/usr/include")
        libraries += [f"/usr/lib/{multiarch(probe)}"]
    return listed(probe, includes, libraries)


def listed(probe: Probe, includes: list[str], libraries: list[str]) -> Folders:
    """The same for folders that are known."""
    return Folders(tuple(includes), {folder: frozenset(probe.children(folder)) for folder in libraries})


def multiarch(probe: Probe) -> str:
    """What Debian calls the folder for libraries of this machine: x86_64-linux-gnu."""
    return f"{probe.uname().machine or 'x86_64'}-linux-gnu"


def find_header(probe: Probe, folders: Folders, *names: str) -> str | None:
    """The first of these headers that is there."""
    paths = (probe.join(folder, name) for name in names for folder in folders.includes)
    return next((path for path in paths if probe.is_file(path)), None)


def find_library(probe: Probe, folders: Folders, name: str) -> str | None:
    """The file of a library: the one to link, else one that programs load, else a static one."""
    return next(_files_of(probe, folders, name), None)


def _files_of(probe: Probe, folders: Folders, name: str) -> Iterator[str]:
    for wanted in (f"lib{name}.so", f"{name}.lib"):
        yield from (
            probe.join(folder, wanted) for folder, names in folders.libraries.items() if wanted in names
        )
    for folder, names in folders.libraries.items():
        loaded = sorted(file for file in names if file.startswith(f"lib{name}.so."))
        yield from (probe.join(folder, file) for file in loaded)
    for static in (f"lib{name}_static.a", f"lib{name}.a"):
        yield from (
            probe.join(folder, static) for folder, names in folders.libraries.items() if static in names
        )


def runtime_folder(folders: Folders) -> str | None:
    """The folder with the CUDA runtime to link; a wheel of NVIDIA's has only the one that programs load."""
    return next((f for f, names in folders.libraries.items() if any(n in names for n in CUDART)), None)
