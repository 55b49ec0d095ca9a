"""The record in a checkout of what builds own there: two listings, and how they are read.

`before.json` is the listing from before a build, and which log that build writes; as long
as it is there, a build runs or was killed. `made.json` is what builds own: each path with
the stamp a build left on it.
What may be claimed and what must be kept is decided by core/outputs.py, handed in.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol, Self

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import STATE_DIR, write_atomic
from torchbuild_tasks.system.log import last_word
from torchbuild_tasks.system.remove import Scope, Stamp

BEFORE: Final = "before.json"
MADE: Final = "made.json"
Listing = Mapping[str, Stamp]
Kept = tuple[tuple[str, str], ...]


class Outputs(Scope, Protocol):
    """What `core.outputs.patterns` returns."""

    def below(self, folder: str) -> Self: ...
    def made(
        self, before: Listing, after: Listing, earlier: Listing, *, until: int | None = None
    ) -> dict[str, Stamp]: ...
    def sort_out(
        self, owned: Listing, now: Listing, tracked: Iterable[str]
    ) -> tuple[tuple[str, ...], Kept]: ...


def read(root: Path, name: str) -> dict[str, Stamp] | None:
    """A listing; None when there is none that can be read, and then nothing is claimed by it."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        items = json.loads((root / STATE_DIR / name).read_bytes())["paths"].items()
        return {path: (m, s, c) for path, (m, s, c) in items}
    return None


def write(root: Path, name: str, listing: Listing, log: str = "") -> None:
    """Write a listing; raises UsageError when that is not possible."""
    data = json.dumps({"log": log, "paths": listing}).encode()
    write_atomic(root / STATE_DIR / name, data, error=UsageError)


def _log_of(root: Path, name: str) -> str:
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return str(json.loads((root / STATE_DIR / name).read_bytes())["log"])
    return ""


def forget(root: Path, gone: set[str]) -> None:
    """Take paths out of both listings: a clean within a build must not make them look foreign."""
    for name in (MADE, BEFORE):
        listing = read(root, name)
        if listing is not None:
            left = {path: stamp for path, stamp in listing.items() if path not in gone}
            write(root, name, left, _log_of(root, name))


def is_recorded(root: Path) -> bool:
    """Whether a build of ours ever began here."""
    return any((root / STATE_DIR / name).exists() for name in (MADE, BEFORE))


def owned(root: Path, outputs: Outputs, now: Listing, log_time: int | None) -> Listing:
    """What builds own, with what a killed build wrote until the last word of its log (ns).

    `log_time` is when the newest log was last written. That may be a later run's, which
    ended before it built anything; so the log that the killed build had is asked as well.
    """
    earlier = read(root, MADE) or {}
    before = read(root, BEFORE)
    if before is None or log_time is None:
        return earlier
    if name := _log_of(root, BEFORE):
        log_time = min(log_time, last_word(root / STATE_DIR, name) or 0)
    return outputs.made(before, now, earlier, until=log_time)


def within(root: Path, build_dir: Path | str) -> str:
    """The build folder relative to the checkout, with a final `/`; "" when it is not in it."""
    with contextlib.suppress(ValueError):
        parts = (root / build_dir).relative_to(root).parts
        if ".." not in parts:
            return "".join(f"{part}/" for part in _as_there(root, parts))
    return ""


def _as_there(folder: Path, parts: tuple[str, ...]) -> Iterator[str]:
    """The names as their folders have them: on Windows `Build` may be the `build` that is there."""
    for part in parts:
        name = _name_there(folder, part) if sys.platform == "win32" else part
        yield name
        folder = folder / name


def _name_there(folder: Path, name: str) -> str:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [path.name for path in folder.iterdir()]
    same = (each for each in names if os.path.normcase(each) == os.path.normcase(name))
    return name if name in names else next(same, name)
