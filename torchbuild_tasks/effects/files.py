"""Writes files whole or not at all, and keeps the tool's own folder in a checkout."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import TorchbuildError, UsageError

STATE_DIR: Final = ".torchbuild"
MARKER: Final = "MARKER"
MARKER_TEXT: Final = (
    "This folder was made by torchbuild_tasks and holds what it remembers of its builds here:\n"
    "logs, the lock, and the list of files that a clean may remove.\n"
)


@contextlib.contextmanager
def told_as(error: type[TorchbuildError], path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into `error`, in words, with the free space when that is why."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise error(f"{path} cannot be written: {reason}.", next_step=_advice(problem, path)) from problem


def _advice(problem: OSError, path: Path) -> str:
    if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return f"{_free(path)} bytes are free there. Make room and run the same command again."
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Make the folder writable for you, or work on a checkout that is."
    return "Nothing else was changed. Run the same command again when this is mended."


def _free(path: Path) -> int | str:
    for folder in path.parents:
        with contextlib.suppress(OSError):
            return shutil.disk_usage(folder).free
    return "An unknown number of"


def write_atomic(path: Path, data: bytes, *, error: type[TorchbuildError]) -> None:
    """Write `path` so that a reader sees the old content or the new one, never a part.

    Raises:
        error: the file cannot be written; what was there before still is.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with told_as(error, path):
        try:
            partial.write_bytes(data)
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


def state_dir(root: Path) -> Path:
    """Make sure of `<root>/.torchbuild/`: unseen by git, and marked as ours.

    Raises:
        UsageError: the checkout is not writable, or something else has that name.
    """
    state = root / STATE_DIR
    with told_as(UsageError, state):
        if state.is_symlink() or (state.exists() and not state.is_dir()):
            raise FileExistsError(errno.EEXIST, "it is there, but not as a folder of ours")
        state.mkdir(exist_ok=True)
    for name, text in ((".gitignore", "*\n"), (MARKER, MARKER_TEXT)):
        if not (state / name).exists():
            write_atomic(state / name, text.encode(), error=UsageError)
    return state
