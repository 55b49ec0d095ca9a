"""Reads every kind of archive member by member into a `Filling`; decides nothing itself."""

from __future__ import annotations

import bz2
import fnmatch
import gzip
import lzma
import re
import stat
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from torchbuild_tasks.effects.archive.filling import CHUNK, Filling
from torchbuild_tasks.effects.archive.members import LINK_LIMIT, Kind, Member, fault, refuse

_WHEEL_SCRIPT: Final = re.compile(r"[^/]+\.data/scripts/.")
_UNIX: Final = 3  # "made by" of a zip member whose attributes hold a Unix mode
_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000
_BETWEEN: Final = 4 << 20  # bytes of tar headers between two members


class Readable(Protocol):
    """A file open for reading, whatever unpacks it."""

    def read(self, size: int = -1, /) -> bytes: ...


def read_file(archive: Path, filling: Filling) -> None:
    """An "archive" that is the file itself: a program."""
    size = archive.stat().st_size
    path = filling.announce(Member(name=archive.name, size=size, executable=True))
    filling.total = size
    with archive.open("rb") as file:
        filling.write(path, _chunks(file))


def _chunks(file: Readable) -> Iterator[bytes]:
    return iter(lambda: file.read(CHUNK), b"")


def _kind(filling: Filling, name: str, mode: int) -> Kind:
    """What a member is by the type bits of a Unix mode; 0 says nothing and means a file."""
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        refuse(filling.tree.archive, "is a device, a pipe or a socket", name)
    return "file"


# ---------------------------------------------------------------- zip


def read_zip(archive: Path, filling: Filling) -> None:
    """A zip archive; in a wheel, what lies under `*.data/scripts/` is executable."""
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


def read_tar_bz2(archive: Path, filling: Filling) -> None:
    """A tar archive in bzip2, in one pass."""
    with bz2.open(archive) as file:
        _read_tar(file, filling)


def read_tar_xz(archive: Path, filling: Filling) -> None:
    """A tar archive in xz, in one pass."""
    with lzma.open(archive) as file:
        _read_tar(file, filling)


def read_tar_gz(archive: Path, filling: Filling) -> None:
    """A tar archive in gzip, in one pass."""
    with gzip.open(archive) as file:
        _read_tar(file, filling)


def read_conda(archive: Path, filling: Filling) -> None:
    """A conda package: a zip that holds `pkg-*.tar.zst` and `info-*.tar.zst`, in one pass each."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        for pattern in ("pkg-*.tar.zst", "info-*.tar.zst"):
            found = fnmatch.filter(names, pattern)
            if len(found) != 1:
                refuse(filling.tree.archive, f"holds {len(found)} files {pattern}, not one")
            with opened.open(found[0]) as packed, zstd.open(packed) as file:
                _read_tar(file, filling)


class _Metered:
    """A stream that gives only so much between two members: a header could ask for any amount."""

    def __init__(self, file: Readable, archive: str) -> None:
        self._file, self._archive = file, archive
        self.left: int | None = None

    def read(self, size: int = -1) -> bytes:
        """Read as the stream does."""
        data = self._file.read(size)
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                refuse(self._archive, f"has {_BETWEEN} bytes between two members")
        return data


class _Strict(tarfile.TarInfo):
    """Headers that are no silent end of the archive when they are broken."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> _Strict:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # zeros: the end of the archive
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"broken header: {error}") from error


def _read_tar(file: Readable, filling: Filling) -> None:
    metered = _Metered(file, filling.tree.archive)
    metered.left = _BETWEEN
    with tarfile.open(fileobj=metered, mode="r|", tarinfo=_Strict) as opened:  # type: ignore[call-overload]
        while (info := opened.next()) is not None:
            metered.left = None
            _take(opened, info, filling)
            opened.members.clear()  # it would remember them all
            metered.left = _BETWEEN
        while metered.read(CHUNK):  # up to the checksum at the very end
            pass


def _take(opened: tarfile.TarFile, info: tarfile.TarInfo, filling: Filling) -> None:
    """One member of a tar, the stream being at it."""
    name, archive = info.name, filling.tree.archive
    if info.isdir():
        # tarfile takes the slashes from the end of a folder's name, also where nothing is left then.
        filling.announce(Member(name=name or "/", kind="folder"))
    elif info.issym():
        path = filling.announce(Member(name=name, kind="link", size=len(info.linkname)))
        filling.link(path, info.linkname)
    elif info.islnk():
        _take_hard_link(info, filling)
    elif not info.isreg() or info.issparse():
        refuse(archive, "is a device, a pipe or a sparse file", name)
    else:
        executable = bool(info.mode & 0o111)
        path = filling.announce(Member(name=name, size=info.size, executable=executable))
        data = opened.extractfile(info)
        assert data is not None  # it is a regular file
        filling.write(path, _chunks(data))


def _take_hard_link(info: tarfile.TarInfo, filling: Filling) -> None:
    other = "/".join(part for part in info.linkname.replace("\\", "/").split("/") if part not in ("", "."))
    if rule := fault(info.linkname):
        refuse(filling.tree.archive, f"is a hard link to {info.linkname!r}, which {rule}", info.name)
    executable = other in filling.tree.executables
    size = filling.tree.files.get(other, 0)
    path = filling.announce(Member(name=info.name, size=size, executable=executable))
    filling.hard_link(path, other)
