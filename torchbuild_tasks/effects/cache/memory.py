"""What our store remembers of caches: which settings a folder was filled with, which folders we made."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.system.files import write_atomic

# Not in the cache's own folder: sccache takes every file there for an entry, and evicts it one day.


class Memory:
    """One JSON file; one that cannot be read or written only costs a warning that is not given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: dict[str, list[dict[str, str]]] = {}
        self._made: list[str] = []
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            data = json.loads(path.read_text("utf-8")) if path else {}
            self._seen = {str(k): [_texts(each) for each in v] for k, v in data.get("seen", {}).items()}
            self._made = [str(folder) for folder in data.get("made", [])]

    def seen(self, folder: Path) -> Sequence[Mapping[str, str]]:
        """The combinations of settings that builds have used with this folder, the newest last."""
        return self._seen.get(str(folder), [])

    def is_made(self, folder: Path) -> bool:
        """Whether a build of ours made the folder, so that it may be emptied."""
        return str(folder) in self._made

    def keep(self, folder: Path, seen: Sequence[Mapping[str, str]], *, made: bool) -> None:
        """Remember; at once on disk."""
        self._seen[str(folder)] = [dict(each) for each in seen]
        if made and str(folder) not in self._made:
            self._made.append(str(folder))
        self._write()

    def forget(self, folder: Path) -> None:
        """After the folder was emptied: nothing it was filled with counts any more."""
        self._seen.pop(str(folder), None)
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        text = json.dumps({"made": self._made, "seen": self._seen}, indent=1)
        with contextlib.suppress(OSError, UsageError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, text.encode(), error=UsageError)


def _texts(item: Mapping[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in item.items()}
