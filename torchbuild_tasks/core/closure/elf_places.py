"""Where ld.so looks for a library, in its order.

Sources: ld.so(8); _dl_map_object, open_path and fillin_rpath in elf/dl-load.c of glibc 2.36.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from torchbuild_tasks.core.closure.graph import Node
from torchbuild_tasks.model.closure import Loader

_PLATFORMS = {"x86_64": "x86_64", "aarch64": "aarch64", "ppc64le": "power9"}


def places(name: str, needer: Node, program: Node | None, loader: Loader) -> Iterator[tuple[str, str]]:
    """The paths that are tried for `name`, each with the rule that leads there.

    Args:
        name: as DT_NEEDED has it; with a slash it is a path, and nothing is searched.
        needer: the library that needs it.
        program: the executable of the process, whose RPATH counts for all.
        loader: the process.
    """
    if "/" in name:
        yield _expand(name, needer, loader), "a path of its own"
        return
    for folder, how in _folders(needer, program, loader):
        for level in (*loader.levels, ""):
            yield posixpath.join(folder, level, name), how
    if not needer.image.no_defaults:
        for path in loader.cache.get(name, ()):
            yield path, "/etc/ld.so.cache"
        for folder in loader.defaults:
            for level in (*loader.levels, ""):
                yield posixpath.join(folder, level, name), "a folder of the system"
    for folder in loader.extra:
        yield posixpath.join(folder, name), "torch's own search of NVIDIA's wheels"


def _folders(needer: Node, program: Node | None, loader: Loader) -> Iterator[tuple[str, str]]:
    """RPATH (of all that led here, unless the library has a RUNPATH), LD_LIBRARY_PATH, RUNPATH."""
    if not needer.image.runpath:
        above: Node | None = needer
        while above is not None:
            yield from _said(above, loader, "RPATH")
            above = above.loader
        if program is not None and program is not needer:
            yield from _said(program, loader, "RPATH")
    for folder in loader.search_path:
        yield folder or ".", "LD_LIBRARY_PATH"
    yield from _said(needer, loader, "RUNPATH")


def _said(node: Node, loader: Loader, tag: str) -> Iterator[tuple[str, str]]:
    """The folders of a tag. Where a library has a RUNPATH, its RPATH does not count."""
    image = node.image
    folders = image.runpath if tag == "RUNPATH" else () if image.runpath else image.rpath
    for folder in folders:
        if folder:
            yield _expand(folder, node, loader), f"{tag} of {posixpath.basename(node.path)}"


def _expand(text: str, node: Node, loader: Loader) -> str:
    """Put in what $ORIGIN, $LIB and $PLATFORM stand for, with or without braces."""
    values = {
        "ORIGIN": posixpath.dirname(node.path),
        "LIB": loader.lib,
        "PLATFORM": _PLATFORMS.get(loader.machine, loader.machine),
    }
    for name, value in values.items():
        text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
    return posixpath.normpath(text)
