"""Runs a command outside of a build: what it says is shown, its last lines are kept for the error."""

from __future__ import annotations

import os
from typing import Final

from torchbuild_tasks.model import Command
from torchbuild_tasks.stages.work import Reporter
from torchbuild_tasks.system import process

_LINES: Final = 12
# Debian's packages, and git where a login is missing, would ask somebody.
_ENVIRON: Final = {"DEBIAN_FRONTEND": "noninteractive", "GIT_TERMINAL_PROMPT": "0"}


class _Tail:
    """The last of what a program said."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> None:
        self.data = (self.data + data)[-8192:]


def run_shown(command: Command, report: Reporter) -> tuple[int, tuple[str, ...]]:
    """Run it to its end; its exit code, and the last lines of what it said."""
    report.command(command.argv)
    tail = _Tail()
    environ = {**os.environ, **_ENVIRON}
    rc = process.stream(command.argv, env=environ, cwd=command.cwd, log=tail, on_block=report.block)
    return rc, tuple(tail.data.decode("utf-8", "replace").splitlines()[-_LINES:])
