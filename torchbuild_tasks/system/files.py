"""Write, replace and remove single files safely, and create the tool's own folder in a checkout.

A file exists completely or not at all; until then it has a hidden name by which a later run recognises the
leftovers of a killed one. On Windows another program may have it open: then the operation is repeated for
two seconds, and the error names that program (windows_holders.py).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from torchbuild_tasks.errors import TorchbuildError, UsageError
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.values import to_json

UNPACKING: Final = "unpacking"
REMOVING: Final = "removing"
DOWNLOADING: Final = "downloading"
FOLDERS: Final = (UNPACKING, REMOVING, DOWNLOADING)
WRITING: Final = "torchbuild-partial"  # the pattern of our temporary names, also used in other folders
_NAME: Final = re.compile(r"\.(?P<of>.+)\.(?P<pid>\d{1,9})\.(?P<doing>[a-z-]+)")


def temporary_name(path: Path, doing: str) -> Path:
    """Return the hidden name next to `path` for a file that this process is writing or removing."""
    return path.with_name(f".{path.name}.{os.getpid()}.{doing}")


def list_abandoned(parent: Path, *doings: str, name: str | None = None) -> list[Path]:
    """Return the temporary files in a folder whose process is over, or is this one.

    Args:
        parent: the folder; one that cannot be read counts as empty.
        doings: the actions of the process.
        name: only files for the path with this name.
    """
    found = []
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None or match["doing"] not in doings or name not in (None, match["of"]):
                continue
            if _is_over(int(match["pid"])):
                found.append(path)
    return found


def _is_over(pid: int) -> bool:
    import psutil  # rarely needed

    return pid == os.getpid() or not psutil.pid_exists(pid)


def owner_of(leftover: Path) -> str:
    """Return the name of the path that a temporary file belongs to."""
    match = _NAME.fullmatch(leftover.name)
    return match["of"] if match else ""


STATE_DIR: Final = ".torchbuild"
MARKER: Final = "MARKER"
MARKER_TEXT: Final = (
    "This folder was made by torchbuild_tasks and holds what it remembers of its builds here:\n"
    "logs, the lock, and the list of files that a clean may remove.\n"
)


def write_atomic(path: Path, data: bytes, *, error: type[TorchbuildError], private: bool = False) -> None:
    """Write `path` atomically: a reader sees the old or the new content.

    Args:
        private: for this user's eyes only, from the first byte on.

    Raises:
        error: the file cannot be written; what was there before still is.
    """
    with translate_errors(error, path):
        if not path.name:
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        partial = temporary_name(path, WRITING)
        sweep(path.parent, path.name)
        try:
            with create(partial, 0o600 if private else 0o666) as file:
                file.write(data)
            replace(partial, path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


def write_changed(path: Path, data: bytes, *, error: type[TorchbuildError], private: bool = False) -> bool:
    """Write `path` as `write_atomic` does, and return true, unless it has this content already."""
    with contextlib.suppress(OSError):
        if read_bytes(path) == data:
            return False
    write_atomic(path, data, error=error, private=private)
    return True


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files of killed runs, all or those for one name; ignore errors."""
    for left in list_abandoned(folder, WRITING, name=name):
        with contextlib.suppress(OSError):
            left.unlink()


def write_json(path: Path, value: object, *, error: type[TorchbuildError], private: bool = False) -> None:
    """Write a value as JSON atomically; `reading.read_value` reads it."""
    data = json.dumps(value, default=to_json, separators=(",", ":")).encode()
    write_atomic(path, data, error=error, private=private)


def create(path: Path, mode: int = 0o666) -> BinaryIO:
    """Create a file; an existing one, of a killed run or a link of a checkout, is removed first.

    Raises:
        OSError: it cannot be created, or another process has just created it.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


@contextlib.contextmanager
def translate_errors(error: type[TorchbuildError], path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into `error`, with the free space if the disk is full."""
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise error(f"{path} cannot be written: {reason}.", next_step=_advice(problem, path)) from problem


def make_store(folder: Path, *, error: type[TorchbuildError]) -> None:
    """Create the folder that is outside of checkouts, if needed.

    Raises:
        error: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise error(
            f"{folder}, where downloads are kept, cannot be made: {problem.strerror}.",
            next_step="Name a folder that is yours: TORCHBUILD_CACHE=PATH",
        ) from None


def refuse_outside(root: Path, *places: Path, error: type[TorchbuildError]) -> None:
    """Refuse to write to places that links lead out of a folder.

    Raises:
        error: one of the places is outside; the message names it.
    """
    for place in places:
        if not (real := place.resolve()).is_relative_to(root.resolve()):
            raise error(
                f"{place} leads to {real}, out of {root}, and nothing is written there.",
                next_step="Remove that link, and run the same command again.",
            )


def _advice(problem: OSError, path: Path) -> str:
    if problem.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        free = free_bytes(path)
        known = "An unknown number of" if free is None else free
        return f"{known} bytes are free there. Free some space and run the same command again."
    if isinstance(problem, InUse):
        return "Close that program, or wait until it is done, and run the same command again."
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Make it and its folder writable for you, or name another place that is."
    if problem.errno == errno.EEXIST:
        return "Move it away, or name another place, and run the same command again."
    return "Nothing else was changed. Run the same command again when this is fixed."


def free_bytes(path: Path) -> int | None:
    """Return the free bytes for a path, existing or not; None if unknown."""
    import shutil  # it reads the modules of all compressions

    for folder in (path, *path.parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(folder).free
    return None


def state_dir(root: Path) -> Path:
    """Create `<root>/.torchbuild/` if needed: ignored by git, and marked as ours.

    Raises:
        UsageError: the checkout is not writable, or something else has that name.
    """
    state = root / STATE_DIR
    with translate_errors(UsageError, state):
        if state.is_symlink() or (state.exists() and not state.is_dir()):
            raise FileExistsError(errno.EEXIST, "it is there, but not as a folder of ours")
        state.mkdir(exist_ok=True)
    for name, text in ((".gitignore", "*\n"), (MARKER, MARKER_TEXT)):
        if not (state / name).exists():
            write_atomic(state / name, text.encode(), error=UsageError)
    return state


# ---------------- files that other programs have open

_PATIENCE: Final = 2.0  # seconds
# ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION:
# https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-
_DENIED: Final = 5
_BLOCKED: Final = (32, 33)  # another program has it open, or has locked a part of it


class InUse(PermissionError):
    """Another program has the file open; `strerror` names it if it is known."""


class Patience:
    """Retries on files that other programs have open, for two seconds in total."""

    def __init__(self) -> None:
        self._left = _PATIENCE

    def replace(self, source: Path, target: Path) -> None:
        """Move a file to a path, over an existing one; raises InUse for either, and OSError.

        A device, a pipe, a socket, or a link in a system folder is refused: root would otherwise replace
        /dev/null by `--out /dev/null`.
        """
        with contextlib.suppress(FileNotFoundError):
            kind = stat.S_IFMT(target.lstat().st_mode)
            systems = target.parent.resolve().parts[:2] in (("/", "dev"), ("/", "proc"), ("/", "sys"))
            if kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR) or (systems and kind == stat.S_IFLNK):
                raise FileExistsError(errno.EEXIST, "it is a device, a pipe or a socket", str(target))
            if kind == stat.S_IFDIR and not source.is_dir():  # Windows takes it for a file that is in use
                raise IsADirectoryError(errno.EISDIR, "it is a folder", str(target))
        self._until_free(lambda: source.replace(target), target, source)

    def unlink(self, path: Path) -> None:
        """Remove a file, also a read-only one; raises InUse, and OSError."""
        with _writable(path):
            self._until_free(path.unlink, path)

    def rmdir(self, path: Path) -> None:
        """Remove an empty folder; raises InUse, and OSError."""
        with _writable(path):
            self._until_free(path.rmdir, path)

    def _until_free(self, act: Callable[[], object], *paths: Path) -> None:
        pause = 0.01
        while True:
            try:
                act()
                return
            except PermissionError as error:
                code = getattr(error, "winerror", None)
                if code not in (_DENIED, *_BLOCKED):
                    raise
                if _is_read_only(paths[0]):
                    raise PermissionError(error.errno, "it is marked read-only", str(paths[0])) from error
                if self._left <= 0:
                    raise _in_use(error, code, paths) from error
            time.sleep(pause)
            self._left -= pause
            pause = min(2 * pause, 0.3)


def replace(source: Path, target: Path) -> None:
    """`Patience.replace` with two seconds of its own."""
    Patience().replace(source, target)


def unlink(path: Path, *, missing_ok: bool = False) -> None:
    """`Patience.unlink` with two seconds of its own."""
    with contextlib.suppress(FileNotFoundError) if missing_ok else contextlib.nullcontext():
        Patience().unlink(path)


def _in_use(error: PermissionError, code: int | None, paths: tuple[Path, ...]) -> PermissionError:
    """Return InUse with the programs' names, or the error itself if no program has the file open."""
    from torchbuild_tasks.system.windows_holders import holders

    who = [holder for path in paths for holder in holders(path)]
    if code == _DENIED and not who:
        return error
    names = ", ".join(dict.fromkeys(who)) or "another program"
    return InUse(error.errno, f"in use by {names}", error.filename, code)


def _is_read_only(path: Path) -> bool:
    """Say whether a file (no link) has Windows' read-only attribute, which prevents a replacement."""
    with contextlib.suppress(OSError):
        attributes = getattr(path.lstat(), "st_file_attributes", 0)
        both = stat.FILE_ATTRIBUTE_READONLY | stat.FILE_ATTRIBUTE_REPARSE_POINT
        return bool(attributes & both == stat.FILE_ATTRIBUTE_READONLY)
    return False


@contextlib.contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Remove the read-only attribute during the body; set it again if that fails."""
    if not _is_read_only(path):
        yield
        return
    path.chmod(stat.S_IWRITE)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IREAD)
        raise
