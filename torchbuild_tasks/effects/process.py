"""The only door to processes: `capture` for short questions, `stream` for the build.

Every process leads a session of its own, on Windows a job, so that one thing can be
ended: the whole tree, compilers and all. Output is bytes until it is shown; memory stays
flat however much of it there is.
"""

from __future__ import annotations

import contextlib
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
from torchbuild_tasks.effects.reading import IDLE, chunks
from torchbuild_tasks.effects.signals import interrupted, signals_wait
from torchbuild_tasks.effects.tree import end_tree

if sys.platform == "win32":
    from torchbuild_tasks.effects.job import adopt
if TYPE_CHECKING:
    from torchbuild_tasks.effects.job import Job

CANNOT_START: Final = 127
TIMED_OUT: Final = 124
# Windows cannot break off a wait for a signal, so it waits in pieces.
_PIECE: Final = IDLE if sys.platform == "win32" else None
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
    `env` it gets ours. On Windows `argv` may be one string, the whole command line, for
    cmd.exe has quoting of its own. Raises Interrupted on Ctrl-C; never raises for a
    program that is missing or fails.
    """
    try:
        with _started(argv, env, cwd, stderr=subprocess.PIPE) as process:
            try:
                return _answer(process, timeout)
            finally:
                _close(process)
    except _CannotStart as error:
        return Captured(rc=CANNOT_START, stderr=str(error).encode())


def _answer(process: _Process, timeout: float | None) -> Captured:
    try:
        out, err = _said(process, timeout)
        return Captured(rc=process.returncode, stdout=out, stderr=err)
    except subprocess.TimeoutExpired:
        end_tree(process.pid, job=process.job)
    try:
        out, err = process.communicate(timeout=IDLE)
    except subprocess.TimeoutExpired as late:  # something that left the tree holds the pipe
        out, err = late.output or b"", late.stderr or b""
    return Captured(rc=TIMED_OUT, stdout=out, stderr=err, timed_out=True)


def _said(process: _Process, timeout: float | None) -> tuple[bytes, bytes]:
    """All it says, in time or TimeoutExpired."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        piece = min((each for each in (left, _PIECE) if each is not None), default=None)
        try:
            return process.communicate(timeout=piece)
        except subprocess.TimeoutExpired:
            if piece == left:
                raise


def _close(process: _Process) -> None:
    """Close the pipes; on Windows a thread of Popen's reads each, which closes it at its end.

    To close it under the thread would wait for the thread.
    """
    if sys.platform != "win32":
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()


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
            said = at_last.enter_context(chunks(process.stdout, lambda: _is_over(process, on_idle)))
            for chunk in said:
                log.write(chunk)
                if block := blocks.feed(chunk):
                    on_block(block)
            if block := blocks.end():
                on_block(block)
            return _waited(process)
    except _CannotStart as error:
        reason = f"{error}\n".encode(errors="replace")
        log.write(reason)
        on_block(reason)
        return CANNOT_START


def _is_over(process: _Process, on_idle: Callable[[int], None] | None) -> bool:
    if process.poll() is not None:
        return True
    if on_idle is not None:
        on_idle(process.pid)
    return False


def _waited(process: _Process) -> int:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_PIECE)


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
