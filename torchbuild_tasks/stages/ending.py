"""Tells whoever went away that a build is over: the desktop, and the program that --notify names."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.effects.notify import notify_command, notify_desktop
from torchbuild_tasks.errors import Interrupted
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.stages.work import Reporter

# Nobody leaves the room for less.
LONG: Final = 120.0


@contextlib.contextmanager
def ended(request: BuildRequest, report: Reporter, root: Path) -> Iterator[None]:
    """Around the stages: whatever ends them is told on; what cannot be told is one line."""
    began, result = time.monotonic(), "failed"
    try:
        yield
        result = "ok"
    except (Interrupted, KeyboardInterrupt):
        result = "interrupted"
        raise
    finally:
        seconds = time.monotonic() - began
        text = f"{root.name}: {result}"
        text += f" after {seconds / 60:.0f} min" if seconds >= LONG else ""
        if request.notify and (problem := notify_command(request.notify, result, text)):
            report.note(problem)
        if seconds >= LONG:
            notify_desktop(f"PyTorch build {result}", text)
