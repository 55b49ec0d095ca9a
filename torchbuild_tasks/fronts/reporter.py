"""Says what goes on while a verb works: a live line on a terminal, plain lines elsewhere.

A terminal means stderr is one and CI is not set. NO_COLOR is honoured by rich. Plain
lines come when the phase changes and every half minute, so a CI log stays readable.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from torchbuild_tasks.fronts.transfers import Transfers
from torchbuild_tasks.model import Command
from torchbuild_tasks.ninja.progress import Progress, ProgressParser, eta
from torchbuild_tasks.text.redaction import Redactor
from torchbuild_tasks.text.show import Removable, removal_text, shell_text
from torchbuild_tasks.text.visible import Printed, output, visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PLAIN_EVERY = 30.0
PLAIN_LEAST = 2.0


def clock(seconds: float | None) -> str:
    """Seconds as h:mm:ss or m:ss; a dash when not known."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shows_colours(stream: TextIO) -> bool:
    """Say whether a stream is a terminal of somebody who has not said no to colours (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


class Flushed:
    """A stream that shows each piece of a program's output at once."""

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
        self._quiet, self._verbose, self._silent = quiet, verbose, silent
        self._live = sys.stderr.isatty() and not os.environ.get("CI") and not quiet and not verbose
        self._parser = ProgressParser()
        self._bar: Bar | None = None
        self._phase, self._last_plain, self._stage_start = "", 0.0, time.monotonic()
        self._total, self._total_start, self._skipped = 0, 0.0, 0
        self._left: float | None = None
        self._newest: Progress | None = None
        self._redactor: Redactor | None = None
        self._lock = threading.RLock()  # what watches a build beside it says things too
        self._transfers = Transfers(say=self.note, live=self._live)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_bar()

    def stage(self, title: str) -> None:
        """Show that a stage begins."""
        self._end_bar()
        self._phase, self._total, self._stage_start = "", 0, time.monotonic()
        self._left = self._newest = None
        self._say(f"== {title}")

    def note(self, text: str) -> None:
        """Show one line that a person wants to know."""
        self._say(f"   {text}")

    def command(self, argv: tuple[str, ...]) -> None:
        """Show a command that is about to run."""
        self._say(f"   $ {shell_text(argv)}")

    def block(self, block: bytes) -> None:
        """Take output of a running command, whole lines of it."""
        if self._verbose:
            text = block.decode(errors="replace")
            self._write(output(text, colours=shows_colours(sys.stderr)), safe=True)
        newest = self._parser.feed_block(block)
        if newest and not self._quiet:
            self._newest = newest
            self._show(newest)

    def stream(self) -> Flushed:
        """Return where another program's output goes: with --json stderr, for stdout holds one object."""
        return Flushed(sys.stderr if self._silent else sys.stdout)

    def left(self, seconds: float | None) -> None:
        """Take the seconds that are left by the history of this machine; None where it has none.

        Called from any thread; the time that is shown goes on also while the build says nothing.
        """
        self._left = seconds
        if self._newest and not self._quiet:
            self._show(self._newest)

    def transfer(self, name: str, done: int, total: int | None) -> None:
        """Take how many bytes of a file were downloaded or unpacked; called from any thread."""
        self._transfers.tell(name, done, total)

    def removal(self, removal: Removable, uninstall: Command | None) -> None:
        """List what a clean is about to remove; also when quiet, for it is asked about."""
        if not self._silent:
            sys.stderr.write(visible(removal_text(removal, uninstall)))

    def confirm(self, question: str) -> bool:
        """Ask; without a terminal the answer is no."""
        if not sys.stdin.isatty() or os.environ.get("CI"):
            return False
        self._end_bar()
        sys.stderr.write(f"{visible(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        self._redactor = self._redactor or Redactor(os.environ, people=False)
        text = self._redactor.text(text)
        if self._bar:
            self._bar.console.print(visible(text), markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            self._write(f"{text}\n")

    def _write(self, text: str, *, safe: bool = False) -> None:
        """Write, unless quiet; a reader that has gone (`| head`) must not end the build."""
        if self._quiet:
            return
        try:
            sys.stderr.write(text if safe else visible(text))
            sys.stderr.flush()
        except OSError:
            self._quiet = True

    def _show(self, now: Progress) -> None:
        with self._lock:
            self._draw(now) if self._live else self._tell(now)

    def _tell(self, now: Progress) -> None:
        quiet_for = time.monotonic() - self._last_plain
        changed = now.phase != self._phase and quiet_for >= PLAIN_LEAST
        if not self._verbose and (changed or quiet_for >= PLAIN_EVERY):
            self._phase, self._last_plain = now.phase, time.monotonic()
            self._say(f"   {self._text(now)}")

    def _text(self, now: Progress) -> str:
        elapsed = time.monotonic() - self._stage_start
        what = output(now.what, colours=False)
        if not now.total:
            return f"{now.phase}, {clock(elapsed)} elapsed  {what}"
        counted = eta(
            elapsed - self._first_step(now, elapsed), now.done - self._skipped, now.total - self._skipped
        )
        left = counted if self._left is None else self._left
        return f"{now.phase} {now.done}/{now.total}, {clock(elapsed)} elapsed, {clock(left)} left  {what}"

    def _first_step(self, now: Progress, elapsed: float) -> float:
        """When the count that is shown began: configuring before it tells nothing about its pace."""
        if now.total != self._total:
            self._total, self._total_start, self._skipped = now.total, elapsed, now.done
        return self._total_start

    def _draw(self, now: Progress) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as LiveBar

        if self._bar is None:
            text = TextColumn("{task.description}", markup=False)
            self._bar = LiveBar(
                BarColumn(bar_width=20),
                text,
                console=Console(stderr=True),
                transient=True,
                refresh_per_second=5,
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
        total = now.total or None
        self._bar.update(
            self._task, description=visible(self._text(now)), completed=now.done or 0, total=total
        )

    def _end_bar(self) -> None:
        self._transfers.end()
        with self._lock:
            if self._bar:
                self._bar.stop()
                self._bar = None
