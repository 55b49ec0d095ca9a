"""Which third-party folders should hold sources and hold none."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.facts.probe import Probe

FOLDER = "third_party"
# Submodules of submodules of submodules exist (tensorpipe); a link in a circle must end.
DEPTH = 5


def empty_folders(probe: Probe, root: str) -> tuple[str, ...]:
    """Folders below third_party that .gitmodules files name and that hold nothing, sorted.

    Paths are relative to `root`. A folder that does not exist, or holds only git's link
    file, holds nothing. Without .gitmodules (a release archive) the folders that are
    there are looked at themselves.
    """
    if not probe.is_file(f"{root}/.gitmodules"):
        children = [f"{FOLDER}/{name}" for name in probe.children(f"{root}/{FOLDER}")]
        return tuple(
            p for p in children if probe.is_dir(f"{root}/{p}") and _holds_nothing(probe, f"{root}/{p}")
        )
    named = [path for path in paths_in(probe, root) if path.startswith(f"{FOLDER}/")]
    return tuple(sorted({empty for path in named for empty in _empty(probe, root, path, DEPTH)}))


def paths_in(probe: Probe, folder: str) -> tuple[str, ...]:
    """The submodule paths that a folder's .gitmodules names, relative to that folder."""
    found = []
    for line in (probe.read(f"{folder}/.gitmodules") or "").splitlines():
        key, equals, value = line.partition("=")
        path = value.strip().strip('"').rstrip("/")
        if equals and key.strip().lower() == "path" and path and ".." not in path.split("/"):
            found.append(path)
    return tuple(found)


def _empty(probe: Probe, root: str, path: str, depth: int) -> Iterator[str]:
    if _holds_nothing(probe, f"{root}/{path}"):
        yield path
    elif depth:
        for inner in paths_in(probe, f"{root}/{path}"):
            yield from _empty(probe, root, f"{path}/{inner}", depth - 1)


def _holds_nothing(probe: Probe, folder: str) -> bool:
    return set(probe.children(folder)) <= {".git"}
