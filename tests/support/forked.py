"""Runs the console command in forks of one process that has imported the package already.

Most of what a verb with little to do takes is the start of Python and its imports. A fork is a process like
any other: with its own number, environment, folder and signals. What Python reads at its start it cannot have
otherwise than the first process: such a command is started anew.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, get_args

import msgspec

import torchbuild_tasks
from torchbuild_tasks.build.outputs import recordable_outputs
from torchbuild_tasks.catalog import TABLES, load_catalog
from torchbuild_tasks.fronts import console
from torchbuild_tasks.model.facts import Era
from torchbuild_tasks.text import redaction

# Python, its C library and the loader look at these once.
AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "MALLOC_", "OPENSSL_")

# What a verb imports when it needs it, and most need.
LATE: Final = ("filelock", "platformdirs", "platformdirs.unix", "tomllib")


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a command wrote, and its exit code; negative for the signal that ended it."""

    code: int
    out: str
    err: str


class Server:
    """The process that forks, ended by the end of this one.

    It is no child of this process: tests look at the processes below their own.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self.at_start = _read_at_start(env)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            subprocess.run(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                check=True,
            )
        self.pid = int(self.channel.recv(16))
        atexit.register(self.close)

    def close(self) -> None:
        """End the server, not the commands that it has started."""
        self.channel.close()

    def can_have(self, env: Mapping[str, str]) -> bool:
        """Say whether a fork would be what a new process is in this environment."""
        return _read_at_start(env) == self.at_start

    def run(self, words: Sequence[str], env: Mapping[str, str], cwd: str, timeout: float) -> Ended:
        """Run the command and return its end; after `timeout` seconds it is killed.

        Raises:
            subprocess.TimeoutExpired: it was.
        """
        (out, its_out), (err, its_err) = os.pipe(), os.pipe()
        umask = os.umask(0)
        os.umask(umask)
        reply, its_reply = socket.socketpair()
        with reply, os.fdopen(out, "rb", 0) as out_pipe, os.fdopen(err, "rb", 0) as err_pipe:
            with its_reply, tempfile.TemporaryFile() as asked, Path(os.devnull).open("rb") as nothing:
                asked.write(json.dumps([list(words), dict(env), cwd, umask]).encode())
                asked.seek(0)
                fds = [asked.fileno(), nothing.fileno(), its_out, its_err, its_reply.fileno()]
                socket.send_fds(self.channel, [b"run"], fds)
            os.close(its_out)
            os.close(its_err)
            end = time.monotonic() + timeout
            try:
                out_bytes, err_bytes = _read_both(out_pipe, err_pipe, end)
            except TimeoutError:
                os.kill(_receive_number(reply), signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(words), timeout) from None
            _receive_number(reply)  # its process id
            status = _receive_number(reply)
        return Ended(code=os.waitstatus_to_exitcode(status), out=_decode(out_bytes), err=_decode(err_bytes))


# What a shell starts: it hands its own streams, folder and environment on, and ends as the fork does.
CLIENT: Final = """#!{python} -IS
import _socket, json, os, sys
env = dict(os.environ)
if {{name: value for name, value in env.items() if name.startswith({at_start!r})}} != {served!r}:
    os.execv({python!r}, [{python!r}, {anew!r}, *sys.argv[1:]])
umask = os.umask(0)
os.umask(umask)
asked = os.memfd_create("asked")
os.write(asked, json.dumps([sys.argv[1:], env, os.getcwd(), umask]).encode())
os.lseek(asked, 0, 0)
mine, reply = _socket.socketpair()
fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (asked, 0, 1, 2, reply.fileno()))
channel = _socket.socket(fileno={channel})
channel.sendmsg([b"run"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
reply.close()
pid, status = (mine.recv(4, _socket.MSG_WAITALL) for each in range(2))
code = os.waitstatus_to_exitcode(int.from_bytes(status, "big"))
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def write_client(program: Path, server: Server, anew: Path) -> None:
    """Write the command for a shell that has the channel of the server; `anew` is it in a new process."""
    text = CLIENT.format(
        python=sys.executable,
        at_start=AT_START,
        served=server.at_start,
        anew=str(anew),
        channel=server.channel.fileno(),
    )
    program.write_text(text, "utf-8")
    program.chmod(0o755)


def _receive_number(reply: socket.socket) -> int:
    data = reply.recv(4, socket.MSG_WAITALL)
    assert len(data) == 4, "the process that forks was killed"
    return int.from_bytes(data, "big")


def _read_both(out: IO[bytes], err: IO[bytes], end: float) -> tuple[bytes, bytes]:
    """Read to the end of both, which is when no process has them open any more."""
    read: dict[int, bytearray] = {out.fileno(): bytearray(), err.fileno(): bytearray()}
    with selectors.DefaultSelector() as waiting:
        for pipe in (out, err):
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(end - time.monotonic())
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                read[key.fd] += data
                if not data:
                    waiting.unregister(key.fileobj)
    return bytes(read[out.fileno()]), bytes(read[err.fileno()])


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a fork could not have otherwise."""
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


def _decode(data: bytes) -> str:
    """Return output as subprocess would with text=True."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="locale", errors="surrogateescape").read()


# ---------------------------------------------------------------- the process that forks


RUNNING: Final[dict[int, int]] = {}  # by the process id of a command, where its end is reported


def main() -> None:
    """Fork until the channel is closed; each fork becomes the command that was asked for."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    if os.fork():
        os._exit(0)  # its child goes on, without a parent here
    channel.send(b"%d" % os.getpid())
    _import_package()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _report_ends)
    while True:
        _, fds, _, _ = socket.recv_fds(channel, 16, 5)
        if not fds:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # it may end before it is noted
        pid = os.fork()
        if pid == 0:
            break
        RUNNING[pid] = fds.pop()
        os.write(RUNNING[pid], pid.to_bytes(4, "big"))
        for fd in fds:
            os.close(fd)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    channel.close()
    _become_command(*fds)


def _report_ends(number: int, frame: object) -> None:
    """Wait for commands that have ended, so that no zombie is left, and send their status."""
    while RUNNING:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with contextlib.suppress(BrokenPipeError):  # its reader gave up
            os.write(RUNNING[pid], status.to_bytes(4, "big"))
        os.close(RUNNING.pop(pid))


def _become_command(asked: int, given: int, out: int, err: int, reply: int) -> None:
    for other in (reply, *RUNNING.values()):
        os.close(other)
    with os.fdopen(asked, "rb") as file:
        words, env, cwd, umask = json.load(file)
    for fd, number in ((given, 0), (out, 1), (err, 2)):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(cwd)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(env)
    sys.argv, sys.path[0] = [str(console.__file__), *words], cwd
    _run_command()


def _run_command() -> None:
    """Run the command and end as Python does, but for the modules, which are not taken apart.

    That would write into all the memory that a fork shares: 80 ms of CPU, where `--version` takes 17.
    """
    try:
        console.main()
    except SystemExit as end:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)


def _import_package() -> None:
    """Import every module that this system can use, with what they import late, and read the rows.

    The patterns of secrets and of outputs are compiled as well: each build asks for them.
    """
    for module in pkgutil.walk_packages(torchbuild_tasks.__path__, f"{torchbuild_tasks.__name__}."):
        if not module.name.endswith("_windows"):
            importlib.import_module(module.name)
    for late in LATE:
        importlib.import_module(late)
    for table in TABLES:
        getattr(load_catalog(), table)
    redaction.rules()
    for era in get_args(Era):
        outputs = recordable_outputs(load_catalog(), era)
        assert outputs.reaches("build/") and not outputs.matches("")


if __name__ == "__main__":
    main()
