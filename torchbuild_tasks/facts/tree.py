"""The source tree: whether it is a torch checkout, and in which state."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Sequence

from torchbuild_tasks.facts import build_tree
from torchbuild_tasks.facts.git import Repository, look_at_git
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.pyproject import look_at_pyproject
from torchbuild_tasks.facts.submodules import empty_folders, paths_in
from torchbuild_tasks.model import Tree

MARKS = ("version.txt", "CMakeLists.txt", "torch/__init__.py", "c10")
DIGESTED = ("version.txt", "pyproject.toml", "setup.py", "requirements.txt", "CMakeLists.txt")
SAMPLE_MARK = "__sample__"

_ARCHIVE_NAME = re.compile(r"pytorch-[\w.-]+")


def look_at_tree(probe: Probe, root: str, front_end: Sequence[str] = (), *, tags: bool = False) -> Tree:
    """Everything about the folder `root`; `problem` when it is no checkout that can be read.

    `front_end` are the files, relative to it, that the Python front end reads (`*` in the last part);
    with `tags` git is also asked which tags the commit has.

    The root is reported without symbolic links, as CMake and pip will record it. A
    checkout from which only the submodules are missing is read in full all the same.
    """
    root = probe.realpath(probe.absolute(root))
    looked = tuple(probe.join(root, mark) for mark in MARKS)
    if problem := _no_checkout(probe, root):
        return Tree(root=root, problem=problem, looked=looked)
    project = look_at_pyproject(probe, root)
    repository = look_at_git(probe, root, tags=tags)
    empty = empty_folders(probe, root)
    build_dir = project.build_dir or probe.join(
        root, "build"
    )  # where a plan puts it when the tree names none
    return Tree(
        root=root,
        problem=project.problem or _archive(probe, root, repository, empty),
        looked=looked,
        sample=SAMPLE_MARK in (probe.read(probe.join(root, "torch/__init__.py")) or ""),
        version=_version(probe, root),
        era=project.era,
        backend=project.backend,
        build_dir=project.build_dir,
        requires=project.requires,
        asks=project.asks,
        git=repository.there,
        commit=repository.commit,
        dirty=repository.dirty,
        tags=repository.tags,
        empty=empty,
        writable=probe.writable(root),
        digests=_digests(probe, root, front_end),
        cache=build_tree.look_at_cache(probe, build_dir),
        previous=build_tree.look_at_manifest(probe, build_dir),
        installed=build_tree.look_at_install(probe, build_dir),
    )


def _no_checkout(probe: Probe, root: str) -> str | None:
    if not probe.exists(root):
        return "no such folder"
    if not probe.is_dir(root):
        return "a file, not a folder"
    missing = [mark for mark in MARKS if not probe.exists(probe.join(root, mark))]
    if not missing:
        return None
    return f"no torch checkout, for it holds no {', no '.join(missing)}{_nearby(probe, root)}"


def _nearby(probe: Probe, root: str) -> str:
    """Where the checkout is, when the user named the folder around it or one inside it."""
    for name in probe.children(root):
        if _is_checkout(probe, probe.join(root, name)):
            return f"; its folder {name} is one"
    folder = root
    while (above := probe.names.parent(folder)) != folder:
        folder = above
        if _is_checkout(probe, folder):
            return f"; the folder {folder} around it is one"
    return ""


def _is_checkout(probe: Probe, folder: str) -> bool:
    return all(probe.exists(probe.join(folder, mark)) for mark in MARKS)


def _archive(probe: Probe, root: str, repository: Repository, empty: tuple[str, ...]) -> str | None:
    """GitHub's "Download ZIP": all files but those of submodules, and no git to fetch them with."""
    name = probe.names.base(root)
    named = [path for path in paths_in(probe, root) if path.startswith("third_party/")]
    if repository.there or not _ARCHIVE_NAME.fullmatch(name) or not empty or not set(named) <= set(empty):
        return None
    return (
        f"looks like a source archive from GitHub (called {name}, without .git): "
        "such archives lack the submodules, and third_party is empty"
    )


def _version(probe: Probe, root: str) -> str | None:
    words = (probe.read(probe.join(root, "version.txt")) or "").split()
    return words[0] if words else None


def _digests(probe: Probe, root: str, front_end: Sequence[str]) -> dict[str, str]:
    """The first 16 hex digits of the SHA-256 of each file that decides how a build is configured.

    With the line ends of Linux: git's core.autocrlf changes the bytes of a file and nothing else.
    """
    names = (*DIGESTED, *(name for pattern in front_end for name in _named(probe, root, pattern)))
    contents = {name: probe.read_bytes(probe.join(root, name)) for name in dict.fromkeys(names)}
    return {
        name: hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()[:16]
        for name, data in contents.items()
        if data is not None
    }


def _named(probe: Probe, root: str, pattern: str) -> list[str]:
    """The files that a pattern means, relative to the root."""
    folder, slash, last = pattern.rpartition("/")
    if "*" not in last:
        return [pattern]
    return [
        f"{folder}{slash}{name}"
        for name in probe.children(probe.join(root, folder))
        if fnmatch.fnmatchcase(name, last)
    ]
