"""How much of its memory the system has moved to a disk."""

from __future__ import annotations

import contextlib
import sys

from torchbuild_tasks.effects.jobserver.serve import MemoryLook


def swap_used() -> int:
    """Bytes in swap space, on Windows in page files; 0 where the system does not tell."""
    if sys.platform != "win32":
        return MemoryLook()().swap_used
    import psutil

    with contextlib.suppress(OSError, RuntimeError):
        return int(psutil.swap_memory().used)
    return 0
