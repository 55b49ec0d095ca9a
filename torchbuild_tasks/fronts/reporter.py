"""Report the progress of a verb: a live line on a terminal, plain lines elsewhere.

A stage's heading is printed with its first message, so a stage that does nothing is not shown. "Terminal"
means that stderr is one and CI is not set (output.py has the rules of colours and widths). Plain lines are
printed when the phase changes and every half minute, so that a CI log stays readable. First come downloads
and unpacking: a live line for each file, or plain lines now and then.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, TextIO, cast

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.fronts.output import is_live, on_screen, shows_colours
from torchbuild_tasks.model.record import Removal
from torchbuild_tasks.text.page import plain, styled, wrap_text
from torchbuild_tasks.text.redaction import Redactor
from torchbuild_tasks.text.show import removal_text, shell_text, size_text
from torchbuild_tasks.text.visible import Printed, output, visible
from torchbuild_tasks.text.words import clock

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from torchbuild_tasks.ninja.progress import Progress, ProgressParser

PLAIN_FIRST = 2.0
PLAIN_EVERY = 30.0
PLAIN_LEAST = 2.0
SILENT_FOR = 1.0  # seconds after which a terminal shows the title of a silent stage
MEMORY_EVERY = 2.0


_KNOWN: Final = 1.1  # smaller spreads are not shown


@dataclass
class _One:
    """One file in transfer: its start and last report (seconds), and its bytes."""

    began: float
    reported: float
    start: int
    done: int = 0
    total: int | None = None
    row: TaskID | None = None
    ended: bool = False


@dataclass
class Transfers:
    """The transfers of one stage.

    Args:
        say: prints one plain line.
        live: whether a line may be redrawn in place.
    """

    say: Callable[[str], None]
    live: bool
    _files: dict[str, _One] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bar: Bar | None = None

    def tell(self, name: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` bytes (None: unknown) of a file are transferred."""
        now = time.monotonic()
        with self._lock:
            one = self._files.setdefault(
                name, _One(began=now, reported=now + PLAIN_FIRST - PLAIN_EVERY, start=done)
            )
            one.done = done
            one.total = total
            complete = total is not None and done >= total
            if self.live:
                self._draw(name, one)
            elif complete and not one.ended and now - one.began >= PLAIN_FIRST:
                self.say(f"{name}: {size_text(done)}, {_rate(one, now)}")
            elif not complete and now - one.reported >= PLAIN_EVERY:
                one.reported = now
                self.say(f"{name}: {_so_far(one)}, {_rate(one, now)}{_time_left(one, now)}")
            one.ended = complete

    def end(self) -> None:
        """Remove the live lines."""
        with self._lock:
            if self._bar is not None:
                self._bar.stop()
            self._bar = None
            self._files.clear()

    def _draw(self, name: str, one: _One) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as LiveBar

        if self._bar is None:
            console = Console(file=_lasting_screen())
            self._bar = LiveBar(
                TextColumn("   {task.description}", markup=False),
                BarColumn(bar_width=bar_width(console.width)),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                refresh_per_second=5,
            )
            self._bar.start()
        if one.row is None:
            one.row = self._bar.add_task(visible(name), total=one.total)
        self._bar.update(one.row, completed=one.done, total=one.total)


def _so_far(one: _One) -> str:
    return f"{size_text(one.done)} of {size_text(one.total)}" if one.total else size_text(one.done)


def _speed(one: _One, now: float) -> float:
    return (one.done - one.start) / max(now - one.began, 1e-3)


def _rate(one: _One, now: float) -> str:
    return f"{size_text(int(_speed(one, now)))}/s"


def _time_left(one: _One, now: float) -> str:
    speed = _speed(one, now)
    return f", {(one.total - one.done) / speed:.0f} s left" if one.total and speed > 0 else ""


def between(seconds: float, spread: float) -> str:
    """Return an estimate's bounds in minutes, or exact seconds if they are known."""
    if spread < _KNOWN:
        return clock(seconds)
    minutes = [max(1, round(each / 60)) for each in (seconds / spread, seconds * spread)]
    return " to ".join(f"{each // 60}:{each % 60:02} h" if each >= 60 else f"{each} min" for each in minutes)


class _Lasting:
    """A screen that may go away while a line is drawn on it: what is written from then on is lost.

    A terminal that is closed ends the build by SIGHUP, or not at all (nohup, disown), but never by an error
    of the display.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _lasting_screen() -> TextIO:
    """Return stderr for a live line, and not what rich puts in its place while there is another one."""
    return cast("TextIO", _Lasting(getattr(sys.stderr, "rich_proxied_file", sys.stderr)))


class Flushed:
    """A stream that flushes after each write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._printed = Printed(colours=shows_colours(stream))

    def write(self, data: bytes, /) -> object:
        """Write and flush."""
        self._stream.buffer.write(self._printed.feed(data).encode())
        return self._stream.buffer.flush()


class ConsoleReporter:
    """The reporter of both runners.

    `quiet` leaves results, lists to be agreed to and questions; `silent` (for --json)
    leaves nothing but questions.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False, silent: bool = False) -> None:
        quiet = quiet or silent
        self._quiet = quiet
        self.verbose = verbose
        self._silent = silent
        self._live = is_live(sys.stderr) and not quiet and not verbose
        self._title = ""
        self._headed = True
        self._waiting: threading.Timer | None = None
        self._memory = ""
        self._memory_seen = 0.0
        self._bar: Bar | None = None
        self._phase = ""
        self._last_plain = 0.0
        self._stage_start = time.monotonic()
        self._total = 0
        self._total_start = 0.0
        self._skipped = 0
        self._left: float | None = None
        self._spread = 1.0
        self._newest: Progress | None = None
        self._lock = threading.RLock()  # the thread that watches a build prints, too
        self._transfers: Transfers | None = None  # none yet

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def stage(self, title: str) -> None:
        """Begin a stage; its title is shown with its first message, or after some time."""
        self.end()
        self._phase = ""
        self._total = 0
        self._stage_start = time.monotonic()
        self._left = self._newest = None
        self._title = title
        self._headed = False
        if self.verbose:
            self._head()
        else:
            self._wait_for_words()

    def begin(self, title: str) -> None:
        """Begin a verb without stages; a terminal shows its title until its first output."""
        self._title = title
        self._wait_for_words()

    def _wait_for_words(self) -> None:
        if self._live:
            self._waiting = threading.Timer(SILENT_FOR, self._wait)
            self._waiting.daemon = True
            self._waiting.start()

    def note(self, text: str, *, alone: bool = False) -> None:
        """Show one line; with `alone` without the heading of its stage."""
        self._say(f"   {text}", headed=not alone)

    def command(self, argv: tuple[str, ...]) -> None:
        """Show a command that is about to run."""
        self._say(styled("dim", f"   $ {shell_text(argv)}"))

    def inner(self, title: str) -> Inner:
        """Return a reporter for a build inside this operation."""
        return Inner(self, title)

    def block(self, block: bytes) -> None:
        """Process complete lines of a running command's output."""
        if self.verbose:
            text = self.redactor.text(block.decode(errors="replace"))
            self._write(output(text, colours=shows_colours(sys.stderr)))
        newest = self._parser.feed_block(block)
        if newest and not self._quiet:
            self._newest = newest
            self._show(newest)

    def stream(self) -> Flushed:
        """Return the stream for another program's output: with --json stderr, as stdout has one object."""
        self.end()
        return Flushed(sys.stderr if self._silent else sys.stdout)

    def left(self, seconds: float | None, spread: float = 1.0) -> None:
        """Set the estimate of the seconds left; None if it is unknown.

        `spread` is the factor of its uncertainty. Called from any thread; the display is updated also while
        the build prints nothing.
        """
        self._left = seconds
        self._spread = spread
        if self._newest and not self._quiet:
            self._show(self._newest)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Set the bytes of a file that are downloaded or unpacked; called from any thread."""
        with self._lock:
            if self._transfers is None:
                self._transfers = Transfers(say=self.note, live=self._live)
        self._transfers.tell(name, done, total)

    def removal(self, removal: Removal) -> None:
        """List what a clean will remove; also with --quiet, because a question follows."""
        self.end()
        if not self._silent:
            sys.stderr.write(visible(removal_text(removal)))

    def confirm(self, question: str) -> bool:
        """Ask the user; without a terminal the answer is no."""
        if not sys.stdin.isatty() or os.environ.get("CI"):
            return False
        self.end()
        sys.stderr.write(f"{visible(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    @functools.cached_property
    def redactor(self) -> Redactor:
        """The redactor of all output of this run, created with the first line."""
        return Redactor(os.environ, people=False)

    @functools.cached_property
    def _parser(self) -> ProgressParser:
        from torchbuild_tasks.ninja.progress import ProgressParser  # for functions that print their progress

        return ProgressParser()

    def _head(self) -> None:
        """Print the heading of the stage, unless it is printed already."""
        if not self._headed:
            self._headed = True
            self._say(styled("strong", f"== {self._title}"))

    def _say(self, text: str, *, headed: bool = True) -> None:
        if self._quiet:
            return
        with self._lock:
            if headed:
                self._head()
            text = self.redactor.text(text)
            is_command = plain(text).startswith("   $ ")  # not wrapped, so that it can be copied
            line = (
                wrap_text(text, colours=shows_colours(sys.stderr))
                if is_command
                else on_screen(sys.stderr, text)
            )
            if self._bar:
                from rich.text import Text

                self._bar.console.print(Text.from_ansi(line), soft_wrap=True)
            else:
                self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        """Write, unless quiet, what is safe on a screen; a closed pipe (`| head`) must not end the build."""
        if self._quiet:
            return
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self._quiet = True

    def _show(self, now: Progress) -> None:
        with self._lock:
            self._draw(now) if self._live else self._tell(now)

    def _tell(self, now: Progress) -> None:
        quiet_for = time.monotonic() - self._last_plain
        changed = now.phase != self._phase and quiet_for >= PLAIN_LEAST
        if not self.verbose and (changed or quiet_for >= PLAIN_EVERY):
            self._phase = now.phase
            self._last_plain = time.monotonic()
            self._say(f"   {self._text(now)}")

    def _text(self, now: Progress, memory: str = "") -> str:
        elapsed = time.monotonic() - self._stage_start
        what = output(now.what, colours=False)
        if not now.total:
            return f"{now.phase}, {clock(elapsed)} elapsed  {what}"
        from torchbuild_tasks.ninja.progress import eta

        counted = eta(
            elapsed - self._first_step(now, elapsed), now.done - self._skipped, now.total - self._skipped
        )
        if self._left is not None:
            left = f", {between(self._left, self._spread)} left"
        else:
            left = "" if counted is None else f", {clock(counted)} left"
        return f"{now.phase} {now.done}/{now.total}, {clock(elapsed)} elapsed{left}{memory}  {what}"

    def _first_step(self, now: Progress, elapsed: float) -> float:
        """Return the start of the present count, without the configuration before it."""
        if now.total != self._total:
            self._total = now.total
            self._total_start = elapsed
            self._skipped = now.done
        return self._total_start

    def _wait(self) -> None:
        """Show the stage on the live line until its first message."""
        with self._lock:
            if self._waiting is not None and self._bar is None and self._newest is None:
                self._update(self._title, None, None)

    def _draw(self, now: Progress) -> None:
        self._update(self._text(now, self._free_memory()), now.done or 0, now.total or None)

    def _update(self, text: str, done: int | None, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as LiveBar
        from rich.table import Column

        if self._bar is None:
            one_line = Column(no_wrap=True, overflow="ellipsis", ratio=1)
            console = Console(file=_lasting_screen())
            bar = BarColumn(bar_width=bar_width(console.width))
            columns = (SpinnerColumn("line"), TimeElapsedColumn()) if done is None else (bar,)
            self._bar = LiveBar(
                *columns,
                TextColumn("{task.description}", markup=False, table_column=one_line),
                console=console,
                transient=True,
                refresh_per_second=5,
                expand=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
            self._counts = done is not None
        if not self._counts and done is not None:  # a silent stage begins to count
            self._bar.stop()
            self._bar = None
            self._update(text, done, total)
            return
        self._bar.update(self._task, description=visible(text), completed=done, total=total)

    def _free_memory(self) -> str:
        """Return the free memory, updated every few seconds."""
        from torchbuild_tasks.build.jobserver.serve import MemoryLook

        now = time.monotonic()
        if now - self._memory_seen >= MEMORY_EVERY:
            self._memory_seen = now
            free = MemoryLook()().available
            self._memory = "" if free is None else f", {free / GIB:.1f} GiB free"
        return self._memory

    def end(self) -> None:
        """Remove the live line before other output."""
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None
        if self._transfers:
            self._transfers.end()
        with self._lock:
            if self._bar:
                self._bar.stop()
                self._bar = None


class Inner:
    """The reporter of a build inside another operation: it uses only the live line.

    Args:
        outer: whose step it is.
        title: what the live line calls the step.
    """

    def __init__(self, outer: ConsoleReporter, title: str) -> None:
        self._outer = outer
        self._title = title
        self.block = outer.block
        self.left = outer.left
        self.transfer = outer.transfer
        self.removal = outer.removal
        self.confirm = outer.confirm
        self.stream = outer.stream

    def stage(self, title: str) -> None:
        """Begin a stage of the inner build."""
        self._outer.stage(f"{self._title}: {title}")

    def note(self, text: str, *, alone: bool = False) -> None:
        """Show a line with --verbose."""
        if self._outer.verbose:
            self._outer.note(text)

    def command(self, argv: tuple[str, ...]) -> None:
        """Show a command with --verbose."""
        if self._outer.verbose:
            self._outer.command(argv)

    def inner(self, title: str) -> Inner:
        """Return a reporter for a build inside this one."""
        return Inner(self._outer, f"{self._title}: {title}")


def bar_width(screen: int) -> int:
    """Return the cells of a bar: a narrow terminal would show nothing of the words beside 20 of them."""
    return min(20, screen // 4)
