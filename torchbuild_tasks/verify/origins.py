"""Whether libraries come from where the plan says: what a process loaded, and what RPATHs name. Pure.

A torch that finds its own libraries in the build tree works until that tree is cleaned, and then fails, or
silently runs what the next build put there.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from torchbuild_tasks.verify.judge import lies_in

# Torch's own libraries: of its package and nowhere else.
_OWN: Final = re.compile(r"(?:lib)?(?:c10|torch|caffe2|shm)(?:_\w+)?\.(?:so|dll)\b", re.IGNORECASE)
# CUDA's, which come with the toolkit, the wheels or the system; the driver (libcuda) is always the system's.
_CUDA: Final = re.compile(
    r"(?:lib)?(?:cudart|cudnn|cublas|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvjitlink|cupti|nvtoolsext)",
    re.IGNORECASE,
)
_SYSTEM: Final = ("/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "C:\\Windows")


def misplaced(
    loaded: Sequence[str], package: Sequence[str], places: Sequence[str], built: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return what is wrong with where libraries were loaded from, and those of nowhere that was planned.

    Args:
        loaded: the files, without links.
        package: the folders of torch.
        places: the folders that the plan and its Python bring libraries from.
        built: those of `loaded` that lie in a tree that CMake builds in.
    """
    wrong, elsewhere = [], []
    for file in loaded:
        name = re.split(r"[/\\]", file)[-1]
        if _inside(file, package):
            continue
        if _OWN.match(name):
            wrong.append(f"{file} was loaded, and torch's own libraries are in {' and '.join(package)}")
        elif file in built:
            wrong.append(f"{file} was loaded, which is in a build tree")
        elif not _inside(file, (*places, *_SYSTEM)):
            if _CUDA.match(name):
                wrong.append(f"{file} was loaded, which is not of the CUDA that was planned")
            elsewhere.append(file)
    return wrong, elsewhere


def stray_folders(
    rpaths: Mapping[str, Sequence[str]], package: Sequence[str], checkout: str, built: Collection[str]
) -> Iterator[str]:
    """Yield the RPATH entries that point out of the package into a build tree, or hang on the current folder.

    Args:
        rpaths: what each library has in RPATH and RUNPATH.
        package: the folders of torch.
        checkout: the checkout that it was built in.
        built: the folders among them, without `$ORIGIN`, that lie in a tree that CMake builds in.
    """
    for file, folders in rpaths.items():
        for text in folders:
            folder = expand(text, file)
            if not folder.startswith("/"):
                yield f"{file} has {text!r} in its RPATH, which is looked for in the current folder"
            elif not _inside(folder, package) and (folder in built or lies_in(folder, checkout)):
                yield f"{file} has {text!r} in its RPATH, which is in a build tree and not in the package"


def expand(text: str, file: str) -> str:
    """Return the folder that an RPATH entry of a file means."""
    folder = re.sub(r"\$(?:ORIGIN\b|\{ORIGIN\})", lambda _: posixpath.dirname(file), text)
    return posixpath.normpath(folder) if folder.startswith("/") else folder


def _inside(file: str, folders: Sequence[str]) -> bool:
    return any(lies_in(file, folder) for folder in folders)
