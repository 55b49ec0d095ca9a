"""A venv of ours: mark it as unfinished or complete, and constrain its pip to the built torch.

While a venv is created, a file next to it marks it (`venv-3.11.making`); one left by a killed run is
created again. pip reads `pip.conf` (`pip.ini`) of its venv, whose constraint refuses packages that require
another torch. Only venvs of ours have it.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import RequirementsError, UsageError
from torchbuild_tasks.system import trust
from torchbuild_tasks.system.files import translate_errors, unlink, write_atomic, write_changed
from torchbuild_tasks.system.reading import read_bytes, read_text
from torchbuild_tasks.system.remove import is_link

CONSTRAINTS: Final = "torchbuild-constraints.txt"
NONE: Final = "torchbuild-no-constraints.txt"
_CONFIG: Final = "pip.ini" if sys.platform == "win32" else "pip.conf"
_HEAD: Final = "# Written by torchbuild_tasks: pip keeps the torch that was built here.\n"


def folder_of(python: str) -> Path:
    """Return the venv of an interpreter in its `bin` or `Scripts`."""
    return Path(python).parent.parent


def is_complete(python: str) -> bool:
    """Say whether the venv exists and was completed."""
    return Path(python).exists() and not _note(python).exists()


def is_ours(python: str) -> bool:
    """Say whether this tool created the venv, or began to; one that came with the checkout is not ours."""
    folder = folder_of(python)
    token = trust.read_proof(trust.state_folder(os.environ), "venvs", str(folder))
    if token is None or is_link(folder):
        return False
    try:
        return read_text(folder / trust.TOKEN) == token
    except OSError:
        return _note(python).exists()


def adopt(folder: Path) -> None:
    """Record an existing venv as ours, on the user's word; raises UsageError."""
    token = os.urandom(16).hex()
    trust.write_proof("venvs", str(folder), token, UsageError)
    write_atomic(folder / trust.TOKEN, token.encode(), error=UsageError)


def set_aside(python: str) -> Path | None:
    """Rename a foreign folder at the place of our venv; return its new name.

    Raises:
        RequirementsError: it cannot be renamed, or that a new one is ours could not be recorded.
    """
    folder = folder_of(python)
    if is_ours(python) or not os.path.lexists(folder):
        return None
    trust.make_folder("venvs", RequirementsError)  # first, or nothing would be at its place afterwards
    # Not a name of our venvs (facts/python.py): trusted later, it would be taken before the one in its place.
    names = (folder.with_name(f"set-aside-{folder.name}-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    with translate_errors(RequirementsError, folder):
        folder.rename(aside)
    return aside


def mark_unfinished(python: str) -> None:
    """Mark the venv as unfinished; raises RequirementsError."""
    with translate_errors(RequirementsError, _note(python)):
        _note(python).parent.mkdir(parents=True, exist_ok=True)
    trust.write_proof("venvs", str(folder_of(python)), os.urandom(16).hex(), RequirementsError)
    write_atomic(_note(python), b"", error=RequirementsError)


def mark_complete(python: str) -> None:
    """Mark the venv as complete; raises RequirementsError."""
    folder = folder_of(python)
    token = trust.read_proof(trust.state_folder(os.environ), "venvs", str(folder)) or ""
    write_atomic(folder / NONE, b"", error=RequirementsError)
    write_atomic(folder / trust.TOKEN, token.encode(), error=RequirementsError)
    with translate_errors(RequirementsError, _note(python)):
        unlink(_note(python), missing_ok=True)


def keep_torch(python: str, version: str) -> bool:
    """Constrain the venv's pip to this torch; false if it was, or if its pip.conf is the user's."""
    folder = folder_of(python)
    config = folder / _CONFIG
    constraints = folder / CONSTRAINTS
    settings = f"{_HEAD}[install]\nconstraint = {constraints.as_uri()}\n".encode()
    line = f"{_HEAD}torch=={version}\n".encode()
    if config.exists() and not read_bytes(config).startswith(_HEAD.encode()):
        return False
    changed = False
    for path, data in ((folder / NONE, b""), (constraints, line), (config, settings)):
        changed |= write_changed(path, data, error=RequirementsError)
    return changed


def _note(python: str) -> Path:
    folder = folder_of(python)
    return folder.with_name(folder.name + trust.MAKING)
