"""Turn Ctrl-C and SIGTERM into Interrupted once, and protect clean-up from further signals."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from torchbuild_tasks.errors import Interrupted

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
_FATAL: Final = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first Ctrl-C or SIGTERM into Interrupted, and ignore the later ones.

    Later ones are ignored until this context is left, so neither the ending of a tree
    nor the writing of the manifest after it is cut short. Does nothing outside the main
    thread, where Python delivers no signals.
    """

    def first(number: int, frame: object) -> None:
        for each in _FATAL:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, _ignore)
        raise KeyboardInterrupt

    with _handlers(first):
        try:
            yield
        except KeyboardInterrupt:
            raise interrupted() from None


@contextlib.contextmanager
def signals_wait(*, deliver: bool) -> Iterator[None]:
    """Defer signals during the body; then deliver or drop them."""
    came: list[int] = []
    try:
        with _handlers(lambda number, frame: came.append(number)):
            yield
    finally:
        if deliver and came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def _handlers(handler: Callable[[int, Any], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # A signal ignored from the start (nohup, background shell) stays ignored.
    handled = [number for number in _FATAL if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in handled}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, signal.SIG_DFL if old is None else old)


def _ignore(number: int, frame: object) -> None:
    """Do nothing. Programs would inherit SIG_IGN, but not this handler."""


def interrupted() -> Interrupted:
    return Interrupted(
        "Interrupted. All programs that were started have been stopped.",
        next_step="Run the same command again: a build continues where it stopped.",
    )
