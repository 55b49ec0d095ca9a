"""Archives of every kind for tests, also such as no good program makes."""

from __future__ import annotations

import bz2
import io
import lzma
import stat
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import py7zr

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


FILTERS = [{"id": py7zr.FILTER_LZMA2, "preset": 1}]  # more would take more time and memory to set up


class Put(msgspec.Struct, frozen=True):
    """A member to be put into an archive under any name; `target` is that of a link."""

    name: str
    data: bytes = b""
    kind: Literal["file", "folder", "link", "hard link", "device"] = "file"
    target: str = ""
    mode: int = 0o644


def make(kind: str, path: Path, members: Sequence[Put]) -> Path:
    """Write an archive of `kind` (as in helpers.toml) to `path`."""
    path.write_bytes(BUILDERS[kind](members))
    return path


def _zip(members: Sequence[Put]) -> bytes:
    out = io.BytesIO()
    types = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK, "device": stat.S_IFCHR}
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # a name that is there twice
        for put in members:
            info = zipfile.ZipInfo("x")
            info.filename = put.name + ("/" if put.kind == "folder" else "")  # ZipInfo() would fix it
            info.create_system = 3
            info.external_attr = (types[put.kind] | put.mode) << 16
            archive.writestr(info, put.target.encode() if put.kind == "link" else put.data)
    return out.getvalue()


def tar(members: Sequence[Put]) -> bytes:
    """An uncompressed tar archive."""
    out = io.BytesIO()
    types = {
        "file": tarfile.REGTYPE,
        "folder": tarfile.DIRTYPE,
        "link": tarfile.SYMTYPE,
        "hard link": tarfile.LNKTYPE,
        "device": tarfile.CHRTYPE,
    }
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
        for put in members:
            info = tarfile.TarInfo(put.name)
            info.type, info.linkname, info.mode, info.size = (
                types[put.kind],
                put.target,
                put.mode,
                len(put.data),
            )
            archive.addfile(info, io.BytesIO(put.data))
    return out.getvalue()


def _tar_bz2(members: Sequence[Put]) -> bytes:
    return bz2.compress(tar(members))


def _tar_xz(members: Sequence[Put]) -> bytes:
    return lzma.compress(tar(members), preset=0)


def _conda(members: Sequence[Put]) -> bytes:
    out = io.BytesIO()
    info = tar([Put("info/index.json", b"{}")])
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
        archive.writestr("pkg-sample-1.0-0.tar.zst", zstd.compress(tar(members)))
        archive.writestr("info-sample-1.0-0.tar.zst", zstd.compress(info))
    return out.getvalue()


def _7z(members: Sequence[Put]) -> bytes:
    out = io.BytesIO()
    types = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK, "device": stat.S_IFCHR}
    with py7zr.SevenZipFile(out, "w", filters=FILTERS) as archive:
        for number, put in enumerate(members):
            archive.writef(io.BytesIO(put.target.encode() if put.kind == "link" else put.data), f"m{number}")
            entry = archive.header.files_info.files[-1]
            entry["filename"] = put.name  # writef() would refuse it
            entry["attributes"] = 0x8000 | (types[put.kind] | put.mode) << 16
            if put.kind == "folder":
                entry["attributes"] |= stat.FILE_ATTRIBUTE_DIRECTORY
    return out.getvalue()


BUILDERS = {"zip": _zip, "tar.bz2": _tar_bz2, "tar.xz": _tar_xz, "conda": _conda, "7z": _7z}
