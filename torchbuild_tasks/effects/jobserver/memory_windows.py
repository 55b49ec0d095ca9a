"""The memory of this moment on Windows, where programs are refused memory once commit is used up."""

from __future__ import annotations

from torchbuild_tasks.model.pressure import MemoryState
from torchbuild_tasks.system.windows_memory import memory_status


class MemoryLook:
    """Call it for the memory of this moment."""

    def __call__(self) -> MemoryState:
        """Ask Windows; nothing is known where it does not answer."""
        status = memory_status()
        if status is None:
            return MemoryState()
        return MemoryState(
            available=status.available,
            limit=status.commit_limit,
            used=max(0, status.commit_limit - status.commit_free),
        )
