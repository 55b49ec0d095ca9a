"""A mirror on disk: `file:` addresses go through the same part, hash and move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from torchbuild_tasks.effects.fetch.net import shown
from torchbuild_tasks.effects.fetch.part import Part
from torchbuild_tasks.effects.fetch.remote import Origin
from torchbuild_tasks.effects.fetch.tries import Refused

_BLOCK = 1 << 20  # bytes


def copy(address: str, part: Part, size: int | None, moved: Callable[[int, int], None]) -> None:
    """Fill `part` from a `file:` address.

    Args:
        size: bytes that it must have, if known.
        moved: is told (bytes so far, bytes in all).

    Raises:
        Refused: it is not there, cannot be read, or has another size.
    """
    try:
        with _local(address).open("rb", buffering=0) as file:
            there = file.seek(0, 2)
            file.seek(0)
            if size not in (None, there):
                raise Refused(f"has {there} bytes instead of {size}")
            part.restart(Origin(url=shown(address), size=there))
            while block := file.read(_BLOCK):
                part.add(block)
                moved(part.done, there)
    except OSError as problem:
        raise Refused(problem.strerror or str(problem)) from problem
    if part.done != there:
        raise Refused("changed while it was copied")


def _local(address: str) -> Path:
    """The path of a `file:` address, on this system."""
    from urllib.request import url2pathname

    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        return Path(f"//{parts.netloc}{unquote(parts.path)}")
    return Path(url2pathname(parts.path))
