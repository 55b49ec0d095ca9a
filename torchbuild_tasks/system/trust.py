"""Store what the user trusts and which venvs are ours, outside of every checkout, by absolute path.

Nothing that a checkout brings can write here. An entry is a file of its own, so two runs never share one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchbuild_tasks.errors import TorchbuildError, Untrusted, UsageError
from torchbuild_tasks.system.files import unlink, write_json
from torchbuild_tasks.system.reading import read_value

VARIABLE: Final = "TORCHBUILD_STATE"  # replaces the system's folder for such files
TRUSTED: Final = "TORCHBUILD_TRUST"  # folders whose files are trusted without asking, for CI
# A file in a venv of ours, with its token; the end of the name of one next to it, until it is complete.
TOKEN: Final = "torchbuild-made-here"
MAKING: Final = ".making"
Kind = Literal["files", "venvs", "envs", "manifests"]  # the last two: files that builds wrote here


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A path, and what it must contain: files with this digest, or a venv with this token."""

    place: str
    proof: str
    when: str = ""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the entries, which need not exist."""
    if named := environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    from platformdirs import user_state_path

    return user_state_path("torchbuild-tasks", appauthor=False)


def make_state(folder: Path) -> None:
    """Make this folder of state, closed to others; raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)  # `parents` ignores the mode


def read_proof(state: Path, kind: Kind, place: str) -> str | None:
    """Return the proof for a path; None without an entry."""
    entry = read_value(Entry, entry_path(state, kind, place))
    return entry.proof if entry and _key(entry.place) == _key(place) else None


def write_proof(kind: Kind, place: str, proof: str, error: type[TorchbuildError] = UsageError) -> None:
    """Store the proof for a path; raises `error`."""
    make_folder(kind, error)
    path = entry_path(state_folder(os.environ), kind, place)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(path, Entry(place=place, proof=proof, when=when), error=error, private=True)


def make_folder(kind: Kind, error: type[TorchbuildError] = UsageError) -> None:
    """Make the folder of the entries of a kind; raises `error`, also if it is there and cannot be written."""
    state = state_folder(os.environ)
    try:
        make_state(state)
        (state / kind).mkdir(mode=0o700, exist_ok=True)
        if not os.access(state / kind, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as problem:
        raise error(
            f"{state / kind} cannot be written to: {problem.strerror}.",
            next_step=f"Make it writable, or name another folder outside of the checkout: {VARIABLE}=PATH",
        ) from None


def forget(kind: Kind, place: str) -> bool:
    """Delete the entry of a path; return whether there was one."""
    path = entry_path(state_folder(os.environ), kind, place)
    known = path.exists()
    unlink(path, missing_ok=True)
    return known


def entries(kind: Kind) -> Iterator[Entry]:
    """Yield all entries, by path."""
    remembered = (read_value(Entry, path) for path in (state_folder(os.environ) / kind).glob("*.json"))
    yield from sorted((entry for entry in remembered if entry), key=lambda entry: entry.place)


def is_vouched(place: str) -> bool:
    """Say whether a path (without links) is in a folder that `TORCHBUILD_TRUST` names."""
    folders = os.environ.get(TRUSTED, "").split(os.pathsep)
    return any(Path(place).is_relative_to(os.path.realpath(folder)) for folder in folders if folder)


def refuse_foreign(folder: Path, *below: Path) -> None:
    """Refuse a folder, and those `below` it, in which another user could replace programs.

    Write access of a group is deliberate; Windows has other permissions.

    Raises:
        Untrusted: another user than root owns it, or it is world-writable.
    """
    if sys.platform == "win32" or is_vouched(os.path.realpath(folder)):
        return
    mine = {0, os.geteuid(), *map(int, filter(str.isdecimal, (os.environ.get("SUDO_UID", ""),)))}
    for path in (folder, *below):
        with contextlib.suppress(OSError):  # it does not exist yet
            info = path.stat()
            open_to_all = info.st_mode & 0o1002 == 0o002  # a sticky bit protects each user's files
            if info.st_uid in mine and not open_to_all:
                continue
            who = "everybody may write in" if open_to_all else f"user {info.st_uid} owns"
            raise Untrusted(
                f"{folder} is not used: {who} {path}, and could put other programs there.",
                next_step="To have a store of your own: TORCHBUILD_CACHE=PATH. "
                f"To trust whoever can write there: {TRUSTED}={folder}",
            )


def entry_path(state: Path, kind: Kind, place: str) -> Path:
    digest = hashlib.sha256(_key(place).encode("utf-8", "surrogateescape")).hexdigest()
    return state / kind / f"{digest[:32]}.json"


def _key(place: str) -> str:
    return place.replace("/", "\\").lower() if sys.platform == "win32" else place
