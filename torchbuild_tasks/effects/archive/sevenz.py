"""Reads 7z archives with py7zr."""

from __future__ import annotations

import contextlib
import io
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from torchbuild_tasks.effects.archive.filling import Filling
from torchbuild_tasks.effects.archive.members import LINK_LIMIT, Kind, Member, parts_of, refuse
from torchbuild_tasks.errors import ArchiveRefused

if TYPE_CHECKING:
    from py7zr import SevenZipFile
    from py7zr.io import WriterFactory
    from py7zr.py7zr import ArchiveFile


@contextlib.contextmanager
def _opened(archive: Path, name: str) -> Iterator[SevenZipFile]:
    from py7zr import SevenZipFile
    from py7zr.exceptions import PasswordRequired, UnsupportedCompressionMethodError

    try:
        # Of a file that is open already one thread reads, so that memory stays bounded.
        with archive.open("rb") as file, SevenZipFile(file) as opened:
            if opened.needs_password():
                refuse(name, "is encrypted")
            yield opened
    except PasswordRequired:
        refuse(name, "is encrypted")
    except UnsupportedCompressionMethodError as error:
        raise ArchiveRefused(
            f"{name} is packed in a way that py7zr cannot read: {error.message}",
            next_step="Unpack it with 7-Zip, pack the folder as .zip, and name that file in a row of "
            "torchbuild.toml (docs/helpers.md); or set the variables of that helper to the folder.",
        ) from error


def read_7z(archive: Path, filling: Filling) -> None:
    """Unpack a 7z archive; solid blocks are decompressed piece by piece, never whole."""
    with _opened(archive, filling.tree.archive) as opened:
        kinds = _announce(opened, filling)
        pen = _Pen(filling, kinds)
        try:
            # py7zr refuses to extract a member for the folder itself, which py7zr writes.
            wanted = [name for name in opened.namelist() if parts_of(name)]
            opened.extract(filling.folder, wanted, factory=_factory(pen))
        finally:
            pen.lift()


def _announce(opened: SevenZipFile, filling: Filling) -> dict[str, Kind]:
    """The kind of every member by its path."""
    members = [_member(info, filling.tree.archive) for info in getattr(opened, "files", ())]
    kinds = {filling.announce(member): member.kind for member in members}
    filling.total = filling.tree.size
    return kinds


def _member(info: ArchiveFile, archive: str) -> Member:
    kind = _sevenz_kind(info, archive)
    if kind == "folder" and info.uncompressed:
        refuse(archive, "is a folder with bytes of its own", info.filename)
    return Member(
        name=info.filename,
        kind=kind,
        size=info.uncompressed,
        executable=bool((info.posix_mode or 0) & 0o111),
    )


def _sevenz_kind(info: ArchiveFile, archive: str) -> Kind:
    if info.is_junction:
        refuse(archive, "is a junction", info.filename)
    if info.st_fmt not in (None, 0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        refuse(archive, "is a device, a pipe or a socket", info.filename)
    if info.is_symlink:
        return "link"
    return "folder" if info.is_directory or info.st_fmt == stat.S_IFDIR else "file"


class _Pen:
    """Writes one member after the other, as py7zr comes to it."""

    def __init__(self, filling: Filling, kinds: Mapping[str, Kind]) -> None:
        self._filling, self._kinds = filling, kinds
        self._path = ""
        self._out: BinaryIO | None = None

    def turn_to(self, place: str) -> None:
        """Begin the member that py7zr calls by the place it would have."""
        self.lift()
        self._path = Path(place).relative_to(self._filling.folder).as_posix()
        kind = self._kinds[self._path]
        # py7zr takes some folders for empty files; those are made at the end, with all folders.
        self._out = self._filling.create(self._path) if kind == "file" else io.BytesIO()

    def write(self, data: bytes) -> None:
        """Add to the member."""
        assert self._out is not None
        if not isinstance(self._out, io.BytesIO):
            self._filling.put(self._out, data)
        elif self._out.write(data) and self._out.tell() > LINK_LIMIT:
            refuse(self._filling.tree.archive, "is a link to an endless name", self._path)

    def lift(self) -> None:
        """End the member that was begun last."""
        out, self._out = self._out, None
        if isinstance(out, io.BytesIO) and self._kinds[self._path] == "link":
            self._filling.link(self._path, out.getvalue().decode())
        elif out is not None:
            out.close()


def _factory(pen: _Pen) -> WriterFactory:
    """The pen as py7zr wants it: an object for every member, made when its turn comes."""
    from py7zr.io import Py7zIO, WriterFactory

    class Place(Py7zIO):
        length = 0

        def write(self, s: bytes | bytearray) -> int:
            pen.write(bytes(s))
            self.length += len(s)
            return len(s)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return 0

        def flush(self) -> None:
            pass

        def size(self) -> int:
            return self.length

    class Factory(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            pen.turn_to(filename)
            return Place()

    return Factory()
