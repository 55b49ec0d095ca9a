"""Look at submodules: empty folders, those that git can fetch, and those that setup.py checks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.requirements import parse_python

THIRD_PARTY = "third_party"
# Submodules are nested three deep (tensorpipe); a limit stops at links that form a loop.
MAX_DEPTH = 5
# Names in setup.py of 0.4 to 2.13 of the checking functions, and of the one that lists the folders.
CHECKS = ("check_file", "check_for_files")
# One of these must be there: check_for_files() in setup.py of 1.9.1 to 2.13.0; before, CMakeLists.txt.
_SIGNS = frozenset(("CMakeLists.txt", "Makefile", "setup.py", "LICENSE", "LICENSE.md", "LICENSE.txt"))
LISTS = ("get_submodule_folders", "check_submodules")


class Submodules(NamedTuple):
    """The fields of `Tree` about submodules."""

    empty: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    linkless: tuple[str, ...] = ()
    checked: tuple[str, ...] | None = None
    torn: tuple[str, ...] = ()


def look_at_submodules(probe: Probe, root: str, folders: Sequence[str], *, git: bool) -> Submodules:
    """Look at the submodules of a checkout.

    Args:
        folders: those that rows know of any release; looked at where no .gitmodules names its own.
        git: whether the root is the top of a repository.
    """
    checked = find_checked_folders(probe, root)
    looked = {path for path in checked or () if _holds_nothing(probe, probe.join(root, path))}
    empty = tuple(sorted({*_drop_unlinked(probe, root, empty_submodules(probe, root)), *looked}))
    absent: tuple[str, ...] = ()
    if not probe.is_file(probe.join(root, ".gitmodules")):
        missing = {path for path in folders if _holds_nothing(probe, probe.join(root, path))}
        absent = tuple(sorted(missing - set(empty)))
    linkless = _list_not_in_index(probe, root, (*empty, *absent)) if git else ()
    # Those that hold something, and nothing by which setup.py takes them for a submodule.
    held = ((path, probe.children(probe.join(root, path))) for path in checked or () if path not in empty)
    torn = tuple(path for path, names in held if _SIGNS.isdisjoint(names))
    return Submodules(empty, absent, linkless, checked, torn)


def empty_submodules(probe: Probe, root: str) -> tuple[str, ...]:
    """Return the empty folders that .gitmodules files name, sorted.

    Paths are relative to `root`, with / on every system, as git writes them. A folder that
    does not exist, or holds only git's link file, holds nothing. Without .gitmodules (a
    release archive) the folders that exist are looked at themselves.
    """
    if not probe.is_file(probe.join(root, ".gitmodules")):
        children = [f"{THIRD_PARTY}/{name}" for name in probe.children(probe.join(root, THIRD_PARTY))]
        places = {path: probe.join(root, path) for path in children}
        return tuple(p for p, place in places.items() if probe.is_dir(place) and _holds_nothing(probe, place))
    named = submodule_paths(probe, root)
    return tuple(sorted({empty for path in named for empty in _empty_below(probe, root, path, MAX_DEPTH)}))


def submodule_paths(probe: Probe, folder: str) -> tuple[str, ...]:
    """Return the submodule paths that a folder's .gitmodules names, relative to that folder."""
    paths = []
    for line in (probe.read(probe.join(folder, ".gitmodules")) or "").splitlines():
        key, equals, value = line.partition("=")
        path = value.strip().strip('"').rstrip("/")
        if equals and key.strip().lower() == "path" and path and ".." not in path.split("/"):
            paths.append(path)
    return tuple(paths)


def _empty_below(probe: Probe, root: str, path: str, depth: int) -> Iterator[str]:
    place = probe.join(root, path)
    if _holds_nothing(probe, place):
        yield path
    elif depth:
        for inner in submodule_paths(probe, place):
            yield from _empty_below(probe, root, f"{path}/{inner}", depth - 1)


def _holds_nothing(probe: Probe, folder: str) -> bool:
    return set(probe.children(folder)) <= {".git"}


def _drop_unlinked(probe: Probe, root: str, empty: Sequence[str]) -> tuple[str, ...]:
    """Return these folders without those that the git index of their own submodule lacks.

    gloo's .gitmodules still names third-party/googletest, which gloo removed, so it cannot be fetched.
    """
    git = probe.which("git")
    return tuple(path for path in empty if git is None or not _is_stale(probe, git, root, path))


def _is_stale(probe: Probe, git: str, root: str, path: str) -> bool:
    parts = path.split("/")
    tops = ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    top = next((each for each in tops if probe.exists(probe.join(root, each, ".git"))), None)
    if top is None:
        return False
    words = ("--no-optional-locks", "-C", probe.join(root, top), "ls-files", "--stage", "-z", "--")
    output = probe.run((git, *words, path.removeprefix(f"{top}/")))
    return output is not None and output.rc == 0 and not output.stdout.startswith("160000 ")


def _list_not_in_index(probe: Probe, root: str, missing: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that are neither a submodule in git's index nor inside one.

    A repository created from an unpacked archive has no submodules in its index, so
    `git submodule update` does nothing.
    """
    git = probe.which("git")
    if not missing or git is None:
        return ()
    ask = (git, "--no-optional-locks", "-C", root, "ls-files", "--stage", "-z", "--")
    output = probe.run((*ask, *submodule_paths(probe, root), *missing))
    if output is None or output.rc != 0:
        return ()
    links = [entry.partition("\t")[2] for entry in output.stdout.split("\0") if entry.startswith("160000 ")]
    return tuple(path for path in missing if not _has_link(probe, root, path, links))


def _has_link(probe: Probe, root: str, path: str, links: Sequence[str]) -> bool:
    """Say whether a path is a submodule, or is inside a checked-out one."""
    if path in links:
        return True
    around = next((link for link in links if path.startswith(f"{link}/")), "")
    return around != "" and probe.exists(probe.join(root, around, ".git"))


# ---------------- the submodules that setup.py requires in any build


def find_checked_folders(probe: Probe, root: str) -> tuple[str, ...] | None:
    """Return the folders that setup.py checks before it builds; None if they cannot be determined.

    The list is read from the text of this very setup.py: up to 1.8 it names every folder, from 1.9 on it
    takes all of .gitmodules, and names nested ones and those for where there is no .gitmodules.
    """
    setup = parse_python(probe.read(probe.join(root, "setup.py")) or "")
    functions = {node.name: node for node in setup.functions} if setup else {}
    if setup is None or not functions.keys() & {*CHECKS, *LISTS}:
        return None
    folders = [*_find_in_calls(setup.calls)]
    listed = [path for name in LISTS if name in functions for path in _find_in_lists(functions[name])]
    if LISTS[0] in functions and probe.is_file(probe.join(root, ".gitmodules")):
        listed = list(submodule_paths(probe, root))
    return tuple(sorted({*folders, *listed}))


def _find_in_calls(calls: Sequence[ast.Call]) -> Iterator[str]:
    """Yield the folders that the checking functions are called with."""
    for node in calls:
        if isinstance(node.func, ast.Name) and node.func.id in CHECKS:
            parts = _parts(node.args[0]) if node.args else None
            if parts and node.func.id == CHECKS[0]:
                parts.pop()  # it is given a file
            if parts and parts[0] == THIRD_PARTY and len(parts) > 1:
                yield "/".join(parts)


def _find_in_lists(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the folders in lists that a function iterates over; plain names are in third_party."""
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.List, ast.Tuple)):
            for item in node.iter.elts:
                if isinstance(item, ast.Constant) and isinstance(item.value, str):
                    below = item.value.startswith(f"{THIRD_PARTY}/")
                    yield item.value if below else f"{THIRD_PARTY}/{item.value}"


def _parts(node: ast.expr) -> list[str] | None:
    """Return the parts of `os.path.join(third_party_path, "a")` or `THIRD_PARTY_DIR / "a"`, else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.split("/")
    if isinstance(node, ast.Name):
        return [THIRD_PARTY] if THIRD_PARTY in node.id.lower() else [] if node.id.lower() == "cwd" else None
    pieces: Sequence[ast.expr] = ()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        pieces = (node.left, node.right)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        pieces = node.args
    nested = [_parts(piece) for piece in pieces]
    known = [each for each in nested if each is not None]
    return [part for each in known for part in each] if pieces and len(known) == len(nested) else None
