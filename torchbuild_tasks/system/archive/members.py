"""Check the names, links and sizes of an archive's members, by the same rules on Linux and Windows.

An archive that unpacks on one system must unpack on the other, so Windows' rules hold everywhere.
A backslash separates folders.
"""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from torchbuild_tasks.errors import ArchiveRefused, DownloadFailed
from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.system.files import translate_errors

RESERVED: Final = ".torchbuild-helper.json"
LIMIT: Final = 16 << 30
COUNT: Final = 200_000
LINK_LIMIT: Final = 4096

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_FORBIDDEN: Final = re.compile(r'[<>:"|?*\x00-\x1f\x7f]')
# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
_DEVICES: Final = frozenset(
    ("CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$")
    + tuple(f"{port}{n}" for port in ("COM", "LPT") for n in "0123456789\u00b9\u00b2\u00b3")
)
_PART_LIMIT: Final = 255  # bytes in one name: ext4, xfs; NTFS has 255 UTF-16 units
_NAME_LIMIT: Final = 1024
_LINK_STEPS: Final = 40  # the limit of Linux


def refusal(archive: str, what: str, member: str = "") -> ArchiveRefused:
    """Return the error about an archive, or about one member of it."""
    return ArchiveRefused(
        f"{archive} is not unpacked: {f'its member {member!r} ' if member else 'it '}{what}.",
        next_step="Nothing of it was kept. Compare the file's sha256 with what its publisher says; "
        "if the file is what was published, report that to the publisher.",
    )


def refuse(archive: str, what: str, member: str = "") -> NoReturn:
    """Refuse an archive.

    Raises:
        ArchiveRefused: always.
    """
    raise refusal(archive, what, member)


def fault(name: str) -> str:
    """Return what is wrong with a member's name, as the end of a sentence; "" for nothing."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "has a name that is not valid Unicode"
    plain = name.replace("\\", "/")
    if plain.startswith("/") or _DRIVE.match(plain):
        return "has an absolute path"
    if size > _NAME_LIMIT:
        return f"has a name of more than {_NAME_LIMIT} bytes"
    faults = (_part_fault(part) for part in plain.split("/") if part not in ("", "."))
    return next(filter(None, faults), "")


def _part_fault(part: str) -> str:
    if part == "..":
        return "leaves the folder with '..'"
    if character := _FORBIDDEN.search(part):
        return f"has the character {character[0]!r} in its name, which Windows does not allow"
    if part[-1] in ". ":
        return "has a name that ends in a dot or a space, which Windows leaves out"
    if part.split(".")[0].rstrip(" ").upper() in _DEVICES:
        return "has the name of a Windows device"
    if len(part.encode()) > _PART_LIMIT:
        return f"has a part of more than {_PART_LIMIT} bytes in its name"
    return ""


def parts_of(name: str) -> list[str]:
    """Return the parts of a name, without empty ones and `.`."""
    return [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]


def _same(path: str) -> str:
    """Return a key that is equal for all spellings of one file on Windows (and macOS)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).upper().casefold())


@dataclass(kw_only=True)
class Tree:
    """All members of an archive so far, by path with `/`; refuses members that break a rule.

    `size` counts the bytes announced, a link as a copy of what it leads to.
    """

    archive: str
    limit: int = LIMIT
    count: int = COUNT
    dangling: bool = False
    size: int = 0
    files: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    executables: set[str] = field(default_factory=set)
    _spelled: dict[str, str] = field(default_factory=dict)

    def admit(self, member: Member) -> str:
        """Check and add a member; return its path, "" for the folder itself.

        Raises:
            ArchiveRefused: its name is bad or collides, or the archive gets too large.
        """
        if rule := fault(member.name):
            refuse(self.archive, rule, member.name)
        path = "/".join(parts_of(member.name))
        if not path and member.kind != "folder":
            refuse(self.archive, "has no name", member.name)
        if path.casefold() == RESERVED:
            refuse(self.archive, "has the name that is kept for this tool's own mark", member.name)
        self._folder(path if member.kind == "folder" else path.rpartition("/")[0])
        if member.kind != "folder":
            self._claim(path)
            self._grow(member.size)
            self.files[path] = member.size
            if member.kind == "link":
                self._turn_into_link(path, member.size)
        if member.executable and member.kind == "file":
            self.executables.add(path)
        return path

    def _turn_into_link(self, path: str, size: int) -> None:
        if size > LINK_LIMIT:
            refuse(self.archive, f"is a link to a name of {size} bytes", path)
        del self.files[path]
        self.links[path] = ""

    def _folder(self, path: str) -> None:
        if path and path not in self.folders:
            self._folder(path.rpartition("/")[0])
            self._claim(path)
            self.folders.add(path)

    def _claim(self, path: str) -> None:
        other = self._spelled.setdefault(_same(path), path)
        if other != path:
            refuse(self.archive, f"is the same file as {other!r} on Windows", path)
        if path in self.files or path in self.links or path in self.folders:
            both = "is both a file and a folder, or there twice"
            refuse(self.archive, both, path)
        if len(self._spelled) > self.count:
            refuse(self.archive, f"holds more than {self.count} files and folders")

    def _grow(self, size: int) -> None:
        self.size += max(size, 0)
        if size < 0 or self.size > self.limit:
            refuse(self.archive, f"would grow past the limit of {self.limit} bytes")

    def lead(self, path: str) -> str | None:
        """Resolve a link: return the path of a file or folder of the archive, through other links.

        None if it leads to nothing in the archive and `dangling` allows that.

        Raises:
            ArchiveRefused: it leaves the folder, is a loop, or leads to nothing.
        """
        at = parts_of(path)
        pending = self._steps(path)
        at.pop()
        for _ in range(_LINK_STEPS):
            link = self._walk(path, at, pending)
            if link is None:
                end = "/".join(at)
                self._grow(self.files.get(end, 0))
                return end if not end or end in self.files or end in self.folders else None
            pending = [*self._steps(link), *pending]
        refuse(self.archive, "is a link that turns in a circle", path)

    def _steps(self, link: str) -> list[str]:
        target = self.links[link].replace("\\", "/")
        if not target:
            refuse(self.archive, "is a link without a target", link)
        if target.startswith("/") or _DRIVE.match(target):
            refuse(self.archive, f"is a link to the absolute path {target!r}", link)
        return parts_of(target)

    def _walk(self, path: str, at: list[str], pending: list[str]) -> str | None:
        """Follow `pending` from `at`, and modify both; stop at a link and return it."""
        while pending:
            part = pending.pop(0)
            if part == "..":
                if not at:
                    refuse(self.archive, f"is a link that leaves the folder: {self.links[path]!r}", path)
                at.pop()
                continue
            here = "/".join([*at, part])
            if here in self.links:
                return here
            there = here in self.folders or (here in self.files and not pending)
            if not there and not self.dangling:
                refuse(self.archive, f"is a link to nothing in the archive: {self.links[path]!r}", path)
            at.append(part)
        return None


def check_wheel_names(wheel: Wheel) -> None:
    """Refuse a wheel with names that leave it or collide, with links, or with too large files.

    Raises:
        ArchiveRefused: for the first of them.
    """
    tree = Tree(archive=wheel.file)
    for each in wheel.members:
        if each.kind == "link":
            refuse(wheel.file, "is a link", each.name)
        path = tree.admit(each)
        if path != each.name:
            refuse(wheel.file, f"is not written as a wheel's are, which is {path!r}", each.name)


# ---------------- a folder filled from an archive: every byte is counted, no file is overwritten


CHUNK: Final = 1 << 20


class Filling:
    """A folder that is filled from an archive: announce members, write them, then `finish`.

    Args:
        folder: an empty folder; its mode is what files get, executables with the x bits.
        tree: the judge of all that is announced.
        tell: is called with the bytes written, and the bytes there will be if that is known.
    """

    def __init__(self, folder: Path, tree: Tree, tell: Callable[[int, int | None], None]) -> None:
        self.folder = folder
        self.tree = tree
        self.done = 0
        self.total: int | None = None
        self._tell = tell
        self._reported = 0
        self._made = {""}
        self._written: set[str] = set()

    def announce(self, member: Member) -> str:
        """Return the path of a member; raises ArchiveRefused when it may not be."""
        return self.tree.admit(member)

    def create(self, path: str) -> BinaryIO:
        """Create an announced file for `put`; the caller closes it."""
        self._make(path.rpartition("/")[0])
        self._written.add(path)
        place = self.folder / path
        with translate_errors(DownloadFailed, place):
            try:
                return place.open("xb")
            except FileExistsError:  # an existing short name (PROGRA~1), or other rules of the system
                refuse(self.tree.archive, "is another member's file on this system", path)

    def put(self, out: BinaryIO, data: bytes) -> None:
        """Write to a file from `create`, within the size limit of the archive."""
        self.done += len(data)
        if self.done > self.tree.limit:
            refuse(self.tree.archive, f"grows past the limit of {self.tree.limit} bytes")
        with translate_errors(DownloadFailed, Path(out.name)):
            out.write(data)
        if self.done - self._reported >= CHUNK:
            self.tell()

    def tell(self) -> None:
        """Report the progress."""
        self._reported = self.done
        self._tell(self.done, self.total)

    def write(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an announced file."""
        out = self.create(path)
        with out:
            for data in chunks:
                self.put(out, data)

    def link(self, path: str, target: str) -> None:
        """Record the target of an announced link, which is created last: no file is written through it."""
        self.tree.links[path] = target

    def hard_link(self, path: str, other: str) -> None:
        """Write an announced file as a copy of one that is already written."""
        if other not in self._written:
            refuse(self.tree.archive, f"is a hard link to {other!r}, which is not a file before it", path)
        with (self.folder / other).open("rb") as source:
            self.write(path, iter(lambda: source.read(CHUNK), b""))

    def finish(self) -> None:
        """Create the links and empty folders, and compare the result with the announced members.

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
            with translate_errors(DownloadFailed, self.folder / path):
                (self.folder / path).mkdir(parents=True, exist_ok=True)
            self._made.add(path)

    def _set_modes(self) -> None:
        """Set x bits on executables only, by the mode of the folder, which follows the umask."""
        mode = self.folder.stat().st_mode & 0o777
        for path in self.tree.files:
            with translate_errors(DownloadFailed, self.folder / path):
                (self.folder / path).chmod(mode if path in self.tree.executables else mode & 0o666)

    def _make_link(self, path: str, end: str | None) -> None:
        self._make(path.rpartition("/")[0])
        place = self.folder / path
        with translate_errors(DownloadFailed, place):
            if sys.platform != "win32":
                place.symlink_to(self.tree.links[path].replace("\\", "/"))
                return
            if end is None:  # of a missing file
                del self.tree.links[path]
                return
            if end not in self.tree.files:
                refuse(self.tree.archive, "is a link to a folder, which Windows cannot have as a copy", path)
            shutil.copy(self.folder / end, place)
            self.tree.files[path] = self.tree.files[end]
