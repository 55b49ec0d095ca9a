"""The only door to processes: `capture` for short questions, `stream` for the build.

Every process leads a session of its own, so that one thing can be ended: the whole
tree, compilers and all. Output is bytes until it is shown; memory stays flat however
much of it there is.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from torchbuild_tasks.effects.blocks import Blocks
from torchbuild_tasks.effects.reading import IDLE, chunks
from torchbuild_tasks.effects.signals import interrupted, signals_wait
from torchbuild_tasks.effects.tree import end_tree

CANNOT_START: Final = 127
TIMED_OUT: Final = 124

_Process = subprocess.Popen[bytes]  # noqa: TID251 - this is the door


class Sink(Protocol):
    """Anything that takes the raw output: a `Log`, a binary file."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, kw_only=True)
class Captured:
    """How a short process ended.

    `rc` is its exit code, minus the signal's number when a signal ended it, 127 when it
    could not start (`stderr` then says why) and 124 when `timed_out`.
    """

    rc: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    timeout: float | None = None,
) -> Captured:
    """Run a short process to its end, without input, and return what it said.

    After `timeout` seconds its tree is ended and what it had said is returned. Without
    `env` it gets ours. Raises Interrupted on Ctrl-C; never raises for a program that
    is missing or fails.
    """
    try:
        with _started(argv, env, cwd, stderr=subprocess.PIPE) as process:
            try:
                return _answer(process, timeout)
            finally:
                for pipe in filter(None, (process.stdout, process.stderr)):
                    pipe.close()
    except _CannotStart as error:
        return Captured(rc=CANNOT_START, stderr=str(error).encode())


def _answer(process: _Process, timeout: float | None) -> Captured:
    try:
        out, err = process.communicate(timeout=timeout)
        return Captured(rc=process.returncode, stdout=out, stderr=err)
    except subprocess.TimeoutExpired:
        end_tree(process.pid)
    try:
        out, err = process.communicate(timeout=IDLE)
    except subprocess.TimeoutExpired as late:  # something that left the tree holds the pipe
        out, err = late.output or b"", late.stderr or b""
    return Captured(rc=TIMED_OUT, stdout=out, stderr=err, timed_out=True)


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    log: Sink,
    on_block: Callable[[bytes], None],
) -> int:
    """Run a long process: every byte of stdout and stderr to `log`, every line to `on_block`.

    The lines come in blocks as `Blocks` makes them, as many as one read brought.
    Returns the exit code as in `Captured`; when the program cannot start, that is 127
    and the reason is its only line. Raises Interrupted once the whole tree is ended.
    """
    blocks = Blocks()
    try:
        with _started(argv, env, cwd, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            with contextlib.closing(chunks(process.stdout, lambda: process.poll() is not None)) as said:
                for chunk in said:
                    log.write(chunk)
                    if block := blocks.feed(chunk):
                        on_block(block)
            if block := blocks.end():
                on_block(block)
            return process.wait()
    except _CannotStart as error:
        reason = f"{error}\n".encode(errors="replace")
        log.write(reason)
        on_block(reason)
        return CANNOT_START


class _CannotStart(OSError):
    """The program did not start; apart from an OSError of whoever takes the output."""


@contextlib.contextmanager
def _started(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: Path | str | None, *, stderr: int
) -> Iterator[_Process]:
    """Start a session of its own; whatever breaks off the body ends the whole tree."""
    process = None
    try:
        with signals_wait(deliver=True):  # a signal inside Popen would lose the pid
            process = _popen(argv, env, cwd, stderr)
        yield process
    except BaseException as error:
        with signals_wait(deliver=False):
            if process is not None:
                end_tree(process.pid)
                process.poll()
        if isinstance(error, KeyboardInterrupt):
            raise interrupted() from None
        raise


def _popen(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: Path | str | None, stderr: int
) -> _Process:
    own: dict[str, Any] = {"start_new_session": True}
    program = argv[0]
    if sys.platform == "win32":
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        # CreateProcess searches our PATH, not the one of the environment we pass on.
        path = next((v for k, v in (env or os.environ).items() if k.upper() == "PATH"), None)
        program = shutil.which(program, path=path) or program
    try:
        return _Process(
            [program, *argv[1:]],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            **own,
        )
    except (OSError, ValueError) as error:
        raise _CannotStart(f"cannot start {argv[0]}: {error}") from error
