"""Says what goes on while a verb works: a live line on a terminal, plain lines elsewhere.

A terminal means stderr is one and CI is not set. NO_COLOR is honoured by rich. Plain
lines come when the phase changes and every half minute, so a CI log stays readable.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from torchbuild_tasks.core.progress import Progress, ProgressParser, eta
from torchbuild_tasks.fronts.show import Removable, removal_text
from torchbuild_tasks.model import Command

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PLAIN_EVERY = 30.0


def clock(seconds: float | None) -> str:
    """Seconds as h:mm:ss or m:ss; a dash when not known."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


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
        self._phase, self._phase_start, self._last_plain = "", time.monotonic(), 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_bar()

    def stage(self, title: str) -> None:
        """A stage begins."""
        self._end_bar()
        self._phase = ""
        self._say(f"== {title}")

    def note(self, text: str) -> None:
        """One line that a person wants to know."""
        self._say(f"   {text}")

    def command(self, argv: tuple[str, ...]) -> None:
        """A command is about to run."""
        self._say(f"   $ {shlex.join(argv)}")

    def lines(self, lines: list[str]) -> None:
        """Output of a running command."""
        if self._verbose and not self._quiet:
            sys.stderr.write("".join(f"{line}\n" for line in lines))
        newest: Progress | None = None
        for line in lines:
            newest = self._parser.feed(line) or newest
        if newest and not self._quiet:
            self._show(newest)

    def removal(self, removal: Removable, uninstall: Command | None) -> None:
        """What a clean is about to remove; said even when quiet, for it is asked about."""
        if not self._silent:
            sys.stderr.write(removal_text(removal, uninstall))

    def confirm(self, question: str) -> bool:
        """Ask; without a terminal the answer is no."""
        if not sys.stdin.isatty() or os.environ.get("CI"):
            return False
        self._end_bar()
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        if self._bar:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def _show(self, now: Progress) -> None:
        changed = now.phase != self._phase
        if changed:
            self._phase, self._phase_start = now.phase, time.monotonic()
        if self._live:
            self._draw(now)
        elif not self._verbose and (changed or time.monotonic() - self._last_plain >= PLAIN_EVERY):
            self._last_plain = time.monotonic()
            self._say(f"   {self._text(now)}")

    def _text(self, now: Progress) -> str:
        elapsed = time.monotonic() - self._phase_start
        counted = f" {now.done}/{now.total}" if now.total else ""
        left = f", {clock(eta(elapsed, now.done, now.total))} left" if now.total else ""
        return f"{now.phase}{counted}, {clock(elapsed)} elapsed{left}  {now.what}"

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
        self._bar.update(self._task, description=self._text(now), completed=now.done or 0, total=total)

    def _end_bar(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None
