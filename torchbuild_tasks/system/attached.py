"""Run a program attached to the terminal: it reads the keyboard, and handles Ctrl-C itself.

It stays in our own process group, which is the terminal's foreground: an interactive shell or debugger in a
session of its own, as `process.py` starts programs, would be stopped at its first read.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final

from torchbuild_tasks.system.process import CANNOT_START, search_path, with_path

_OWN: Final = (signal.SIGINT, *([signal.SIGQUIT] if sys.platform != "win32" else []))


def attach(argv: Sequence[str], *, env: Mapping[str, str], to_stderr: bool = False) -> int:
    """Run a program with our own input, output and terminal, in the current folder; wait for its end.

    Args:
        argv: the program, found on the PATH of `env`, and its words.
        to_stderr: what it prints goes to stderr: stdout is for our own answer.

    Returns:
        Its exit code, as a shell of the system says it; 127 when it cannot start.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    path = search_path(env) or ""
    try:
        command = with_path(argv, env) if sys.platform == "win32" else _on(path, argv)
        process = subprocess.Popen(  # noqa: TID251 - the door of what has the terminal
            command, env=env, stdout=sys.stderr.fileno() if to_stderr else None
        )
    except OSError as error:
        sys.stderr.write(f"cannot start {argv[0]}: {error.strerror or error}\n")
        return CANNOT_START

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(signal.SIGTERM)

    # A handler, not SIG_IGN, which the program would inherit if it started later.
    before = {number: signal.signal(number, lambda *_: None) for number in _OWN}
    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, pass_on)
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return as_shells_say(code, windows=sys.platform == "win32")


def as_shells_say(code: int, *, windows: bool) -> int:
    """Return an exit code as sh has it, 128 and a signal's number, or as cmd: 32 bits with a sign.

    Python takes no larger number to end with: of 0xC0000005, a crash, it made -1.
    """
    if windows:
        return code - (1 << 32) if code >= 1 << 31 else code
    return 128 - code if code < 0 else code


def _on(path: str, argv: Sequence[str]) -> Sequence[str]:
    """Return argv with the program's path from that PATH: Popen would search our own PATH."""
    if os.sep in argv[0]:
        return argv
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise FileNotFoundError("it is in no folder of PATH")
    return [program, *argv[1:]]
