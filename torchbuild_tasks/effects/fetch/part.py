"""The unfinished file of a download, and the note that says how much of it is good."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from torchbuild_tasks.effects import files
from torchbuild_tasks.effects.fetch.remote import Origin
from torchbuild_tasks.effects.fetch.tries import Halted
from torchbuild_tasks.effects.files import told_as
from torchbuild_tasks.errors import DownloadFailed

_BLOCK: Final = 256 << 10  # bytes


class Part:
    """`<target>.part`, its hash so far, and `<target>.part.json`, which vouches for its beginning.

    The note holds a length and the hash of that many bytes. What an earlier run left behind
    is taken up as far as both still agree, so neither a kill nor a power cut between two
    writes can put wrong bytes into a file whose hash nobody knows. Before it is given up, no
    other process may use the same target; its methods may be called from several threads.

    Args:
        target: where the whole file goes.
        every: seconds between two notes.
    """

    def __init__(self, target: Path, every: float = 1.0) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self.note_path = target.with_name(f"{target.name}.part.json")
        self.origin: Origin | None = None
        self.done = 0  # bytes from the beginning that are there and hashed
        self.pieced = False  # whether more than one answer of a server is in it
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._every, self._noted = every, -math.inf
        self._lock = threading.RLock()
        self._given_up = False

    def recall(self) -> None:
        """Take up what an earlier run left, as far as its note vouches for it."""
        try:
            note = json.loads(self.note_path.read_bytes())
            done, origin = int(note["done"]), Origin(**note["origin"])
            with self._mine():
                self._file = file = self.path.open("r+b", buffering=0)
        except (OSError, ValueError, KeyError, TypeError):
            return
        with told_as(DownloadFailed, self.path):
            if self._absorbed(done) and done > 0 and self.sha256() == note["sha256"]:
                with self._mine():
                    file.truncate(done)
                self.origin, self.pieced = origin, True
                return
        self.forget()

    def restart(self, origin: Origin) -> None:
        """Begin at zero with a file of that origin."""
        with self._mine(), told_as(DownloadFailed, self.path):
            self._clear()
            self.origin = origin
            self._file = self.path.open("w+b", buffering=0)

    def add(self, block: bytes) -> None:
        """Append a block; it is hashed on the way."""
        with self._mine(), told_as(DownloadFailed, self.path):
            self._write(block)
            self._hash.update(block)
            self.done += len(block)
            self._note_now_and_then()

    def note(self) -> None:
        """Write down how far this is, for the next run."""
        with self._mine():
            if self.done:
                self._write_note()

    def sha256(self) -> str:
        """The hash of the first `done` bytes."""
        return self._hash.hexdigest()

    def finish(self) -> None:
        """Move the whole file to its place."""
        with self._mine(), told_as(DownloadFailed, self.target):
            self._close()
            files.replace(self.path, self.target)
            with contextlib.suppress(OSError):  # nothing goes by a note without its part
                files.unlink(self.note_path, missing_ok=True)

    def forget(self) -> None:
        """Remove part and note: the next attempt begins at zero."""
        with self._mine(), told_as(DownloadFailed, self.path):
            self._clear()
            files.unlink(self.note_path, missing_ok=True)
            files.unlink(self.path, missing_ok=True)

    def give_up(self) -> None:
        """Leave what the next run can take up; whoever still wants to write gets Halted."""
        with self._lock:
            if self._file is not None and self.done:
                self._write_note()
            self._given_up = True
            self._close()

    @contextlib.contextmanager
    def _mine(self) -> Iterator[Any]:
        """Alone with the file, which must still be ours."""
        with self._lock:
            if self._given_up:
                raise Halted
            yield self._file

    def _clear(self) -> None:
        self._close()
        self.origin, self.done, self.pieced, self._hash = None, 0, False, hashlib.sha256()
        self._noted = -math.inf

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, block: bytes) -> None:
        assert self._file is not None
        left = memoryview(block)
        while left:  # an unbuffered file may take a part only
            left = left[self._file.write(left) :]

    def _absorbed(self, upto: int) -> bool:
        """Hash the file from `done` up to there, block by block; whether it is that long."""
        while self.done < upto:
            with self._mine() as file:
                file.seek(self.done)
                block = file.read(min(_BLOCK, upto - self.done))
                if not block:
                    return False
                self._hash.update(block)
                self.done += len(block)
                self._note_now_and_then()
        return True

    def _note_now_and_then(self) -> None:
        if time.monotonic() - self._noted >= self._every:
            self._write_note()

    def _write_note(self) -> None:
        """A torn note is none, and a missing one costs a download from zero: no error either way."""
        if self.origin is None:
            return
        self._noted = time.monotonic()
        note = {"origin": msgspec.structs.asdict(self.origin), "done": self.done, "sha256": self.sha256()}
        with contextlib.suppress(OSError):
            self.note_path.write_text(json.dumps(note, indent=1), "utf-8")
