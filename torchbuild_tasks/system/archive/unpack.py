"""Unpack an archive into a folder completely or not at all, and pack a folder.

It grows next to that folder under a hidden name, with our mark in it from the first, and
gets its own name by one rename. Names and links are judged by system/archive/members.py.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchbuild_tasks.errors import DownloadFailed, TorchbuildError
from torchbuild_tasks.system import files
from torchbuild_tasks.system.archive import readers
from torchbuild_tasks.system.archive.members import COUNT, LIMIT, Filling, Tree, parts_of, refusal
from torchbuild_tasks.system.files import translate_errors
from torchbuild_tasks.system.mark import Marker, Origin, write_marker
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.system.remove import unfinished_folder
from torchbuild_tasks.values import replace

Tell = Callable[[str, int, int | None], None]

_READERS: Final[Mapping[str, Callable[[Path, Filling], None]]] = {
    "file": readers.read_file,
    "zip": readers.read_zip,
    "tar.bz2": partial(readers.read_tar, bz2.open),
    "tar.xz": partial(readers.read_tar, lzma.open),
    "tar.gz": partial(readers.read_tar, gzip.open),
    "conda": readers.read_conda,
    "7z": readers.read_7z,
}


def unpack(
    archive: Path,
    kind: str,
    folder: Path,
    *,
    tell: Tell,
    name: str,
    limit: int = LIMIT,
    count: int = COUNT,
    origin: Origin | None = None,
    holds: Sequence[str] = (),
    dangling: bool = False,
) -> None:
    """Unpack `archive` into `folder`, which must not exist yet.

    x bits are kept, other rights and times are not. A symbolic link is kept where it leads
    to something in the archive; on Windows it becomes a copy of the file that it leads to,
    and one to a folder is refused there.

    Args:
        kind: 7z, zip (also a wheel), tar.bz2, tar.xz, tar.gz, conda, or file: the archive itself is copied.
        tell: is called with `name`, the bytes written, and of how many where that is known.
        limit: the most bytes that all its files may have, by their headers and in fact.
        count: the most files and folders.
        origin: where it comes from, for the mark.
        holds: paths that must be there afterwards.
        dangling: whether a link may lead to nothing, inside the folder; on Windows it is left out.

    Raises:
        ArchiveRefused: it is broken, or has members that must not be unpacked.
        DownloadFailed: the folder cannot be written, or is there already.
    """
    folder = folder.absolute()
    source = origin or Origin(id=folder.name, sha256="", url="", size=0)
    if os.path.lexists(folder):
        raise DownloadFailed(
            f"{folder} exists already, and contains files that torchbuild did not put there.",
            next_step="Look at what is in it; move it away or remove it, and run the same command again.",
        )
    mark = Marker(**msgspec.structs.asdict(source))
    with unfinished_folder(folder, DownloadFailed) as growing:
        write_marker(growing, mark)
        tree = Tree(archive=archive.name, limit=limit, count=count, dangling=dangling)
        filling = Filling(growing, tree, lambda ready, total: tell(name, ready, total))
        with _refuse_broken(archive):
            _READERS[kind](archive, filling)
            filling.finish()
        _check_holds(tree, holds)
        with translate_errors(DownloadFailed, growing):
            hashes = {path: hash_file(growing / path) for path in tree.files}
        mark = replace(
            mark,
            engine="py7zr" if kind == "7z" else "python",
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            files=tree.files,
            hashes=hashes,
            links=tree.links,
        )
        write_marker(growing, mark)
        with translate_errors(DownloadFailed, folder):
            files.replace(growing, folder)


@contextlib.contextmanager
def _refuse_broken(archive: Path) -> Iterator[None]:
    """Refuse an archive that cannot be read to its end.

    The decompressors have dozens of ways to say so, and what they say of hostile bytes is
    whatever they stumbled over; writing has told its own errors before.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, TorchbuildError):
            raise
        reason = " ".join(str(error).split())[:200]
        what = f"is broken, or cut short ({type(error).__name__}{f': {reason}' if reason else ''})"
        raise refusal(archive.name, what) from error


def _check_holds(tree: Tree, holds: Sequence[str]) -> None:
    there = {*tree.files, *tree.links, *tree.folders}
    if lacking := [path for path in holds if "/".join(parts_of(path)) not in there]:
        raise refusal(tree.archive, f"does not hold what it is wanted for: {', '.join(lacking)}")


# ---------------- packing


def pack(folder: Path, target: Path, kind: Literal["7z", "tar.bz2"]) -> None:
    """Pack the content of `folder` reproducibly: equal files give equal bytes.

    Raises:
        DownloadFailed: it cannot be written.
    """
    part = target.with_name(f".{target.name}.part")
    with translate_errors(DownloadFailed, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _WRITERS[kind](folder, part)
            files.replace(part, target)
        finally:
            part.unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    paths = (Path(top, name) for top, _, names in os.walk(folder) for name in names)
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def _write_tar_bz2(folder: Path, part: Path) -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        info.mode = 0o644
        return info

    with tarfile.open(part, "w:bz2") as archive:
        for name in _names(folder):
            archive.add(folder / name, name, filter=plain)


def _write_7z(folder: Path, part: Path) -> None:
    from py7zr import SevenZipFile

    with SevenZipFile(part, "w") as archive:
        for name in _names(folder):
            archive.write(folder / name, name)


_WRITERS = {"tar.bz2": _write_tar_bz2, "7z": _write_7z}
