"""The door to processes, opened on real small ones."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from torchbuild_tasks.effects import process, reading
from torchbuild_tasks.effects.blocks import LINE_LIMIT
from torchbuild_tasks.effects.process import CANNOT_START, TIMED_OUT, capture, stream
from torchbuild_tasks.effects.signals import interruptible, signals_wait
from torchbuild_tasks.effects.tree import end_tree
from torchbuild_tasks.errors import Interrupted

pytestmark = pytest.mark.integration
PY = sys.executable


def stream_python(code: str) -> tuple[int, bytes, list[str]]:
    log, lines = io.BytesIO(), Shown()
    rc = stream([PY, "-c", code], env=None, cwd=None, log=log, on_block=lines.take)
    return rc, log.getvalue(), lines


class Shown(list[str]):
    """The lines of all blocks; each block must be whole lines."""

    def take(self, block: bytes) -> None:
        assert block.endswith(b"\n")
        self.extend(block.decode(errors="replace").removesuffix("\n").split("\n"))


# ---------------------------------------------------------------- capture


def test_capture_keeps_both_streams_apart_and_closes_stdin() -> None:
    code = "import sys; print('out', repr(sys.stdin.read())); print('err', file=sys.stderr); sys.exit(3)"
    done = capture([PY, "-c", code])
    assert (done.rc, done.timed_out) == (3, False)
    assert done.stdout.split() == [b"out", b"''"]
    assert done.stderr.split() == [b"err"]


def test_capture_passes_environment_and_folder(tmp_path: Path) -> None:
    done = capture(["sh", "-c", 'echo "$A" "$(pwd)"'], env={"A": "1", "PATH": os.defpath}, cwd=tmp_path)
    assert done.stdout.decode().split() == ["1", str(tmp_path)]


def test_a_program_is_looked_for_on_the_path_that_is_passed_on(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "tool").chmod(0o755)
    assert capture(["tool"], env={"PATH": str(tmp_path)}).stdout == b"mine\n"


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/"], ["a\0b"], [PY + "x", "-c", ""]])
def test_what_cannot_start_is_told_not_raised(argv: list[str]) -> None:
    done = capture(argv)
    assert done.rc == CANNOT_START
    assert argv[0].encode() in done.stderr or b"null byte" in done.stderr


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    assert b"nowhere" in capture([PY], cwd=tmp_path / "nowhere").stderr


def test_a_signal_shows_as_a_negative_code() -> None:
    assert capture(["sh", "-c", "kill -9 $$"]).rc == -signal.SIGKILL


def test_a_timeout_ends_the_whole_tree_and_keeps_what_was_said() -> None:
    start = time.monotonic()
    done = capture(["sh", "-c", "echo $$; sleep 60 & sleep 60"], timeout=0.3)
    assert (done.rc, done.timed_out) == (TIMED_OUT, True)
    assert time.monotonic() - start < 5
    assert not members_of(int(done.stdout))


# ---------------------------------------------------------------- stream


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_stream_merges_both_streams_into_log_and_lines(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "chunks", way)
    code = "import os; os.write(1, b'a\\n'); os.write(2, b'b\\n'); os.write(1, b'end'); raise SystemExit(7)"
    assert stream_python(code) == (7, b"a\nb\nend", ["a", "b", "end"])


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_stream_ends_lines_at_carriage_returns(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "chunks", way)
    code = "import os,time; os.write(1, b'10%\\r20%\\r'); time.sleep(.2); os.write(1, b'\\n30%\\r\\ndone\\n')"
    rc, log, lines = stream_python(code)
    assert (rc, log) == (0, b"10%\r20%\r\n30%\r\ndone\n")
    assert lines == ["10%", "20%", "30%", "done"]


def test_stream_replaces_bytes_that_are_no_text() -> None:
    rc, log, lines = stream_python("import os; os.write(1, b'gr\\xfc\\xdfe\\n\\xe2\\x82\\xac\\n')")
    assert log == b"gr\xfc\xdfe\n\xe2\x82\xac\n"
    assert lines == ["gr\ufffd\ufffde", "\u20ac"]


def test_a_program_that_cannot_start_is_one_line() -> None:
    log, lines = io.BytesIO(), Shown()
    rc = stream(["/no/such"], env=None, cwd=None, log=log, on_block=lines.take)
    assert rc == CANNOT_START
    assert log.getvalue().decode().splitlines() == lines
    assert "/no/such" in lines[0]


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_a_line_without_end_costs_no_memory(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "chunks", way)
    size = 50 << 20
    code = f"import os\nfor _ in range({size >> 20}): os.write(1, b'x' * (1 << 20))\nos.write(1, b'\\nlast')"
    sink, lines = Counter(), Shown()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream([PY, "-c", code], env=None, cwd=None, log=sink, on_block=lines.take)
    assert sink.size == size + 5
    assert lines == ["x" * LINE_LIMIT, "last"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10


class Counter:
    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_a_daemon_that_keeps_the_pipe_does_not_keep_the_build(
    way: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "chunks", way)
    start = time.monotonic()
    log, lines = io.BytesIO(), Shown()
    argv = ["sh", "-c", "setsid sleep 20 & echo $!; echo built"]
    assert stream(argv, env=None, cwd=None, log=log, on_block=lines.take) == 0
    assert lines[1:] == ["built"]
    assert time.monotonic() - start < 5
    os.kill(int(lines[0]), signal.SIGTERM)  # it was left alone


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_what_breaks_in_on_block_ends_the_build(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "chunks", way)
    seen = Shown()

    def broken(block: bytes) -> None:
        seen.take(block)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stream(["sh", "-c", "echo $$; sleep 60"], env=None, cwd=None, log=Counter(), on_block=broken)
    assert not members_of(int(seen[0]))


# ---------------------------------------------------------------- trees and signals


def members_of(session: int) -> list[str]:
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            if os.getsid(pid) == session and is_alive(pid):
                found.append(psutil.Process(pid).name())
    return found


def is_alive(pid: int) -> bool:
    """Not a zombie either: what reaps orphans here may take its time."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def test_end_tree_of_a_process_that_is_gone() -> None:
    gone = subprocess.Popen([PY, "-c", ""])
    gone.wait()
    assert end_tree(gone.pid) == ()


@pytest.fixture
def stubborn() -> Iterator[subprocess.Popen[str]]:
    """Ignores every polite signal, and so do its children; one of them has a session of its own."""
    child = "import signal, time; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]"
    child += "; print(1, flush=True); time.sleep(60)"
    code = f"""import subprocess, sys
a = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
b = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE, start_new_session=True)
a.stdout.readline(), b.stdout.readline()
print(a.pid, b.pid, flush=True)
{child}"""
    with subprocess.Popen(
        [PY, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        process.kill()


def test_end_tree_ends_what_ignores_signals_and_what_left_the_session(
    stubborn: subprocess.Popen[str],
) -> None:
    assert stubborn.stdout is not None
    children = [int(pid) for pid in stubborn.stdout.readline().split()]
    stubborn.stdout.readline()
    start = time.monotonic()
    assert end_tree(stubborn.pid, grace=1.0) == ()
    assert time.monotonic() - start < 5
    stubborn.wait()
    assert not any(is_alive(pid) for pid in children)


@pytest.mark.parametrize("way", [reading.polled, reading.threaded])
def test_ctrl_c_in_stream_ends_the_tree_and_is_told(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "chunks", way)
    session = Shown()

    def interrupt(block: bytes) -> None:
        session.take(block)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as caught:
        stream(["sh", "-c", "echo $$; sleep 60"], env=None, cwd=None, log=Counter(), on_block=interrupt)
    assert caught.value.exit_code == 130
    assert caught.value.next_step
    assert not members_of(int(session[0]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interruptible_tells_the_first_signal_and_ignores_the_next(number: int) -> None:
    after = list[str]()
    with pytest.raises(Interrupted), interruptible():
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            after.append("the record is written")
    assert after
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_nohup_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_while_a_process_starts_waits_until_its_pid_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = list[subprocess.Popen[bytes]]()
    real = process._popen

    def slow(*args: object) -> subprocess.Popen[bytes]:
        started.append(real(*args))  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(process, "_popen", slow)
    with pytest.raises(Interrupted):
        capture(["sleep", "60"])
    assert started[0].returncode is not None
    for pipe in filter(None, (started[0].stdout, started[0].stderr)):
        pipe.close()


def test_signals_that_wait_are_dropped_or_delivered() -> None:
    with signals_wait(deliver=False):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), signals_wait(deliver=True):
        signal.raise_signal(signal.SIGINT)


def test_another_thread_may_start_processes_too() -> None:
    results = list[int]()
    thread = threading.Thread(target=lambda: results.append(capture(["sh", "-c", "exit 4"]).rc))
    thread.start()
    thread.join()
    assert results == [4]
