"""Which saved files start a build: all but what builds, editors and tools write beside the sources."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.core.outputs import Outputs

FOLDERS: Final = frozenset(
    (
        *(".git", ".hg", ".torchbuild", "__pycache__", "dist", "node_modules"),
        *(".idea", ".vscode", ".vs", ".cache", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".lintbin"),
    )
)
# Vim, Emacs, Kate, GNOME's and JetBrains' editors, Visual Studio, and what anybody may call temporary.
FILES: Final = (
    *("*.swp", "*.swo", "*.swx", "*~", ".#*", "#*#", "4913", ".*.kate-swp", ".goutputstream-*"),
    *("*___jb_tmp___", "*___jb_old___", "*.tmp", "*.TMP", "*.pyc", "*.log", "env_set.*", ".DS_Store"),
)
_SHOWN: Final = 4


def starts_build(path: str, outputs: Outputs) -> bool:
    """Whether the save of a file, relative to the checkout with `/`, is worth a build."""
    *folders, name = path.split("/")
    if FOLDERS.intersection(folders) or name in FOLDERS:
        return False
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in FILES) and not outputs.matches(path)


def listed(paths: Sequence[str]) -> str:
    """The first of them, and how many more."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
