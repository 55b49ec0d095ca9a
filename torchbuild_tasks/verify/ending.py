"""How an interpreter ended, in words that say where to look."""

from __future__ import annotations

import locale
import signal
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.effects.process import Captured

# What Windows puts in the place of an exit status. Source: ntstatus.h of the Windows SDK; the
# two of delay loading are of delayimp.h, the last is what MSVC's throw raises.
STATUSES: Final[Mapping[int, str]] = {
    0x80000003: "a breakpoint or a failed assertion",
    0xC0000005: "access violation",
    0xC0000017: "not enough memory",
    0xC000001D: "illegal instruction: built for another processor",
    0xC000007B: "a DLL is no valid image: 32 and 64 bit mixed",
    0xC0000094: "integer division by zero",
    0xC00000FD: "stack overflow",
    0xC0000135: "a DLL was not found",
    0xC0000138: "a function was not found in a DLL: another version of it was loaded",
    0xC0000139: "a function was not found in a DLL: another version of it was loaded",
    0xC000013A: "ended by Ctrl-C",
    0xC0000142: "a DLL could not be initialised",
    0xC0000374: "heap corruption",
    0xC0000409: "it stopped itself: abort() or an overrun buffer",
    0xC06D007E: "a DLL to be loaded on demand was not found",
    0xC06D007F: "a function was not found in a DLL loaded on demand",
    0xE06D7363: "a C++ exception that nobody caught",
}

_TAIL: Final = 8
_FATAL: Final = ("Fatal Python error", "Timeout (", "Windows fatal exception")


def ending(captured: Captured) -> str:
    """Say how it ended: by a signal on Linux, with a status of many digits on Windows."""
    rc = captured.rc
    if captured.timed_out:
        return "the time was up"
    if is_hang(captured):
        return "the interpreter gave no answer for too long"
    if rc < 0:
        return f"the interpreter died by signal {-rc} ({_signal(-rc)})"
    if rc > 255:
        words = f" ({STATUSES[rc]})" if rc in STATUSES else ""
        return f"the interpreter ended with exit status {rc:#010x}{words}"
    return f"the interpreter ended with exit status {rc}"


def is_hang(captured: Captured) -> bool:
    """Whether it gave no answer until faulthandler, asked by the probe, ended it."""
    return captured.rc == 1 and b"Timeout (" in captured.stderr


def _signal(number: int) -> str:
    try:
        return signal.strsignal(number) or "unknown"
    except ValueError:  # Windows has few
        return "unknown"


def tail(output: bytes) -> str:
    """The lines that say most: the last, or the first that faulthandler wrote."""
    lines = _text(output).strip().splitlines()
    fatal = [number for number, line in enumerate(lines) if line.startswith(_FATAL)]
    start = fatal[0] if fatal else max(len(lines) - _TAIL, 0)
    return "".join(f"\n  {line[:300]}" for line in lines[start : start + _TAIL])


def _text(output: bytes) -> str:
    """Read what a program printed: UTF-8, or else the machine's own code page."""
    try:
        return output.decode()
    except UnicodeDecodeError:
        return output.decode(locale.getencoding(), errors="replace")
