"""A folder while an archive is unpacked into it: every byte is counted, nothing overwritten."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, Final

from torchbuild_tasks.effects.archive.members import Member, Tree, refuse
from torchbuild_tasks.effects.files import told_as
from torchbuild_tasks.errors import DownloadFailed

CHUNK: Final = 1 << 20


class Filling:
    """Announce members, write them, then `finish`.

    Args:
        folder: an empty folder; its mode is what files get, executables with the x bits.
        tree: the judge of all that is announced.
        tell: told the bytes written, and the bytes there will be if that is known.
    """

    def __init__(self, folder: Path, tree: Tree, tell: Callable[[int, int | None], None]) -> None:
        self.folder, self.tree, self.done = folder, tree, 0
        self.total: int | None = None
        self._tell, self._told = tell, 0
        self._made = {""}
        self._written: set[str] = set()

    def announce(self, member: Member) -> str:
        """The path of a member; raises ArchiveRefused when it may not be."""
        return self.tree.admit(member)

    def create(self, path: str) -> BinaryIO:
        """Open an announced file for `put`; the caller closes it."""
        self._make(path.rpartition("/")[0])
        self._written.add(path)
        place = self.folder / path
        with told_as(DownloadFailed, place):
            try:
                return place.open("xb")
            except FileExistsError:  # a short name (PROGRA~1), or a system with rules of its own
                refuse(self.tree.archive, "is another member's file on this system", path)

    def put(self, out: BinaryIO, data: bytes) -> None:
        """Write to a file from `create`, within the limit of the archive."""
        self.done += len(data)
        if self.done > self.tree.limit:
            refuse(self.tree.archive, f"grows past the limit of {self.tree.limit} bytes")
        with told_as(DownloadFailed, Path(out.name)):
            out.write(data)
        if self.done - self._told >= CHUNK:
            self.tell()

    def tell(self) -> None:
        """Say how far it is."""
        self._told = self.done
        self._tell(self.done, self.total)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an announced file."""
        out = self.create(path)
        with out:
            for data in chunks:
                self.put(out, data)

    def link(self, path: str, target: str) -> None:
        """What an announced link says; it is made at the end, so that nothing is written through it."""
        self.tree.links[path] = target

    def hard_link(self, path: str, other: str) -> None:
        """An announced file that is another name of one that is there already."""
        if other not in self._written:
            refuse(self.tree.archive, f"is a hard link to {other!r}, which is no file before it", path)
        with (self.folder / other).open("rb") as source:
            self.write(path, iter(lambda: source.read(CHUNK), b""))

    def finish(self) -> None:
        """Make the links and the empty folders, and compare all with what was announced.

        A symbolic link is kept as one; on Windows, which lets few users make any, it
        becomes a copy of the file that it leads to.

        Raises:
            ArchiveRefused: a file is missing or has another size, or a link may not be made.
        """
        for folder in self.tree.folders:
            self._make(folder)
        ends = {path: self.tree.lead(path) for path in self.tree.links}
        for path, size in self.tree.files.items():
            place = self.folder / path
            if path not in self._written or place.stat().st_size != size:
                refuse(self.tree.archive, f"is shorter or longer than the {size} bytes announced", path)
        self._set_modes()
        for path, end in ends.items():
            self._make_link(path, end)
        self.total = self.done
        self.tell()

    def _make(self, path: str) -> None:
        if path not in self._made:
            with told_as(DownloadFailed, self.folder / path):
                (self.folder / path).mkdir(parents=True, exist_ok=True)
            self._made.add(path)

    def _set_modes(self) -> None:
        """Give x bits to executables only; by the folder's mode, which the umask has shaped."""
        mode = self.folder.stat().st_mode & 0o777
        for path in self.tree.files:
            with told_as(DownloadFailed, self.folder / path):
                (self.folder / path).chmod(mode if path in self.tree.executables else mode & 0o666)

    def _make_link(self, path: str, end: str) -> None:
        self._make(path.rpartition("/")[0])
        place = self.folder / path
        with told_as(DownloadFailed, place):
            if sys.platform != "win32":
                place.symlink_to(self.tree.links[path].replace("\\", "/"))
                return
            if end not in self.tree.files:
                refuse(self.tree.archive, "is a link to a folder, which Windows cannot have as a copy", path)
            shutil.copy(self.folder / end, place)
            self.tree.files[path] = self.tree.files[end]
