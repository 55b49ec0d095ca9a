"""Reads a log that somebody names: a file, or what comes in by a pipe."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from torchbuild_tasks.build.hints import first_error_text
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Diagnosis, Reading
from torchbuild_tasks.system.log import Log
from torchbuild_tasks.system.process import Blocks, stream

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Work
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.features.diagnosis.choose import Machine
    from torchbuild_tasks.features.diagnosis.scan import ErrorBlock, LogScanner


_CHUNK: Final = 512 * 1024


class Scanner(Protocol):
    """What searches; core's LogScanner."""

    def skip_block(self, block: bytes, /) -> None: ...
    def feed_block(self, block: bytes, /) -> None: ...


S = TypeVar("S", bound=Scanner)
T = TypeVar("T")


class Search(Generic[S]):
    """The search in what a log gets from now on; the lines that it has count, and no more.

    Args:
        log: open, and written by somebody else.
        make_scanner: called when there is something to search for.
        signs: where one of these stands, searching begins while the command runs.
    """

    def __init__(self, log: Log, make_scanner: Callable[[], S], signs: Sequence[bytes] = ()) -> None:
        self.log = log
        self._make, self._signs = make_scanner, signs
        self._overlap = max((len(sign) - 1 for sign in signs), default=0) or 1
        self._tail = b""
        self._begin = self._at = log.path.stat().st_size
        self._blocks = Blocks(carriage_return=False)
        self._scanner: S | None = None
        self._over = False
        self._lock = threading.Lock()

    def look(self, ask: Callable[[S], T]) -> T | None:
        """Ask about the log so far, from any thread; None while no sign was met, and after the end."""
        with self._lock:
            if self._over or (self._scanner is None and not self._sign_met()):
                return None
            return ask(self._caught_up())

    def end(self) -> S:
        """The scanner, which has now seen all that is in the log."""
        with self._lock:
            scanner = self._scanner if self._over and self._scanner else self._caught_up()
            if rest := self._blocks.end():
                scanner.feed_block(rest)
            self._over = True
            return scanner

    def went_by(self, block: bytes) -> None:
        """Search a block at once that the log, on a full disk, did not take."""
        if self.log.problem is not None:
            self.end().feed_block(block)

    def _sign_met(self) -> bool:
        for chunk in self._new():
            window = self._tail + chunk
            if any(sign in window for sign in self._signs):
                return True
            self._tail = window[-self._overlap :]
        return False

    def _caught_up(self) -> S:
        if self._scanner is None:
            self._scanner = self._make()
            with contextlib.suppress(OSError), self.log.path.open("rb") as file:
                self._scanner.skip_block(file.read(self._begin))
            self._at = self._begin
        for chunk in self._new():
            if block := self._blocks.feed(chunk):
                self._scanner.feed_block(block)
        return self._scanner

    def _new(self) -> Iterator[bytes]:
        with contextlib.suppress(OSError), self.log.path.open("rb") as file:
            file.seek(self._at)
            while chunk := file.read(_CHUNK):
                self._at = file.tell()
                yield chunk


def stream_searched(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    on_block: Callable[[bytes], None],
    search: Search[S],
) -> tuple[int, S | None]:
    """`stream` into the log of this search; after a failure also its scanner, which has seen all of it."""

    def see(block: bytes) -> None:
        search.went_by(block)
        on_block(block)

    rc = stream(argv, env=env, cwd=cwd, log=search.log, on_block=see)
    return rc, search.end() if rc else None


def whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines out of a file's chunks; a line ends as an editor counts it, with a line feed."""
    blocks = Blocks(carriage_return=False)
    for chunk in chunks:
        if block := blocks.feed(chunk):
            yield block
    if block := blocks.end():
        yield block


# ----------------


STDIN: Final = "-"
_NEXT: Final = "Name a log: diagnose PATH, or `-` for what comes in by a pipe."


def log_chunks(name: str) -> Iterator[bytes]:
    """The bytes of a log; of one that is still being written, as far as it is now.

    Raises:
        UsageError: it is no file, or cannot be read.
    """
    if name == STDIN:
        if sys.stdin.isatty():
            raise UsageError("Nothing comes in by a pipe.", next_step=_NEXT)
        yield from _chunks(sys.stdin.buffer, None)
        return
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", next_step=_NEXT)
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            yield from _chunks(file, status.st_size if stat.S_ISREG(status.st_mode) else None)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step=_NEXT) from None


def _chunks(file: IO[bytes], size: int | None) -> Iterator[bytes]:
    """At most `size` bytes, or all there are: whoever writes on must not keep us for ever."""
    left = size
    while left is None or left > 0:
        chunk = file.read(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


# ---------------- why a build failed: a log is read once, and its error held against the rows


def diagnose_log(name: str, book: FailureBook, machine: Machine) -> Reading:
    """What a log says; `name` is its path, or `-`.

    Raises:
        UsageError: it cannot be read, is empty, or is no text.
    """
    from torchbuild_tasks.features.diagnosis.choose import read_log
    from torchbuild_tasks.features.diagnosis.lines import is_binary, recoded
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

    chunks = log_chunks(name)
    first = next(chunks, b"")
    if not first:
        raise UsageError(f"{_called(name)} is empty.", next_step="Nothing was logged, so nothing is known.")
    if is_binary(first):
        raise UsageError(f"{_called(name)} is no text.", next_step="Name the log of a build.")
    scanner = LogScanner(book)
    for block in whole_lines(recoded(first, itertools.chain([first], chunks))):
        scanner.feed_block(block)
    return read_log(scanner, book, machine)


def build_scanner(work: Work) -> LogScanner:
    """What searches the output of this build, with the rows that it can meet."""
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

    return LogScanner(_book(work))


def log_search(work: Work) -> Search[LogScanner]:
    """The search in what the log of this build gets from now on."""
    from torchbuild_tasks.features.diagnosis.lines import PROOF_SIGNS

    return Search(work.ledger.log, lambda: build_scanner(work), PROOF_SIGNS)


class FirstError:
    """Called while a build runs: the words for its first error, once, as soon as it stands in the log.

    Ninja waits for what was started already, and that can take as long as the longest compile.
    """

    def __init__(self, work: Work, search: Search[LogScanner]) -> None:
        self._work, self._search = work, search
        self._before: ErrorBlock | None = None
        self._said = False

    def __call__(self) -> str:
        """The words, or "" where there are none or they were said."""
        said = None if self._said else self._search.look(self._words)
        self._said = self._said or bool(said)
        return said or ""

    def _words(self, scanner: LogScanner) -> str:
        """What is found twice is whole: a tool says its error in one go."""
        before, self._before = self._before, scanner.proven
        if self._before is None or self._before != before:
            return ""
        error = self._before.error
        return first_error_text(error.number, error.said, diagnose_build(self._work, scanner).diagnoses)


def diagnose_build(work: Work, scanner: LogScanner) -> Reading:
    """What the log of a build that failed says."""
    from torchbuild_tasks.features.diagnosis.choose import read_log

    return read_log(scanner, _book(work), _machine(work))


def explain_output(work: Work, said: str) -> Diagnosis | None:
    """Why a short command failed, by what it said."""
    from torchbuild_tasks.features.diagnosis.choose import explain

    return explain(said, _book(work), _machine(work))


def _book(work: Work) -> FailureBook:
    from torchbuild_tasks.catalog.failures import FailureBook, fitting

    return FailureBook(fitting(work.catalog.failure, work.facts))


def _machine(work: Work) -> Machine:
    from torchbuild_tasks.features.diagnosis.choose import Machine

    return Machine(work.facts, work.plan, work.catalog, built=True)


def _called(name: str) -> str:
    return "What comes in by the pipe" if name == "-" else name
