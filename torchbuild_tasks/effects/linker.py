"""The folder in which a linker is called ld, for compilers that cannot be told its name."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.system.files import state_dir, told_as, unlink


def link_linker(root: Path, folder: Path, program: Path) -> None:
    """Have `folder` (in the tool's own) hold a link called ld that leads to `program`.

    Raises:
        PreflightFailed: the link cannot be made.
    """
    link = folder / "ld"
    state_dir(root)
    with told_as(PreflightFailed, link):
        folder.mkdir(exist_ok=True)
        if link.is_symlink() and link.readlink() == program:
            return
        unlink(link, missing_ok=True)
        link.symlink_to(program)
