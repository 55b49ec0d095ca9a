"""The module that asks the system we are on; chosen here once, and nowhere else."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from torchbuild_tasks.facts import system_windows as system
else:
    from torchbuild_tasks.facts import system_posix as system

__all__ = ["system"]
