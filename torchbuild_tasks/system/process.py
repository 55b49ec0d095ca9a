"""The only module that starts programs: `capture` for short ones, `stream` for the build.

Every process leads a session of its own, on Windows a job, so that its whole tree can be ended,
compilers included. Output is bytes until it is shown, and memory is bounded however much of it
there is. In this order: the two functions, starting and waiting, reading the pipes, and messages
about the end.
"""

from __future__ import annotations

import contextlib
import locale
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from torchbuild_tasks.system.left_running import current
from torchbuild_tasks.system.lines import Blocks
from torchbuild_tasks.system.process_tree import GRACE, end_tree
from torchbuild_tasks.system.signals import interrupted, signals_wait

if sys.platform == "win32":
    from torchbuild_tasks.system.windows_job import adopt
else:
    import select
if sys.platform == "linux":
    import fcntl
if TYPE_CHECKING:
    from torchbuild_tasks.system.windows_job import Job

CANNOT_START: Final = 127  # the exit codes of sh and of timeout(1)
TIMED_OUT: Final = 124
IDLE: Final = 0.5  # seconds; no read waits longer
_CHUNK: Final = 1 << 20  # bytes of one read, and what a widened pipe holds
# https://learn.microsoft.com/windows/win32/procthread/process-creation-flags
_CREATE_SUSPENDED: Final = 0x4


class Sink(Protocol):
    """A receiver of raw output: a `Log`, a binary file."""

    def write(self, data: bytes, /) -> object: ...


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a short process.

    `rc` is its exit code, minus the signal's number if a signal ended it, 127 if it could not
    start (`stderr` is then the reason) and 124 if we ended it, because it `timed_out` or because
    it was `flooded`: it wrote more bytes than the limit.
    """

    rc: int
    stdout: bytes = b""
    stderr: bytes = b""
    timed_out: bool = False
    flooded: bool = False
    started: bool = True

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def output(self) -> str:
        return (self.stdout + self.stderr).decode(errors="replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode(errors="replace").strip()

    @property
    def answer(self) -> str:
        """Return its stdout, stripped, if it succeeded; else ""."""
        return self.text.strip() if self.rc == 0 else ""


class Tail:
    """Keeps the last non-blank lines of a program's output, without colours; `show` also gets every block."""

    def __init__(self, show: Callable[[bytes], object] | None = None, most: int = 20) -> None:
        self.lines: tuple[str, ...] = ()
        self._show = show
        self._most = most

    def __call__(self, block: bytes) -> None:
        from torchbuild_tasks.text.visible import output

        text = output(block.decode(errors="replace"), colours=False)
        lines = (line.rstrip() for line in text.splitlines())
        self.lines = (*self.lines, *filter(None, lines))[-self._most :]
        if self._show is not None:
            self._show(block)


def capture(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    stdin: Path | None = None,
    timeout: float | None = None,
    limit: float = math.inf,
    grace: float = GRACE,
    on_start: Callable[[int], object] = lambda pid: None,
) -> Captured:
    """Run a short process to its end and return its output.

    Args:
        argv: the program and its arguments; no shell. On Windows it may be one string, the
            command line, because cmd.exe has quoting of its own.
        env, cwd: its environment and working folder; default: ours.
        stdin: a file for its input; default: empty.
        timeout: seconds after which its tree is ended; the output until then is returned.
        limit: bytes of one stream after which its tree is ended.
        grace: seconds between the request to end and the kill; 0 kills at once.
        on_start: is called with the pid once it runs.

    Returns:
        The result; a program that is missing or fails raises nothing.

    Raises:
        Interrupted: Ctrl-C, once the whole tree is ended.
    """
    try:
        with (
            contextlib.ExitStack() as at_last,
            _start(argv, env, cwd, stderr=subprocess.PIPE, stdin=stdin) as process,
        ):
            assert process.stdout is not None
            assert process.stderr is not None
            on_start(process.pid)
            pipes = at_last.enter_context(Reader(process.stdout, process.stderr))
            output = _Output(process, pipes, limit)
            if output.read_until(math.inf if timeout is None else time.monotonic() + timeout):
                return output.captured(process.returncode)
            flooded = output.flooded
            end_tree(process.pid, grace, job=process.job)
            process.poll()
            # Not longer: a process outside of the tree may hold a pipe.
            output.read_until(time.monotonic() + IDLE)
            return output.captured(TIMED_OUT, timed_out=not flooded, flooded=flooded)
    except _CannotStart as error:
        return Captured(rc=CANNOT_START, stderr=str(error).encode(), started=False)


def stream(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    log: Sink | None = None,
    on_block: Callable[[bytes], None],
    on_idle: Callable[[int], None] | None = None,
) -> int:
    """Run a long process: every byte of stdout and stderr to `log`, every line to `on_block`.

    A daemon started by the build (a compiler cache's server) may keep the pipe open: then the exit of
    the process and half a second without output end the call.

    Args:
        argv, env, cwd: as for `capture`.
        log: receives every byte; None discards them.
        on_block: receives the lines of each read as one block (see `Blocks`).
        on_idle: is called with the pid after every half second without output. An exception of
            this or of `on_block` ends the whole tree.

    Returns:
        The exit code as in `Captured`; 127 if the program cannot start, with the reason as its
        only line.

    Raises:
        Interrupted: Ctrl-C, once the whole tree is ended.
    """
    blocks = Blocks()
    try:
        # The pipe is closed last, after an exception has ended the tree.
        with contextlib.ExitStack() as at_last, _start(argv, env, cwd, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            widen(process.stdout)
            pipe = at_last.enter_context(Reader(process.stdout))
            while pipe.open:
                if chunk := pipe.read(IDLE):
                    if log is not None:
                        log.write(chunk.data)
                    if block := blocks.feed(chunk.data):
                        on_block(block)
                elif process.poll() is not None:
                    break
                elif on_idle is not None:
                    on_idle(process.pid)
            if block := blocks.end():
                on_block(block)
            _wait_for_end(process, math.inf)
            return process.returncode
    except _CannotStart as error:
        reason = f"{error}\n".encode(errors="replace")
        if log is not None:
            log.write(reason)
        on_block(reason)
        return CANNOT_START


# ---------------- starting a process, waiting for its end


class _Process(subprocess.Popen[bytes]):  # noqa: TID251 - this is the door
    """A process, and on Windows the job that it and its descendants are in."""

    job: Job | None = None


class _CannotStart(OSError):
    """The program did not start; distinct from an OSError of `log` or `on_block`."""


@contextlib.contextmanager
def _start(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    *,
    stderr: int,
    stdin: Path | None = None,
) -> Iterator[_Process]:
    """Start a process in a session of its own; an exception in the body ends the whole tree."""
    process = None
    try:
        with signals_wait(deliver=True):  # a signal inside Popen would lose the pid
            process = _open(argv, env, cwd, stderr, stdin)
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


def _open(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: Path | str | None,
    stderr: int,
    stdin: Path | None,
) -> _Process:
    name = argv if isinstance(argv, str) else argv[0]
    command = argv
    own: dict[str, Any] = {"start_new_session": True}
    if cwd is not None and sys.platform != "win32":
        # As `cd` does: CMake (4.4.4, tried) takes the folder's name from PWD, which may be the user's way
        # through links; to the next build, a tree of that name looked as if it had been moved.
        env = {**(os.environ if env is None else env), "PWD": os.path.abspath(cwd)}  # noqa: PTH100
    if sys.platform == "win32":
        # Suspended, so that nothing it starts can be outside its job.
        own = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | _CREATE_SUSPENDED}
        if stderr == subprocess.PIPE:  # captured: a console of its own, so that chcp works and
            own["creationflags"] |= subprocess.CREATE_NO_WINDOW  # leaves the user's as it is
        command = with_path(argv, os.environ if env is None else env)
    run = current()
    try:
        if run is not None:
            run.starting()
        with Path(os.devnull if stdin is None else stdin).open("rb") as source:
            process = _Process(
                command,
                env=env if run is None else run.environ(env),
                cwd=cwd,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                **own,
            )
    except (OSError, ValueError) as error:
        raise _CannotStart(f"cannot start {name}: {error}") from error
    if run is not None:
        run.note(str(process.pid))
    if sys.platform == "win32":
        _run_in_job(process, name)
    return process


def search_path(env: Mapping[str, str]) -> str | None:
    """Return the PATH of `env`, whose name Windows writes in any case."""
    return next((value for name, value in env.items() if name.upper() == "PATH"), None)


def with_path(argv: Sequence[str], env: Mapping[str, str]) -> Sequence[str]:
    """Return argv with the program's full path: CreateProcess searches our PATH, not that of `env`."""
    if isinstance(argv, str):
        return argv
    path = search_path(env)
    if os.path.dirname(argv[0]):  # noqa: PTH120 - a string, not a path
        import shutil

        return [shutil.which(argv[0], path=path) or argv[0], *argv[1:]]
    # Unlike shutil.which and CreateProcess, ignore the current folder: a checkout may hold a git.exe.
    folders = (path if path is not None else os.environ.get("PATH", "")).split(os.pathsep)
    endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep)
    if argv[0].lower().endswith(tuple(ending.lower() for ending in endings if ending)):
        endings = [""]
    names = [argv[0] + ending for ending in endings]
    places = (
        Path(folder.strip('"'), name) for folder in folders if folder not in ("", ".") for name in names
    )
    program = next((str(place) for place in places if place.is_file()), None)
    if program is None:
        raise _CannotStart(f"cannot start {argv[0]}: it is in no folder of PATH")
    return [program, *argv[1:]]


if sys.platform == "win32":

    def _run_in_job(process: _Process, name: str) -> None:
        try:
            process.job = adopt(process.pid)
        except OSError as error:
            process.kill()
            raise _CannotStart(f"cannot start {name}: {error}") from error


def _wait_for_end(process: _Process, deadline: float) -> bool:
    """Wait for a process; return whether it ended before the deadline (of time.monotonic)."""
    while process.poll() is None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        _wait(process, remaining)
    return True


def _wait(process: _Process, seconds: float) -> None:
    """Wait for the end of a process, `seconds` at most.

    With a timeout Popen.wait sleeps in steps on POSIX, from 1 ms to 50 ms (subprocess.py of Python
    3.11), which is as long as a short program runs. A descriptor of the process is ready at once.
    """
    if sys.platform == "linux" and seconds < math.inf:
        with contextlib.suppress(OSError):  # Linux before 5.3, and sandboxes that know no pidfd_open(2)
            descriptor = os.pidfd_open(process.pid)
            try:
                poll = select.poll()
                poll.register(descriptor, select.POLLIN)
                poll.poll(1000 * seconds)
            finally:
                os.close(descriptor)
            return
    if sys.platform == "win32":  # no signal breaks off a wait there
        seconds = min(seconds, IDLE)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds if seconds < math.inf else None)


# ---------------- reading its pipes


class _Output:
    """The output of a process on both streams, as read so far."""

    def __init__(self, process: _Process, pipes: Reader, limit: float) -> None:
        self._process = process
        self._pipes = pipes
        self._limit = limit
        self._streams = (bytearray(), bytearray())

    def captured(self, rc: int, **how: bool) -> Captured:
        return Captured(rc=rc, stdout=bytes(self._streams[0]), stderr=bytes(self._streams[1]), **how)

    @property
    def flooded(self) -> bool:
        return max(map(len, self._streams)) > self._limit

    def read_until(self, deadline: float) -> bool:
        """Read until the deadline; return whether streams and process ended in time, within the limit."""
        while self._pipes.open:
            remaining = deadline - time.monotonic()
            if remaining <= 0 or self.flooded:
                break
            if chunk := self._pipes.read(remaining):
                self._streams[chunk.pipe].extend(chunk.data)
        # Not polled before both have ended: the pid of a reaped process may be reused.
        return not self._pipes.open and not self.flooded and _wait_for_end(self._process, deadline)


class Chunk(NamedTuple):
    """The bytes of one read, and the number of their pipe; no bytes mean its end."""

    pipe: int
    data: bytes


def widen(pipe: IO[bytes]) -> None:
    """Enlarge a pipe's buffer, so that a build goes on while a chunk is processed.

    Not for short answers: the kernel gives every pipe of a user less once many are wide
    (pipe-user-pages-soft in pipe(7)).
    """
    # glibc returns each freed chunk to the kernel and maps the next one page by page, which takes half
    # of the time. Freeing one larger, untouched chunk raises its threshold.
    bytes(8 * _CHUNK)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # the kernel may set a lower limit
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _CHUNK)


class Threaded:
    """Pipes that are each read by a thread: Windows has no poll for them.

    A context that closes the pipes. Leave it after the process has been ended: whoever
    writes into a closed pipe dies, a Ninja that was asked to stop too, before it has
    removed what it had half done.
    """

    def __init__(self, *pipes: IO[bytes]) -> None:
        self._read: queue.Queue[Chunk] = queue.Queue(maxsize=8)
        self._over = threading.Event()
        self._left = len(pipes)
        for number, pipe in enumerate(pipes):
            threading.Thread(target=self._read_all, args=(number, pipe), daemon=True).start()

    def __enter__(self) -> Threaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(queue.Empty):
            while True:  # makes room for a waiting reader, so that it can end
                self._read.get_nowait()

    @property
    def open(self) -> bool:
        return self._left > 0

    def read(self, seconds: float) -> Chunk | None:
        """Return the next bytes; None after `seconds`, or `IDLE`, without any."""
        try:
            chunk = self._read.get(timeout=min(seconds, IDLE))
        except queue.Empty:
            return None
        self._left -= not chunk.data
        return chunk

    def _read_all(self, number: int, pipe: IO[bytes]) -> None:
        """Read to the end, and close the pipe: closing it in another thread would wait for the read."""
        with pipe:
            while not self._over.is_set() and (data := os.read(pipe.fileno(), _CHUNK)):
                self._read.put(Chunk(number, data))
        self._read.put(Chunk(number, b""))


if sys.platform != "win32":

    class Polled:
        """Pipes that are read with poll(2); otherwise as `Threaded`."""

        def __init__(self, *pipes: IO[bytes]) -> None:
            self._pipes = pipes
            self._numbers = {pipe.fileno(): number for number, pipe in enumerate(pipes)}
            self._ready: list[int] = []
            self._poll = select.poll()
            for descriptor in self._numbers:
                self._poll.register(descriptor, select.POLLIN)

        def __enter__(self) -> Polled:
            return self

        def __exit__(self, *_: object) -> None:
            for pipe in self._pipes:
                pipe.close()

        @property
        def open(self) -> bool:
            return bool(self._numbers)

        def read(self, seconds: float) -> Chunk | None:
            """Return the next bytes; None after `seconds`, or `IDLE`, without any."""
            if not self._ready:
                self._ready = [found for found, _ in self._poll.poll(1000 * min(seconds, IDLE))]
            if not self._ready:
                return None
            descriptor = self._ready.pop()
            chunk = Chunk(self._numbers[descriptor], os.read(descriptor, _CHUNK))
            if not chunk.data:
                self._poll.unregister(descriptor)
                del self._numbers[descriptor]
            return chunk


if sys.platform == "win32":
    Reader = Threaded
else:
    Reader = Polled


# ---------------- messages about its end


# Windows' exit statuses of a process that crashed. Source: ntstatus.h of the Windows SDK; the
# two of delay loading are of delayimp.h, the last is what MSVC's throw raises.
STATUSES: Final[Mapping[int, str]] = {
    0x80000003: "a breakpoint or a failed assertion",
    0xC0000005: "access violation",
    0xC0000017: "not enough memory",
    0xC000001D: "illegal instruction: built for another processor",
    0xC000007B: "a DLL is not a valid image: 32 and 64 bit mixed",
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
    0xE06D7363: "a C++ exception that was not caught",
}

_TAIL: Final = 8
_FATAL: Final = ("Fatal Python error", "Timeout (", "Windows fatal exception")
_TRACEBACK: Final = "Traceback (most recent call last):"


def ending(captured: Captured) -> str:
    """Describe the end of an interpreter: by a signal on Linux, with a status code on Windows."""
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
    """Say whether the probe's faulthandler ended it after its time limit."""
    return captured.rc == 1 and b"Timeout (" in captured.stderr


def _signal(number: int) -> str:
    try:
        return signal.strsignal(number) or "unknown"
    except ValueError:  # Windows has few
        return "unknown"


def tail(output: bytes) -> str:
    """Return the most informative lines: the last, the first of faulthandler, or both of a failed start."""
    lines = _text(output).strip().splitlines()
    fatal = [number for number, line in enumerate(lines) if line.startswith(_FATAL)]
    shown = lines[fatal[0] :] if fatal else lines[-_TAIL:]
    if fatal and len(shown) > _TAIL and _TRACEBACK in shown:  # the interpreter's start: its exception is last
        shown = [shown[0], *shown[1 - _TAIL :]]
    return "".join(f"\n  {line[:300]}" for line in shown[:_TAIL])


def _text(output: bytes) -> str:
    """Decode output: UTF-8, else the machine's code page."""
    try:
        return output.decode()
    except UnicodeDecodeError:
        return output.decode(locale.getencoding(), errors="replace")
