"""What a repository says of its submodules: their settings, and the commits that a tree names."""

from __future__ import annotations

from typing import Final, Literal

from torchbuild_tasks.effects.git import Git

_KEYS: Final = r"^submodule\..*\.(path|url|update)$"


def settings(git: Git, *where: str) -> dict[str, dict[str, str]]:
    """`path`, `url` and `update` of each submodule by its name.

    Args:
        git: the repository.
        where: words of `git config` that name a .gitmodules (`--file F`, `--blob COMMIT:F`); without
            them the repository's own settings.
    """
    said = git.said("config", *where, "-z", "--get-regexp", _KEYS) or ""
    found: dict[str, dict[str, str]] = {}
    for entry in filter(None, said.split("\0")):
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("submodule.").rpartition(".")
        found.setdefault(name, {})[what] = value
    return found


def tree(git: Git, commit: str, kind: Literal["blob", "commit"]) -> dict[str, str]:
    """Return the ids of the files ("blob") or submodules ("commit") in the tree of a commit, by their paths.

    There are none where the commit is not here.
    """
    found = {}
    listed = git.said("ls-tree", "-r", "-z", "--full-tree", commit, timeout=None) or ""
    for entry in filter(None, listed.split("\0")):
        about, _, path = entry.partition("\t")
        _, what, id = about.split(" ")
        if what == kind:
            found[path] = id
    return found
