"""Search logs for their first error: a named file or pipe, and the log of a build while it runs.

Nothing of the search itself is imported before there is a failure to search for.
"""

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
from torchbuild_tasks.build.ledger import LOG, LOGS
from torchbuild_tasks.errors import NotBuilt, UsageError
from torchbuild_tasks.model import Diagnosis, Reading, Tree
from torchbuild_tasks.system import files
from torchbuild_tasks.system.lines import Blocks
from torchbuild_tasks.system.log import Log
from torchbuild_tasks.system.process import stream

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Work
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.features.diagnosis.block import ErrorBlock
    from torchbuild_tasks.features.diagnosis.machine import Machine
    from torchbuild_tasks.features.diagnosis.scan import LogScanner


_CHUNK: Final = 512 * 1024
STDIN: Final = "-"
_NEXT: Final = "Name a log: diagnose PATH, or `-` for standard input."


def diagnose_log(name: str, book: FailureBook, machine: Machine) -> Reading:
    """Return the reading of a log; `name` is its path, or `-`.

    Raises:
        UsageError: it cannot be read, is empty, or is not text.
    """
    from torchbuild_tasks.features.diagnosis.choose import read_log
    from torchbuild_tasks.features.diagnosis.decode import is_binary, packed_by, recoded, unpacked
    from torchbuild_tasks.features.diagnosis.prefix import common_prefix
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

    chunks = unpacked(log_chunks(name))
    first = next(chunks, b"")
    if not first:
        raise UsageError(
            f"{_name_input(name)} is empty.", next_step="Nothing was logged, so nothing is known."
        )
    if program := packed_by(first):
        raise UsageError(
            f"{_name_input(name)} is packed by {program}.",
            next_step="Unpack it, and name the log that is in it.",
        )
    if is_binary(first):
        raise UsageError(f"{_name_input(name)} is not text.", next_step="Name the log of a build.")
    scanner = LogScanner(book, common_prefix(first), machine.places)
    for block in whole_lines(recoded(first, itertools.chain([first], chunks))):
        scanner.feed_block(block)
    return read_log(scanner, book, machine)


def last_log(tree: Tree) -> str:
    """Return the path of the log of this checkout's last build.

    Raises:
        UsageError: this is not a checkout.
        NotBuilt: nothing was built in it.
    """
    if tree.problem is not None:
        raise UsageError(f"No log is named, and {tree.root} is not a checkout of torch.", next_step=_NEXT)
    path = Path(tree.root) / files.STATE_DIR / LOGS / f"{LOG}.log"
    if not path.is_file():
        raise NotBuilt(f"No log is named, and there is no {path}.", next_step=_NEXT)
    return str(path)


def _name_input(name: str) -> str:
    return "What comes in by the pipe" if name == "-" else name


def log_chunks(name: str) -> Iterator[bytes]:
    """Yield the bytes of a log; of one that is still being written, as far as it is now.

    Raises:
        UsageError: it is not a file, or cannot be read.
    """
    if name == STDIN:
        if sys.stdin.isatty():
            raise UsageError(
                "`diagnose -` reads a log from a pipe, and standard input is empty.", next_step=_NEXT
            )
        yield from _chunks(sys.stdin.buffer, None)
        return
    if name.startswith(("http://", "https://")):
        raise UsageError(
            f"{name} is an address, not a file.", next_step="curl -L ADDRESS | torchbuild diagnose -"
        )
    path = Path(name).expanduser()
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", next_step=_NEXT)
    if path.is_fifo() and not name.startswith(("/dev/", "/proc/")):  # as /dev/fd/63 is, which a shell writes
        raise UsageError(
            f"{path} is a named pipe, not a file, and may never end.",
            next_step=f"cat {name} | torchbuild diagnose -",
        )
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            yield from _chunks(file, status.st_size if stat.S_ISREG(status.st_mode) else None)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", next_step=_NEXT) from None


def _chunks(file: IO[bytes], size: int | None) -> Iterator[bytes]:
    """Yield at most `size` bytes, or all: a log that is written on must not keep us for ever."""
    left = size
    while left is None or left > 0:
        chunk = file.read(_CHUNK if left is None else min(_CHUNK, left))
        if not chunk:
            return
        left = None if left is None else left - len(chunk)
        yield chunk


def whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks of whole lines out of a file's chunks; a line ends with a line feed."""
    blocks = Blocks(carriage_return=False)
    for chunk in chunks:
        if block := blocks.feed(chunk):
            yield block
    if block := blocks.end():
        yield block


# ---------------- the log of a build under way


class Scanner(Protocol):
    """A search in blocks of lines; `scan.LogScanner`."""

    def skip_block(self, block: bytes, /) -> None: ...
    def feed_block(self, block: bytes, /) -> None: ...


S = TypeVar("S", bound=Scanner)
T = TypeVar("T")


class Search(Generic[S]):
    """The search in lines that a log gets from now on; those that it has are only counted.

    Args:
        log: open, and written by the build.
        make_scanner: called when there is something to search for.
        signs: where one of these stands, searching begins while the command runs.
    """

    def __init__(self, log: Log, make_scanner: Callable[[], S], signs: Sequence[bytes] = ()) -> None:
        self.log = log
        self._make = make_scanner
        self._signs = signs
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
            return ask(self._catch_up())

    def end(self) -> S:
        """Return the scanner, which has then read the whole log."""
        with self._lock:
            scanner = self._scanner if self._over and self._scanner else self._catch_up()
            if rest := self._blocks.end():
                scanner.feed_block(rest)
            self._over = True
            return scanner

    def pass_block(self, block: bytes) -> None:
        """Search a block at once that a full disk kept from the log."""
        if self.log.problem is not None:
            self.end().feed_block(block)

    def _sign_met(self) -> bool:
        for chunk in self._new():
            window = self._tail + chunk
            if any(sign in window for sign in self._signs):
                return True
            self._tail = window[-self._overlap :]
        return False

    def _catch_up(self) -> S:
        """Let the scanner read what the log has got since; return it."""
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


def stream_into_log(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    on_block: Callable[[bytes], None],
    search: Search[S],
) -> tuple[int, S | None]:
    """Stream a command into the log of this search; after a failure return its scanner, too."""

    def see(block: bytes) -> None:
        search.pass_block(block)
        on_block(block)

    rc = stream(argv, env=env, cwd=cwd, log=search.log, on_block=see)
    return rc, search.end() if rc else None


def build_scanner(work: Work) -> LogScanner:
    """Return a search in the output of this build, with the rows that it can meet."""
    from torchbuild_tasks.features.diagnosis.scan import LogScanner

    return LogScanner(_book(work))


def log_search(work: Work) -> Search[LogScanner]:
    """Return a search in what the log of this build gets from now on."""
    from torchbuild_tasks.features.diagnosis.places import PROOF_SIGNS

    return Search(work.ledger.log, lambda: build_scanner(work), PROOF_SIGNS)


class FirstError:
    """The text for a build's first error: returned once while it runs, as soon as the error is in the log.

    Ninja waits for what was started already, and that can take as long as the longest compile.
    """

    def __init__(self, work: Work, search: Search[LogScanner]) -> None:
        self._work = work
        self._search = search
        self._before: ErrorBlock | None = None
        self._returned = False

    def __call__(self) -> str:
        """Return the text; "" where there is no error yet, or it was returned before."""
        text = None if self._returned else self._search.look(self._text)
        self._returned = bool(text) or self._returned
        return text or ""

    def _text(self, scanner: LogScanner) -> str:
        """Return "" until two readings agree: a tool writes its message in one go."""
        before = self._before
        self._before = scanner.proven
        if self._before is None or self._before != before:
            return ""
        error = self._before.error
        return first_error_text(error.number, error.text, diagnose_build(self._work, scanner).diagnoses)


def diagnose_build(work: Work, scanner: LogScanner) -> Reading:
    """Return the reading of the log of a build that failed."""
    from torchbuild_tasks.features.diagnosis.choose import read_log

    return read_log(scanner, _book(work), _machine(work))


def explain_output(work: Work, output: str) -> Diagnosis | None:
    """Return the cause of a short command's failure, by its output."""
    from torchbuild_tasks.features.diagnosis.choose import explain

    return explain(output, _book(work), _machine(work))


def _book(work: Work) -> FailureBook:
    from torchbuild_tasks.catalog.failures import FailureBook, fitting_rows

    return FailureBook(fitting_rows(work.catalog.failure, work.facts))


def _machine(work: Work) -> Machine:
    from torchbuild_tasks.features.diagnosis.machine import Machine

    return Machine(work.facts, work.plan, work.catalog, built=True)
