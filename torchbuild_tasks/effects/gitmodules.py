"""What a repository says of its submodules: their settings, and the commits that a tree names."""

from __future__ import annotations

from typing import Final

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


def commits(git: Git, commit: str) -> dict[str, str]:
    """The commits of submodules in the tree of a commit, by their paths."""
    entries = git.run("ls-tree", "-r", "-z", "--full-tree", commit).split("\0")
    parts = (entry.partition("\t") for entry in entries)
    return {path: about.split(" ")[2] for about, _, path in parts if about.startswith("160000 ")}
