"""The files that patches change: read once, changed in memory, written in the end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from torchbuild_tasks.errors import PatchRefused
from torchbuild_tasks.system.files import told_as, unlink, write_atomic

ABSENT = ""


def sha(content: bytes | None) -> str:
    """The sha256 of a file's content; "" for no file."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


class PatchedFiles:
    """The files of one checkout as they will be; None is no file."""

    def __init__(self, root: Path) -> None:
        self._root, self._real = root, root.resolve()
        self._old: dict[str, bytes | None] = {}
        self._new: dict[str, bytes | None] = {}

    def get(self, path: str) -> bytes | None:
        """The content as it is so far."""
        if path not in self._old:
            self._old[path] = self._read(path)
        return self._new.get(path, self._old[path])

    def set(self, path: str, content: bytes | None) -> None:
        """What the file shall hold."""
        self._new[path] = content

    def obstacle(self, path: str) -> str:
        """Why this path cannot be read, changed or made as a file of the checkout; "" when it can."""
        file = self._root / path
        try:
            real = file.resolve()
        except (OSError, RuntimeError) as error:
            return str(error)
        if os.path.normcase(real) != os.path.normcase(self._real / path):
            return f"it leads to {real}"
        return "it is no file" if os.path.lexists(file) and not file.is_file() else ""

    def _read(self, path: str) -> bytes | None:
        with contextlib.suppress(OSError):
            if not self.obstacle(path):
                return (self._root / path).read_bytes()
        return None

    @property
    def changes(self) -> dict[str, bytes | None]:
        """What has to be written: the files that are not as they shall be."""
        return {path: content for path, content in self._new.items() if content != self._old[path]}

    def check(self) -> None:
        """Refuse before the first file is written when one of them cannot be.

        Raises:
            PatchRefused: a file or its folder is not writable.
        """
        for path in self.changes:
            file = self._root / path
            folder = next(each for each in file.parents if each.exists())
            locked = [each for each in (file, folder) if each.exists() and not os.access(each, os.W_OK)]
            if locked:
                raise PatchRefused(
                    f"{path} has to be changed, and {locked[0]} is not writable. Nothing was changed.",
                    next_step=f"Make it writable: chmod u+w {locked[0]}",
                )

    def write(self) -> None:
        """Replace the files, each at once, with the rights that they have.

        Raises:
            PatchRefused: one cannot be written.
        """
        for path, content in self.changes.items():
            file = self._root / path
            with told_as(PatchRefused, file):
                if content is None:
                    unlink(file, missing_ok=True)
                    self._drop_empty(file.parent)
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
            mode = file.stat().st_mode if file.exists() else None
            write_atomic(file, content, error=PatchRefused)
            if mode is not None:
                with contextlib.suppress(OSError):
                    file.chmod(stat.S_IMODE(mode))

    def _drop_empty(self, folder: Path) -> None:
        """git knows no empty folder, so one that a patch made goes with its last file."""
        with contextlib.suppress(OSError):
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent
