"""How downloads and unpacking get on: one live line a file, or plain lines now and then.

`tell` is called from the threads that work, at every chunk, so it does next to nothing
most of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PLAIN_FIRST = 2.0
PLAIN_EVERY = 30.0


@dataclass
class _One:
    """One file under way: when it began (seconds), when it was last told of, and how much there is."""

    began: float
    told: float
    start: int
    done: int = 0
    total: int | None = None
    row: TaskID | None = None
    ended: bool = False


@dataclass
class Transfers:
    """Every file of one stage.

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
        """`done` of `total` bytes (None: nobody said how many) of a file are there."""
        now = time.monotonic()
        with self._lock:
            one = self._files.setdefault(
                name, _One(began=now, told=now + PLAIN_FIRST - PLAIN_EVERY, start=done)
            )
            one.done, one.total = done, total
            complete = total is not None and done >= total
            if self.live:
                self._draw(name, one)
            elif complete and not one.ended and now - one.began >= PLAIN_FIRST:
                self.say(f"{name}: {size_text(done)}, {_rate(one, now)}")
            elif not complete and now - one.told >= PLAIN_EVERY:
                one.told = now
                self.say(f"{name}: {_so_far(one)}, {_rate(one, now)}{_left(one, now)}")
            one.ended = complete

    def end(self) -> None:
        """Take the live lines away."""
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
            self._bar = LiveBar(
                TextColumn("   {task.description}", markup=False),
                BarColumn(bar_width=20),
                DownloadColumn(),
                TransferSpeedColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
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


def _left(one: _One, now: float) -> str:
    speed = _speed(one, now)
    return f", {(one.total - one.done) / speed:.0f} s left" if one.total and speed > 0 else ""
