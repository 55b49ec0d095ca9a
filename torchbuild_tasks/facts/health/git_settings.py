"""The settings of git that decide whether a checkout is what upstream has."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Tree

# None of these can hold a login, as url.*.insteadOf and http.extraHeader do.
GIT_SETTINGS: Final = ("core.autocrlf", "core.longpaths", "core.symlinks", "http.sslverify")


def git_settings(probe: Probe, root: str) -> dict[str, str]:
    """What git would use in the checkout, by lower-case name; empty without git."""
    git = probe.which("git")
    if git is None or not probe.is_dir(root):
        return {}
    pattern = "^(" + "|".join(name.replace(".", r"\.") for name in GIT_SETTINGS) + ")$"
    said = probe.run((git, "-C", root, "config", "--get-regexp", pattern))
    lines = said.stdout.splitlines() if said and said.rc == 0 else []
    pairs = (line.partition(" ") for line in lines)
    # A name alone is true; a later line wins.
    return {name.lower(): value.strip().lower() or "true" for name, _, value in pairs}


def git_refuses(probe: Probe, tree: Tree) -> bool:
    """Whether git will not answer about this checkout because it belongs to another user."""
    git = probe.which("git")
    if not tree.git or tree.commit or git is None:
        return False
    said = probe.run((git, "-C", tree.root, "rev-parse", "--git-dir"))
    return said is not None and said.rc != 0 and "dubious ownership" in said.stderr
