"""Remember what the user trusts, and which venvs we made: outside of every checkout, by absolute path.

Nothing that a checkout brings can write here. An entry is a file of its own, so two runs never share one.
"""

from __future__ import annotations

import contextlib
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

VARIABLE: Final = "TORCHBUILD_STATE"  # another folder than the system's for such files
TRUSTED: Final = "TORCHBUILD_TRUST"  # folders whose files need no word, for machines that only build (CI)
Kind = Literal["files", "venvs", "envs", "manifests"]  # the last two: those that builds wrote here


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place, and what must be found there again: a digest of files, or the token in a venv."""

    place: str
    proof: str
    when: str = ""


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of the entries, which need not exist."""
    if named := environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    from platformdirs import user_state_path

    return user_state_path("torchbuild-tasks", appauthor=False)


def read_proof(state: Path, kind: Kind, place: str) -> str | None:
    """Return the proof of a place; None when nothing was said of it."""
    entry = read_value(Entry, entry_path(state, kind, place))
    return entry.proof if entry and _key(entry.place) == _key(place) else None


def write_proof(kind: Kind, place: str, proof: str, error: type[TorchbuildError] = UsageError) -> None:
    """Remember a place; raises `error` when that is not possible."""
    path = entry_path(state_folder(os.environ), kind, place)
    try:
        path.parents[2].mkdir(parents=True, exist_ok=True)
        for folder in (path.parents[1], path.parent):  # of parents made on the way `mkdir` forgets the mode
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as problem:
        raise error(
            f"{path.parent} cannot be made: {problem.strerror}.",
            next_step=f"Make it writable, or name another folder outside of the checkout: {VARIABLE}=PATH",
        ) from None
    when = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(path, Entry(place=place, proof=proof, when=when), error=error, private=True)


def forget(kind: Kind, place: str) -> bool:
    """Forget a place; say whether anything was known of it."""
    path = entry_path(state_folder(os.environ), kind, place)
    known = path.exists()
    unlink(path, missing_ok=True)
    return known


def entries(kind: Kind) -> Iterator[Entry]:
    """Yield all that is remembered, by place."""
    remembered = (read_value(Entry, path) for path in (state_folder(os.environ) / kind).glob("*.json"))
    yield from sorted((entry for entry in remembered if entry), key=lambda entry: entry.place)


def is_vouched(place: str) -> bool:
    """Say whether `TORCHBUILD_TRUST` names a folder in which a place lies, given without links."""
    folders = os.environ.get(TRUSTED, "").split(os.pathsep)
    return any(Path(place).is_relative_to(os.path.realpath(folder)) for folder in folders if folder)


def refuse_foreign(folder: Path, *below: Path) -> None:
    """Refuse a shared folder, and those `below` it, in which another user can put other programs.

    A group that may write was given that right on purpose; Windows keeps its rights elsewhere.

    Raises:
        Untrusted: it is another user's than root's, or everybody may write there.
    """
    if sys.platform == "win32" or is_vouched(os.path.realpath(folder)):
        return
    mine = {0, os.geteuid(), *map(int, filter(str.isdecimal, (os.environ.get("SUDO_UID", ""),)))}
    for path in (folder, *below):
        with contextlib.suppress(OSError):  # not there yet
            info = path.stat()
            open_to_all = info.st_mode & 0o1002 == 0o002  # a sticky folder keeps each one's files
            if info.st_uid in mine and not open_to_all:
                continue
            who = "everybody may write in" if open_to_all else f"user {info.st_uid} owns"
            raise Untrusted(
                f"{folder} is not used: {who} {path}, and could put other programs there.",
                next_step="To have a store of your own: TORCHBUILD_CACHE=PATH. "
                f"To trust whoever can write there: {TRUSTED}={folder}",
            )


def entry_path(state: Path, kind: Kind, place: str) -> Path:
    """Return the file of an entry."""
    return (
        state
        / kind
        / f"{hashlib.sha256(_key(place).encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"
    )


def _key(place: str) -> str:
    return place.replace("/", "\\").lower() if sys.platform == "win32" else place
