"""The folder in which a pre-flight compiles: empty before, gone afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.system.files import state_dir, told_as, unlink
from torchbuild_tasks.system.remove import is_folder, remove_tree

FOLDER: Final = "preflight"


@contextlib.contextmanager
def trial_folder(root: Path, sources: Mapping[str, str]) -> Iterator[Path]:
    """A folder of ours in the checkout with these files (name to text) and nothing else.

    It has one name, so that what a killed run left is found and removed by the next; the
    checkout's lock keeps two from using it. It goes however the body ends.

    Raises:
        PreflightFailed: the files cannot be written.
    """
    folder = state_dir(root) / FOLDER
    with told_as(PreflightFailed, folder):
        _remove(folder)
        folder.mkdir()
    try:
        for name, text in sources.items():
            with told_as(PreflightFailed, folder / name):
                (folder / name).write_bytes(text.encode())
        yield folder
    finally:
        with contextlib.suppress(OSError):
            _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if is_folder(folder.lstat()):
            remove_tree(folder)
        else:
            unlink(folder)
