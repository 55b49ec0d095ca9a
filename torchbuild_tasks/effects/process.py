"""The only door to processes: `capture` for short questions, `stream` for the build.

Every process leads a session of its own, on Windows a job, so that one thing can be
ended: the whole tree, compilers and all. Output is bytes until it is shown; memory stays
flat however much of it there is.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from torchbuild_tasks.effects.blocks import Blocks
from torchbuild_tasks.effects.reading import IDLE, Reader, widen
from torchbuild_tasks.effects.signals import interrupted, signals_wait
from torchbuild_tasks.effects.tree import GRACE, end_tree

if sys.platform == "win32":
    from torchbuild_tasks.effects.job import adopt
if TYPE_CHECKING:
    from torchbuild_tasks.effects.job import Job

CANNOT_START: Final = 127
TIMED_OUT: Final = 124
_CREATE_SUSPENDED: Final = 0x4


class _Process(subprocess.Popen[bytes]):  # noqa: TID251 - this is the door
    """A process, and on Windows the job that it and its descendants are in."""

    job: Job | None = None


class Sink(Protocol):
    """Anything that takes the raw output: a `Log`, a binary file."""

    def write(self, data: bytes, /) -> object: ...


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """How a short process ended.

    `rc` is its exit code, minus the signal's number when a signal ended it, 127 when it
    could not start (`stderr` then says why) and 124 when we ended it: it was `timed_out`, or
    `flooded` us with more than it may say.
    """

    rc: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    flooded: bool = False
    started: bool = True


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    timeout: float | None = None,
    limit: float = math.inf,
    grace: float = GRACE,
) -> Captured:
    """Run a short process to its end, without input, and return what it said.

    Args:
        argv: the program and its arguments; no shell. On Windows it may be one string, the
            whole command line, for cmd.exe has quoting of its own.
        env: its whole environment; ours without.
        cwd: the folder that it starts in; ours without.
        timeout: seconds after which its tree is ended; what it had said is returned.
        limit: bytes of one stream after which its tree is ended as well.
        grace: seconds that the tree has to end itself once it is asked to; 0 kills unasked.

    Returns:
        How it ended; never raises for a program that is missing or fails.

    Raises:
        Interrupted: Ctrl-C, once the whole tree is ended.
    """
    try:
        with (
            contextlib.ExitStack() as at_last,
            _started(argv, env, cwd, stderr=subprocess.PIPE) as process,
        ):
            assert process.stdout is not None
            assert process.stderr is not None
            pipes = at_last.enter_context(Reader(process.stdout, process.stderr))
            answer = _Answer(process, pipes, limit)
            if answer.ends_by(math.inf if timeout is None else time.monotonic() + timeout):
                return Captured(rc=process.returncode, stdout=answer.stdout, stderr=answer.stderr)
            flooded = answer.flooded
            end_tree(process.pid, grace, job=process.job)
            process.poll()
            answer.ends_by(time.monotonic() + IDLE)  # not if something that left the tree holds a pipe
            return Captured(
                rc=TIMED_OUT,
                stdout=answer.stdout,
                stderr=answer.stderr,
                timed_out=not flooded,
                flooded=flooded,
            )
    except _CannotStart as error:
        return Captured(rc=CANNOT_START, stderr=str(error).encode(), started=False)


class _Answer:
    """What a process says on both streams, as far as it is read."""

    def __init__(self, process: _Process, pipes: Reader, limit: float) -> None:
        self._process = process
        self._pipes = pipes
        self._limit = limit
        self._said = (bytearray(), bytearray())

    @property
    def stdout(self) -> bytes:
        return bytes(self._said[0])

    @property
    def stderr(self) -> bytes:
        return bytes(self._said[1])

    @property
    def flooded(self) -> bool:
        return max(map(len, self._said)) > self._limit

    def ends_by(self, deadline: float) -> bool:
        """Read on; return whether both streams and the process ended in time, within the limit."""
        while self._pipes.open:
            left = deadline - time.monotonic()
            if left <= 0 or self.flooded:
                break
            if chunk := self._pipes.read(left):
                self._said[chunk.pipe].extend(chunk.data)
        # Not polled before both have ended: the number of a process that was reaped can be another's.
        return not self._pipes.open and not self.flooded and _has_ended(self._process, deadline)


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    log: Sink,
    on_block: Callable[[bytes], None],
    on_idle: Callable[[int], None] | None = None,
) -> int:
    """Run a long process: every byte of stdout and stderr to `log`, every line to `on_block`.

    The lines come in blocks as `Blocks` makes them, as many as one read brought. `on_idle` is called
    with its pid for every half second in which it says nothing. What either raises ends the whole tree.
    A daemon that the build left behind (a compiler cache's server) may hold the pipe open: then the
    exit of the process and half a second of silence end it.
    Returns the exit code as in `Captured`; when the program cannot start, that is 127
    and the reason is its only line. Raises Interrupted once the whole tree is ended.
    """
    blocks = Blocks()
    try:
        # The pipe is closed last, when whatever broke this off has ended the tree.
        with (
            contextlib.ExitStack() as at_last,
            _started(argv, env, cwd, stderr=subprocess.STDOUT) as process,
        ):
            assert process.stdout is not None
            widen(process.stdout)
            pipe = at_last.enter_context(Reader(process.stdout))
            while pipe.open:
                if chunk := pipe.read(IDLE):
                    log.write(chunk.data)
                    if block := blocks.feed(chunk.data):
                        on_block(block)
                elif process.poll() is not None:
                    break
                elif on_idle is not None:
                    on_idle(process.pid)
            if block := blocks.end():
                on_block(block)
            _has_ended(process, math.inf)
            return process.returncode
    except _CannotStart as error:
        reason = f"{error}\n".encode(errors="replace")
        log.write(reason)
        on_block(reason)
        return CANNOT_START


def _has_ended(process: _Process, deadline: float) -> bool:
    """Wait for the end of a process; in pieces on Windows, where no signal breaks off a wait."""
    while process.poll() is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        seconds = min(left, IDLE) if sys.platform == "win32" else left
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds if seconds < math.inf else None)
    return True


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
        if process.job is not None:
            process.job.release()
    except BaseException as error:
        with signals_wait(deliver=False):
            if process is not None:
                end_tree(process.pid, job=process.job)
                process.poll()
        if isinstance(error, KeyboardInterrupt):
            raise interrupted() from None
        raise


def _popen(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: Path | str | None, stderr: int
) -> _Process:
    own: dict[str, Any] = {"start_new_session": True}
    command, name = argv, argv if isinstance(argv, str) else argv[0]
    if sys.platform == "win32":
        # Suspended, so that nothing it starts can be outside its job.
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | _CREATE_SUSPENDED}
        if stderr == subprocess.PIPE:  # captured: a console of its own, so that chcp works and
            own["creationflags"] |= subprocess.CREATE_NO_WINDOW  # leaves the user's as it is
        command = _found(argv, os.environ if env is None else env)
    try:
        process = _Process(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            **own,
        )
    except (OSError, ValueError) as error:
        raise _CannotStart(f"cannot start {name}: {error}") from error
    if sys.platform == "win32":
        _run_in_job(process, name)
    return process


def _found(argv: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
    """With the program's path: CreateProcess searches our PATH, not the one that is passed on."""
    if isinstance(argv, str):
        return argv
    path = next((value for name, value in env.items() if name.upper() == "PATH"), None)
    return [shutil.which(argv[0], path=path) or argv[0], *argv[1:]]


if sys.platform == "win32":

    def _run_in_job(process: _Process, name: str) -> None:
        try:
            process.job = adopt(process.pid)
        except OSError as error:
            process.kill()
            raise _CannotStart(f"cannot start {name}: {error}") from error
