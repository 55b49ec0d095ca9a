"""The only module that reads whole files: regular ones up to a size, so no read can block or fill the memory.

Only reads, so what looks at a machine goes through it, too.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, TypeVar

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.values import LONGEST, decode_json, decode_text, parse_json

T = TypeVar("T")
MOST: Final = LONGEST  # bytes
_CHUNK: Final = 1 << 14  # bytes
# Without O_NONBLOCK a pipe waits for a writer; Windows lacks the flag, and needs O_BINARY.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_bytes(path: Path, *, most: int = MOST) -> bytes:
    """Return the content of a regular file.

    Args:
        most: bytes; nothing of a longer file is returned.

    Raises:
        OSError: it cannot be read, is not a regular file, or is longer; `strerror` says which in words.
    """
    descriptor, size = _open(path)
    try:
        data = _read(descriptor, size, most)
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most >> 10} KiB", str(path))
    return data


def open_file(path: Path) -> BufferedReader:
    """Open a regular file to read parts of it; raises OSError as `read_bytes` does."""
    return os.fdopen(_open(path)[0], "rb")


def _open(path: Path) -> tuple[int, int]:
    """Return the descriptor of a regular file, and its size in bytes."""
    try:
        descriptor = os.open(path, _FLAGS)
    except ValueError:
        raise OSError(errno.EINVAL, "no file has such a name", str(path)) from None
    except PermissionError:
        if path.is_dir():  # on Windows open() of one is denied
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path)) from None
        raise
    try:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, info.st_size


def _read(descriptor: int, size: int, most: int) -> bytes:
    """Read at most one byte more than the limit: a file may grow, or have no size (/proc).

    The whole of a file at once, for each read reserves memory for all that it asks for.
    """
    parts = []
    remaining = most + 1
    while remaining > 0 and (part := os.read(descriptor, min(remaining, max(size + 1, _CHUNK)))):
        parts.append(part)
        remaining -= len(part)
        size = 0
    return b"".join(parts)


def read_text(path: Path, *, most: int = MOST) -> str:
    """Return a file of UTF-8, or of UTF-16 as PowerShell writes it, without a byte order mark.

    Raises:
        OSError: as for `read_bytes`, and EILSEQ where it is in another encoding.
    """
    try:
        return decode_text(read_bytes(path, most=most))
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8 text: {error.reason} at byte {error.start}"
        raise OSError(errno.EILSEQ, why, str(path)) from None


def read_json(path: Path) -> Any:
    """Return the JSON in a file.

    Raises:
        OSError: as for `read_bytes`.
        Malformed: as for `parse_json`; a `ValueError`.
    """
    return parse_json(read_bytes(path))


def read_value(kind: type[T], path: Path) -> T | None:
    """Return the value in a JSON file; None if it is missing or invalid."""
    with contextlib.suppress(OSError, ValueError, UsageError):
        return decode_json(kind, read_bytes(path))
    return None


def hash_file(path: Path) -> str:
    """Return the sha256 of a regular file, in hexadecimal; raises OSError as `read_bytes` does."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
