"""What the door to the machine gives back, where that is more than one word."""

from __future__ import annotations

from typing import NamedTuple


class Output(NamedTuple):
    """What a program that came to its end said; `rc` is negative when a signal ended it (POSIX)."""

    rc: int
    stdout: str
    stderr: str = ""


class Uname(NamedTuple):
    """The operating system (`linux`, `win32` ...), its kernel's release, and the processor."""

    system: str
    release: str | None = None
    machine: str | None = None
