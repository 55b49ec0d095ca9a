"""A venv of ours: made whole or made again, and with a constraint that keeps the torch that was built.

While it is made, a file beside it says so (`venv-3.11.making`); what a killed run left is made anew.
pip reads `pip.conf` (`pip.ini`) of the venv that it runs in, whose constraint refuses whatever wants
another torch. Only venvs that we made have it.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import RequirementsError
from torchbuild_tasks.system.files import translate_errors, unlink, write_atomic

CONSTRAINTS: Final = "torchbuild-constraints.txt"
NONE: Final = "torchbuild-no-constraints.txt"
_MAKING: Final = ".making"
_CONFIG: Final = "pip.ini" if sys.platform == "win32" else "pip.conf"
_HEAD: Final = "# Written by torchbuild_tasks: pip keeps the torch that was built here.\n"


def folder_of(python: str) -> Path:
    """Return the venv of an interpreter in its bin or Scripts."""
    return Path(python).parent.parent


def is_whole(python: str) -> bool:
    """Say whether the venv is there and was made to its end."""
    return Path(python).exists() and not _note(python).exists()


def begin(python: str) -> None:
    """From here on the venv counts as half made; raises RequirementsError."""
    with translate_errors(RequirementsError, _note(python)):
        _note(python).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(_note(python), b"", error=RequirementsError)


def end(python: str) -> None:
    """From here on it is whole; raises RequirementsError."""
    write_atomic(folder_of(python) / NONE, b"", error=RequirementsError)
    with translate_errors(RequirementsError, _note(python)):
        unlink(_note(python), missing_ok=True)


def keep_torch(python: str, version: str) -> bool:
    """Constrain the venv to this torch; false when it was, or when its pip.conf is somebody's."""
    folder = folder_of(python)
    config, constraints = folder / _CONFIG, folder / CONSTRAINTS
    told = f"{_HEAD}[install]\nconstraint = {constraints.as_uri()}\n".encode()
    line = f"{_HEAD}torch=={version}\n".encode()
    if config.exists() and not config.read_bytes().startswith(_HEAD.encode()):
        return False
    changed = False
    for path, data in ((folder / NONE, b""), (constraints, line), (config, told)):
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                continue
        write_atomic(path, data, error=RequirementsError)
        changed = True
    return changed


def _note(python: str) -> Path:
    folder = folder_of(python)
    return folder.with_name(folder.name + _MAKING)
