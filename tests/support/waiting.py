"""Wait for what has to happen soon, and ask whether a process lives."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import psutil


def until(true: Callable[[], object], what: str = "", seconds: float = 60) -> None:
    """Return as soon as it is true; the limit is a guard against hanging only."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it never came to this: {what}" if what else "it did not happen"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Say whether a process runs; a zombie, which its parent has not waited for yet, does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False
