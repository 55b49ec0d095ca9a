"""The command line that installs into the Python that runs this tool.

Imports nothing that has to be installed: it is asked where something is missing.
"""

from __future__ import annotations

import importlib.util
import os
import sys

from torchbuild_tasks.text.words import shell_line


def install_line(*words: str) -> str:
    """Return the command that installs into this Python, by pip, or by uv if uv made it without pip.

    Args:
        words: what is installed, and options that both know (-e, --upgrade).
    """
    pip: tuple[str, ...] = (sys.executable, "-m", "pip", "install")
    if importlib.util.find_spec("pip") is None:  # uv venv, uv tool install
        pip = ("uv", "pip", "install", "--python", sys.executable)
    return shell_line((*pip, *words), windows=os.name == "nt")


def extra_line(extra: str) -> str:
    """Return the command that installs an extra of this package; both take the installed copy for it."""
    return install_line(f"torchbuild-tasks[{extra}]")
