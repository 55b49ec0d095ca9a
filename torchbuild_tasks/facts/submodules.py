"""Which third-party folders should hold sources and hold none."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.facts.probe import Probe

FOLDER = "third_party"
# Submodules of submodules of submodules exist (tensorpipe); a link in a circle must end.
DEPTH = 5


def empty_folders(probe: Probe, root: str) -> tuple[str, ...]:
    """Folders below third_party that .gitmodules files name and that hold nothing, sorted.

    Paths are relative to `root`, with / on every system, as git writes them. A folder that
    does not exist, or holds only git's link file, holds nothing. Without .gitmodules (a
    release archive) the folders that are there are looked at themselves.
    """
    if not probe.is_file(probe.join(root, ".gitmodules")):
        children = [f"{FOLDER}/{name}" for name in probe.children(probe.join(root, FOLDER))]
        places = {path: probe.join(root, path) for path in children}
        return tuple(p for p, place in places.items() if probe.is_dir(place) and _holds_nothing(probe, place))
    named = [path for path in paths_in(probe, root) if path.startswith(f"{FOLDER}/")]
    return tuple(sorted({empty for path in named for empty in _empty(probe, root, path, DEPTH)}))


def paths_in(probe: Probe, folder: str) -> tuple[str, ...]:
    """The submodule paths that a folder's .gitmodules names, relative to that folder."""
    found = []
    for line in (probe.read(probe.join(folder, ".gitmodules")) or "").splitlines():
        key, equals, value = line.partition("=")
        path = value.strip().strip('"').rstrip("/")
        if equals and key.strip().lower() == "path" and path and ".." not in path.split("/"):
            found.append(path)
    return tuple(found)


def _empty(probe: Probe, root: str, path: str, depth: int) -> Iterator[str]:
    place = probe.join(root, path)
    if _holds_nothing(probe, place):
        yield path
    elif depth:
        for inner in paths_in(probe, place):
            yield from _empty(probe, root, f"{path}/{inner}", depth - 1)


def _holds_nothing(probe: Probe, folder: str) -> bool:
    return set(probe.children(folder)) <= {".git"}
