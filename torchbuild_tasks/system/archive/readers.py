"""Read archives: one function for each kind announces its members and writes them.

Zip and tar are the standard library's, 7z is py7zr's. Every name, size and link goes through
`Filling` (system/archive/members.py), which refuses what may not be unpacked; nothing is
extracted by the libraries themselves. A reader takes one pass, in bounded memory.
"""

from __future__ import annotations

import contextlib
import fnmatch
import gzip
import io
import re
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol

from torchbuild_tasks.errors import ArchiveRefused
from torchbuild_tasks.model.wheel import Kind, Member
from torchbuild_tasks.system.archive.members import (
    CHUNK,
    LIMIT,
    LINK_LIMIT,
    Filling,
    fault,
    parts_of,
    refuse,
)

if TYPE_CHECKING:
    from py7zr import SevenZipFile
    from py7zr.io import WriterFactory
    from py7zr.py7zr import ArchiveFile


_WHEEL_SCRIPT: Final = re.compile(r"[^/]+\.data/scripts/.")
# For a zip member: the system whose attributes hold a Unix mode, and the flags of encryption, of strong
# encryption (both as in zipfile.py of Python 3.11) and of an encrypted directory (UNCONFIRMED).
_UNIX: Final = 3
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_BETWEEN: Final = 4 << 20  # bytes of tar headers between two members


class Readable(Protocol):
    """A file open for reading, of any decompressor."""

    def read(self, size: int = -1, /) -> bytes: ...


OpenPacked = Callable[[Path], contextlib.AbstractContextManager[Readable]]  # of bz2, gzip, lzma


def read_file(archive: Path, filling: Filling) -> None:
    """Copy an "archive" that is a program itself."""
    size = archive.stat().st_size
    path = filling.announce(Member(name=archive.name, size=size, executable=True))
    filling.total = size
    with archive.open("rb") as file:
        filling.write(path, _chunks(file))


def _chunks(file: Readable) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _kind(filling: Filling, name: str, mode: int) -> Kind:
    """Return the kind of a member by the type bits of its Unix mode; without any it is a file."""
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        refuse(filling.tree.archive, "is a device, a pipe or a socket", name)
    return "file"


# ---------------------------------------------------------------- zip


def read_zip(archive: Path, filling: Filling) -> None:
    """Unpack a zip archive; in a wheel, files below `*.data/scripts/` are executable."""
    with zipfile.ZipFile(archive) as opened:
        wheel = archive.suffix == ".whl"
        members = [(info, _zip_member(filling, info, wheel)) for info in opened.infolist()]
        paths = [(info, member, filling.announce(member)) for info, member in members]
        filling.total = filling.tree.size
        for info, member, path in paths:
            if member.kind == "folder":
                continue
            with opened.open(info) as file:
                if member.kind == "link":
                    filling.link(path, file.read(LINK_LIMIT).decode())
                else:
                    filling.write(path, _chunks(file))


def _zip_member(filling: Filling, info: zipfile.ZipInfo, wheel: bool) -> Member:
    name = info.orig_filename  # `filename` is cut at a zero byte, and differs between systems
    if info.flag_bits & _ENCRYPTED:
        refuse(filling.tree.archive, "is encrypted", name)
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    kind = "folder" if name.endswith(("/", "\\")) else _kind(filling, name, mode)
    script = wheel and _WHEEL_SCRIPT.match(name) is not None
    return Member(name=name, kind=kind, size=info.file_size, executable=script or bool(mode & 0o111))


# ---------------------------------------------------------------- tar, conda


def read_tar(open_packed: OpenPacked, archive: Path, filling: Filling) -> None:
    """Unpack a packed tar archive, in one pass."""
    with open_packed(archive) as file:
        _read_tar(file, filling)


def read_conda(archive: Path, filling: Filling) -> None:
    """Unpack a conda package: a zip that holds `pkg-*.tar.zst` and `info-*.tar.zst`, in one pass each."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        for pattern in ("pkg-*.tar.zst", "info-*.tar.zst"):
            parts = fnmatch.filter(names, pattern)
            if len(parts) != 1:
                refuse(filling.tree.archive, f"holds {len(parts)} files {pattern}, not one")
            with opened.open(parts[0]) as packed, zstd.open(packed) as file:
                _read_tar(file, filling)


class _Metered:
    """A stream with a limit for the bytes between two members: a header could ask for any amount."""

    def __init__(self, file: Readable, archive: str) -> None:
        self._file = file
        self._archive = archive
        self.left: int | None = None

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                refuse(self._archive, f"has {_BETWEEN} bytes between two members")
        return data


class _Strict(tarfile.TarInfo):
    """Tar headers that raise an error if they are broken, instead of ending the archive silently."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> _Strict:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # zeros: the end of the archive
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"broken header: {error}") from error


def _read_tar(file: Readable, filling: Filling) -> None:
    for opened, info in _tar_members(file, filling.tree.archive):
        _read_member(opened, info, filling)


def _tar_members(file: Readable, archive: str) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """Yield each member of a tar while the stream is at its data."""
    metered = _Metered(file, archive)
    metered.left = _BETWEEN
    with tarfile.open(fileobj=metered, mode="r|", tarinfo=_Strict) as opened:  # type: ignore[call-overload]
        while (info := opened.next()) is not None:
            metered.left = None
            yield opened, info
            opened.members.clear()  # tarfile would keep all members in memory
            metered.left = _BETWEEN
        while metered.read(CHUNK):  # up to the checksum at the very end
            pass


TAR_BROKEN: Final = (tarfile.TarError, EOFError, OSError, zlib.error, ArchiveRefused)


def names_of_tar_gz(archive: Path) -> Iterator[str]:
    """Yield the names in an archive of at most `LIMIT` bytes; raises `TAR_BROKEN`."""
    size = 0
    with gzip.open(archive) as file:
        for opened, info in _tar_members(file, archive.name):
            size += info.size
            if size > LIMIT:
                refuse(archive.name, f"would grow past the limit of {LIMIT} bytes")
            if data := opened.extractfile(info) if info.isreg() else None:
                for _ in _chunks(data):
                    pass
            yield info.name


def _read_member(opened: tarfile.TarFile, info: tarfile.TarInfo, filling: Filling) -> None:
    """Read one member of a tar, whose data is next in the stream."""
    name = info.name
    archive = filling.tree.archive
    if info.isdir():
        # tarfile strips the slashes at the end of a folder's name, even if nothing is left.
        filling.announce(Member(name=name or "/", kind="folder"))
    elif info.issym():
        path = filling.announce(Member(name=name, kind="link", size=len(info.linkname)))
        filling.link(path, info.linkname)
    elif info.islnk():
        _read_hard_link(info, filling)
    elif not info.isreg() or info.issparse():
        refuse(archive, "is a device, a pipe or a sparse file", name)
    else:
        executable = bool(info.mode & 0o111)
        path = filling.announce(Member(name=name, size=info.size, executable=executable))
        data = opened.extractfile(info)
        assert data is not None  # it is a regular file
        filling.write(path, _chunks(data))


def _read_hard_link(info: tarfile.TarInfo, filling: Filling) -> None:
    other = "/".join(parts_of(info.linkname))
    if rule := fault(info.linkname):
        refuse(filling.tree.archive, f"is a hard link to {info.linkname!r}, which {rule}", info.name)
    executable = other in filling.tree.executables
    size = filling.tree.files.get(other, 0)
    path = filling.announce(Member(name=info.name, size=size, executable=executable))
    filling.hard_link(path, other)


# ---------------------------------------------------------------- 7z


@contextlib.contextmanager
def _open_archive(archive: Path, name: str) -> Iterator[SevenZipFile]:
    from py7zr import SevenZipFile
    from py7zr.exceptions import PasswordRequired, UnsupportedCompressionMethodError

    try:
        # A file object, not a path: py7zr then reads with one thread, which bounds the memory.
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
    """Unpack a 7z archive; solid blocks are decompressed piece by piece."""
    with _open_archive(archive, filling.tree.archive) as opened:
        kinds = _announce(opened, filling)
        writer = _Writer(filling, kinds)
        try:
            # py7zr refuses to extract a member for the folder itself, which py7zr writes.
            wanted = [name for name in opened.namelist() if parts_of(name)]
            opened.extract(filling.folder, wanted, factory=_factory(writer))
        finally:
            writer.end()


def _announce(opened: SevenZipFile, filling: Filling) -> dict[str, Kind]:
    """Announce all members; return the kind of each by its path."""
    members = [_7z_member(info, filling.tree.archive) for info in getattr(opened, "files", ())]
    kinds = {filling.announce(member): member.kind for member in members}
    filling.total = filling.tree.size
    return kinds


def _7z_member(info: ArchiveFile, archive: str) -> Member:
    kind = _7z_kind(info, archive)
    if kind == "folder" and info.uncompressed:
        refuse(archive, "is a folder with bytes of its own", info.filename)
    return Member(
        name=info.filename,
        kind=kind,
        size=info.uncompressed,
        executable=bool((info.posix_mode or 0) & 0o111),
    )


def _7z_kind(info: ArchiveFile, archive: str) -> Kind:
    if info.is_junction:
        refuse(archive, "is a junction", info.filename)
    if info.st_fmt not in (None, 0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        refuse(archive, "is a device, a pipe or a socket", info.filename)
    if info.is_symlink:
        return "link"
    return "folder" if info.is_directory or info.st_fmt == stat.S_IFDIR else "file"


class _Writer:
    """Writes one member after the other, in py7zr's order."""

    def __init__(self, filling: Filling, kinds: Mapping[str, Kind]) -> None:
        self._filling = filling
        self._kinds = kinds
        self._path = ""
        self._out: BinaryIO | None = None

    def begin(self, place: str) -> None:
        """Begin a member; py7zr names it by its path on the disk."""
        self.end()
        self._path = Path(place).relative_to(self._filling.folder).as_posix()
        kind = self._kinds[self._path]
        # py7zr takes some folders for empty files; those are made at the end, with all folders.
        self._out = self._filling.create(self._path) if kind == "file" else io.BytesIO()

    def write(self, data: bytes) -> None:
        assert self._out is not None
        if not isinstance(self._out, io.BytesIO):
            self._filling.put(self._out, data)
        elif self._out.write(data) and self._out.tell() > LINK_LIMIT:
            refuse(self._filling.tree.archive, "is a link to an endless name", self._path)

    def end(self) -> None:
        out = self._out
        self._out = None
        if isinstance(out, io.BytesIO) and self._kinds[self._path] == "link":
            self._filling.link(self._path, out.getvalue().decode())
        elif out is not None:
            out.close()


def _factory(writer: _Writer) -> WriterFactory:
    """Return the factory that py7zr asks for a writer of each member."""
    from py7zr.io import Py7zIO, WriterFactory

    class Place(Py7zIO):
        length = 0

        def write(self, s: bytes | bytearray) -> int:
            writer.write(bytes(s))
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
            writer.begin(filename)
            return Place()

    return Factory()
