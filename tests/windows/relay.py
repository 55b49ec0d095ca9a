"""Runs one Windows program so that its output and its exit code come through.

What wine passes on: exit codes 0 to 255 as they are; of larger and negative ones the lowest byte
(256 ends as 1: a failure never becomes a 0), and 1 for a crash such as 0xC0000005.
"""

from __future__ import annotations

import os
import pty
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Literal

from tests.windows.wine import LATE, Bench

Stdin = Literal["null", "pipe", "console"]

GRACE = 10.0  # seconds that a program left behind may go on writing into our pipe
PATIENCE = 20.0  # seconds that a program may take to end after a signal

SYSTEM_FOLDERS = (r"C:\windows\system32", r"C:\windows")


def whole_name(bench: Bench, name: str, folders: Sequence[str]) -> str:
    """The Windows path of a program given by its bare name.

    Wine would start a bare name through its start.exe, one process further away, where signals do
    not reach it.
    """
    if set(name) & set("/\\:"):
        return name
    endings = ("",) if "." in name else (".exe", ".com")
    for folder in (*folders, r"C:\Python311", r"C:\Python311\Scripts", *SYSTEM_FOLDERS):
        place = bench.linux_path(folder)
        for ending in endings:
            if place and (place / (name + ending)).is_file():
                return folder.rstrip("\\") + "\\" + name + ending
    return name


def run(
    bench: Bench,
    command: Sequence[str],
    *,
    folders: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    seconds: float | None = None,
    stdin: Stdin = "null",
    cwd: Path | None = None,
    still: Callable[[], bool] = lambda: False,
) -> int:
    """Run a program and hand its stdout and stderr on as they come.

    Args:
        bench: where it runs.
        command: the program, by Windows path or bare name, and its arguments.
        folders: Windows folders for the front of PATH.
        environ: variables for it, besides the few that are handed on.
        seconds: after this long every Windows process of the bench ends.
        stdin: nothing, ours, or a Windows console, which has no text to read and never ends.
        cwd: a Linux folder; wine gives it its Windows name.
        still: asked again and again whether the program stands still; then it is as if the time were up.

    Returns:
        The exit code; LATE if the time was up.

    Raises:
        SystemExit: Ctrl-C or SIGTERM came, and the program has ended, or was ended if it did not in time.
    """
    bench.start()
    source, keyboard = _stdin(stdin)
    # Python dies at its start under wine 8 when any of the three streams is a regular file that
    # comes from Linux ("init_sys_streams ... WinError 6"), so there is always a pipe between.
    process = subprocess.Popen(
        ["wine", whole_name(bench, command[0], folders), *command[1:]],
        env=bench.environment(folders, environ),
        cwd=cwd,
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    if process.stdin is not None:
        threading.Thread(target=_feed, args=(process.stdin,), daemon=True).start()
    if keyboard is not None:
        os.close(source)
        threading.Thread(target=_drain, args=(keyboard,), daemon=True).start()
    try:
        with _forwarded_signals(process) as forwarded:
            in_time = _relay(process, seconds, lambda: forwarded.is_unheard() or still())
    finally:
        if process.poll() is None:
            bench.stop()
            process.kill()
    code = process.wait()
    if forwarded.numbers:  # who asked for an end wants no other try
        raise SystemExit(code if code > 0 else 128 + forwarded.numbers[0])
    if not in_time:
        why = "standing still" if still() or seconds is None else f"not done after {seconds:g} s"
        print(f"windows bench: {why}; all its processes were ended", file=sys.stderr)
        return LATE
    return code if code >= 0 else 128 - code


def _stdin(kind: Stdin) -> tuple[int, int | None]:
    """What the program gets as stdin, and our end of its console."""
    if kind == "console":
        keyboard, terminal = pty.openpty()
        return terminal, keyboard
    return (subprocess.PIPE if kind == "pipe" else subprocess.DEVNULL), None


def _feed(pipe: BinaryIO) -> None:
    """Hand our stdin on to its end, or for as long as the program reads."""
    with suppress(OSError), pipe:
        while chunk := os.read(0, 65536):
            pipe.write(chunk)
            pipe.flush()


def _drain(keyboard: int) -> None:
    """Take what the console echoes, so that it never fills up."""
    with suppress(OSError):  # the console is gone
        while os.read(keyboard, 4096):
            pass


@dataclass
class _Forwarded:
    """The signals that came, and when the first of them did."""

    numbers: list[int] = field(default_factory=list)
    since: float = float("inf")

    def is_unheard(self) -> bool:
        """Return whether the program should have ended by now.

        It may ignore Ctrl-C, and one that comes a moment before a program begins to sleep is only heard
        when it wakes.
        """
        return time.monotonic() > self.since + PATIENCE


@contextmanager
def _forwarded_signals(process: subprocess.Popen[bytes]) -> Iterator[_Forwarded]:
    """Have Ctrl-C and SIGTERM arrive at the program as Ctrl-C."""
    came = _Forwarded()

    def forward(number: int, frame: FrameType | None) -> None:
        came.numbers.append(number)
        came.since = min(came.since, time.monotonic())
        process.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _relay(process: subprocess.Popen[bytes], seconds: float | None, still: Callable[[], bool]) -> bool:
    """Copy the two streams until the program has ended; False once the time is up or it stands still.

    The streams' own end is not waited for: a server that the program left behind may hold them.
    """
    late = time.monotonic() + seconds if seconds else float("inf")
    ended = float("inf")
    with selectors.DefaultSelector() as selector:
        for pipe, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, target.buffer)
        while selector.get_map():
            ready = selector.select(0.1)
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if chunk:
                    key.data.write(chunk)
                    key.data.flush()
                else:
                    selector.unregister(key.fileobj)
            now = time.monotonic()
            if process.poll() is not None:
                ended = min(ended, now)
                if not ready or now > ended + GRACE:
                    break
            elif now > late or still():
                return False
    return _ends(process, late, still)


def _ends(process: subprocess.Popen[bytes], late: float, still: Callable[[], bool]) -> bool:
    """Wait for a program that has closed its streams before its end."""
    while process.poll() is None:
        if time.monotonic() > late or still():
            return False
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    return True
