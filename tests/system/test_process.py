"""The door to processes, opened on real small ones."""

from __future__ import annotations

import _thread
import errno
import io
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from tests.support.capabilities import needs
from tests.support.for_each import each_case
from tests.support.waiting import is_alive
from torchbuild_tasks.errors import Interrupted
from torchbuild_tasks.system import process
from torchbuild_tasks.system.lines import LINE_LIMIT
from torchbuild_tasks.system.process import CANNOT_START, TIMED_OUT, capture, stream
from torchbuild_tasks.system.signals import interruptible, signals_wait

pytestmark = pytest.mark.integration
PY = sys.executable
WAYS = [getattr(process, name) for name in ("Polled", "Threaded") if hasattr(process, name)]
needs_sh = pytest.mark.skipif(os.name != "posix", reason="needs sh")
# Says its pid and that of a process it started, which has left the session or the console.
TREE = """import os, subprocess, sys, time
apart = {"creationflags": 0x208} if os.name == "nt" else {"start_new_session": True}
code = "import time; time.sleep(60)"
plain = subprocess.Popen([sys.executable, "-c", code])
left = subprocess.Popen([sys.executable, "-c", code], **apart)
print(os.getpid(), plain.pid, left.pid, flush=True)
time.sleep(60)
"""


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


@pytest.mark.parametrize("way", WAYS)
def test_capture_keeps_both_streams_apart_and_closes_stdin(
    way: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "Reader", way)
    code = "import sys; print('out', repr(sys.stdin.read())); print('err', file=sys.stderr); sys.exit(3)"
    done = capture([PY, "-c", code])
    assert (done.rc, done.timed_out, done.flooded, done.started) == (3, False, False, True)
    assert done.stdout.split() == [b"out", b"''"]
    assert done.stderr.split() == [b"err"]


def test_capture_hands_a_file_to_a_program_that_reads_one(tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.write_bytes(b"one\ntwo")
    done = capture((PY, "-c", "import sys; print(len(sys.stdin.buffer.read()))"), stdin=said)
    assert done.stdout.strip() == b"7"
    gone = capture((PY, "-c", ""), stdin=tmp_path / "gone")
    assert (gone.rc, gone.started) == (CANNOT_START, False)


def test_capture_passes_environment_and_folder(tmp_path: Path) -> None:
    code = "import os; print(os.environ['A']); print(os.getcwd())"
    env = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}
    done = capture([PY, "-c", code], env={"A": "1", **env}, cwd=tmp_path)
    assert done.stdout.decode().splitlines() == ["1", str(tmp_path)]


@needs(sys.platform != "win32", "PWD")
@pytest.mark.parametrize("env", [None, {"PWD": "/elsewhere"}])
def test_a_program_is_told_the_name_of_its_folder_as_after_cd(
    env: dict[str, str] | None, tmp_path: Path
) -> None:
    done = capture([PY, "-c", "import os; print(os.environ['PWD'])"], env=env, cwd=tmp_path)
    assert done.answer == str(tmp_path)


def test_a_program_is_looked_for_on_the_path_that_is_passed_on(tmp_path: Path) -> None:
    tool, text = ("tool.bat", "@echo mine") if os.name == "nt" else ("tool", "#!/bin/sh\necho mine\n")
    (tmp_path / tool).write_text(text)
    (tmp_path / tool).chmod(0o755)
    assert capture(["tool"], env={**os.environ, "PATH": str(tmp_path)}).stdout.strip() == b"mine"


@each_case("argv", [["/no/such/program"], ["/"], ["a\0b"], [PY + "x", "-c", ""]])
def test_what_cannot_start_is_reported_not_raised(argv: list[str]) -> None:
    done = capture(argv)
    assert (done.rc, done.started) == (CANNOT_START, False)
    assert argv[0].encode() in done.stderr or b"null " in done.stderr


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    done = capture([PY], cwd=tmp_path / "nowhere")
    assert done.rc == CANNOT_START
    assert PY.encode() in done.stderr


@needs_sh
def test_a_signal_shows_as_a_negative_code() -> None:
    assert capture(["sh", "-c", "kill -9 $$"]).rc == -9


def test_a_timeout_ends_the_process_tree_and_keeps_the_output() -> None:
    start = time.monotonic()
    done = capture([PY, "-c", TREE], timeout=1.5)
    assert (done.rc, done.timed_out) == (TIMED_OUT, True)
    assert time.monotonic() - start < 30
    assert [is_alive(int(pid)) for pid in done.stdout.split()] == [False, False, False]


@pytest.mark.parametrize("way", WAYS)
def test_a_flood_ends_the_tree_at_the_limit(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
    code = "import sys\nwhile True: sys.stderr.write('y' * 1000)"
    done = capture([PY, "-c", code], limit=100_000, timeout=60)  # a guard
    assert (done.rc, done.timed_out, done.flooded) == (TIMED_OUT, False, True)
    assert 100_000 < len(done.stderr) < 100 << 20
    assert not done.stdout


@each_case("count", [99, 100])
def test_what_is_within_the_limit_is_no_flood(count: int) -> None:
    done = capture([PY, "-c", f"import os; os.write(1, b'y' * {count})"], limit=100)
    assert (done.rc, done.stdout, done.flooded) == (0, b"y" * count, False)


@needs_sh
@pytest.mark.parametrize(("grace", "asked"), [(3.0, b"asked\n"), (0, b"")])
def test_without_grace_a_late_program_is_killed_at_once(grace: float, asked: bytes) -> None:
    argv = ["sh", "-c", "trap 'echo asked; exit' INT; echo ready; while :; do sleep 0.1; done"]
    done = capture(argv, timeout=3.0, grace=grace)
    assert (done.stdout, done.timed_out) == (b"ready\n" + asked, True)


@pytest.mark.parametrize("way", WAYS)
def test_who_left_the_tree_with_our_pipe_is_not_waited_for(
    way: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program itself is over long before; on Windows the one that left is in the job, and ends."""
    monkeypatch.setattr(process, "Reader", way)
    start = time.monotonic()
    done = capture([PY, "-c", DAEMON], timeout=3.0)
    assert (done.rc, done.timed_out) == (TIMED_OUT, True)
    assert time.monotonic() - start < 15
    pid, said = done.stdout.split()
    assert said == b"built"
    if is_alive(int(pid)):
        psutil.Process(int(pid)).kill()


# ---------------------------------------------------------------- stream


@pytest.mark.parametrize("way", WAYS)
def test_stream_merges_both_streams_into_log_and_lines(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
    code = "import os; os.write(1, b'a\\n'); os.write(2, b'b\\n'); os.write(1, b'end'); raise SystemExit(7)"
    assert stream_python(code) == (7, b"a\nb\nend", ["a", "b", "end"])


@pytest.mark.parametrize("way", WAYS)
def test_stream_ends_lines_at_carriage_returns(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
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


@pytest.mark.parametrize("way", WAYS)
def test_a_line_without_end_costs_no_memory(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
    size = 50 << 20
    code = f"import os\nfor _ in range({size >> 20}): os.write(1, b'x' * (1 << 20))\nos.write(1, b'\\nlast')"
    sink, lines = Counter(), Shown()
    before = peak()
    stream([PY, "-c", code], env=None, cwd=None, log=sink, on_block=lines.take)
    assert sink.size == size + 5
    assert lines == ["x" * LINE_LIMIT, "last"]
    assert peak() - before < 20 << 20


def peak() -> int:
    """The most memory that this process ever had, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# A compiler cache's server: it has our pipe, and lives on.
DAEMON = """import os, subprocess, sys
apart = {"creationflags": 0x208} if os.name == "nt" else {"start_new_session": True}
code = "import time; time.sleep(30)"
print(subprocess.Popen([sys.executable, "-c", code], stdout=1, **apart).pid, flush=True)
print("built", flush=True)
os._exit(0)
"""


class Counter:
    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> None:
        self.size += len(data)


@pytest.mark.parametrize("way", WAYS)
def test_a_daemon_that_keeps_the_pipe_does_not_keep_the_build(
    way: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "Reader", way)
    start = time.monotonic()
    log, lines = io.BytesIO(), Shown()
    assert stream([PY, "-c", DAEMON], env=None, cwd=None, log=log, on_block=lines.take) == 0
    assert lines[1:] == ["built"]
    assert time.monotonic() - start < 25
    assert is_alive(int(lines[0]))  # it was left alone
    psutil.Process(int(lines[0])).kill()


@pytest.mark.parametrize("way", WAYS)
def test_what_breaks_in_on_block_ends_the_build(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
    seen = Shown()

    def broken(block: bytes) -> None:
        seen.take(block)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stream([PY, "-c", TREE], env=None, cwd=None, log=Counter(), on_block=broken)
    assert not any(is_alive(int(pid)) for pid in seen[0].split())


# ---------------------------------------------------------------- signals


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_in_stream_ends_the_tree_and_is_reported(way: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "Reader", way)
    tree = Shown()

    def interrupt(block: bytes) -> None:
        tree.take(block)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted) as caught:
        stream([PY, "-c", TREE], env=None, cwd=None, log=Counter(), on_block=interrupt)
    assert caught.value.exit_code == 130
    assert caught.value.next_step
    assert not any(is_alive(int(pid)) for pid in tree[0].split())


def press_ctrl_c() -> None:
    """As it arrives: by the kernel's signal, or by the thread that Windows starts for it."""
    if os.name == "posix":
        os.kill(os.getpid(), signal.SIGINT)
    else:
        _thread.interrupt_main()


@each_case("silent", [True, False])
def test_ctrl_c_without_output_is_noticed(silent: bool) -> None:
    """The wait is broken off, whether for output or for a short answer."""
    argv, start = [PY, "-c", "import time; time.sleep(60)"], time.monotonic()
    threading.Timer(1.0, press_ctrl_c).start()
    with pytest.raises(Interrupted):
        if silent:
            stream(argv, env=None, cwd=None, log=Counter(), on_block=print)
        else:
            capture(argv)
    assert time.monotonic() - start < 25


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"])
def test_interruptible_tells_the_first_signal_and_ignores_the_next(name: str) -> None:
    if not hasattr(signal, name):
        pytest.skip(f"needs {name}")
    after = list[str]()
    with pytest.raises(Interrupted), interruptible():
        try:
            signal.raise_signal(getattr(signal, name))
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            after.append("the record is written")
    assert after
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_nohup_ignores_stays_ignored() -> None:
    number = getattr(signal, "SIGHUP", signal.SIGTERM)
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)


def test_a_signal_while_a_process_starts_waits_until_its_pid_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = list[process._Process]()
    real = process._open

    def slow(*args: object) -> process._Process:
        started.append(real(*args))  # type: ignore[arg-type]
        signal.raise_signal(signal.SIGINT)
        return started[0]

    monkeypatch.setattr(process, "_open", slow)
    with pytest.raises(Interrupted):
        capture([PY, "-c", "import time; time.sleep(60)"])
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
    thread = threading.Thread(target=lambda: results.append(capture([PY, "-c", "raise SystemExit(4)"]).rc))
    thread.start()
    thread.join()
    assert results == [4]


LATE = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(5)"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open(2)")
def test_the_end_is_waited_for_without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen.wait with a timeout sleeps in steps, which costs a short program half its time again."""
    monkeypatch.setattr(process._Process, "wait", lambda *args: pytest.fail("it was polled"))
    assert capture([PY, "-c", LATE], timeout=60).rc == 5


def test_the_end_is_waited_for_where_there_is_no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object) -> int:
        raise OSError(errno.ENOSYS, "no such system call")

    monkeypatch.setattr(os, "pidfd_open", missing, raising=False)
    assert capture([PY, "-c", LATE], timeout=60).rc == 5
    late = capture([PY, "-c", LATE.replace("0.3", "60")], timeout=1, grace=0)
    assert (late.rc, late.timed_out) == (TIMED_OUT, True)


def test_of_a_long_output_its_last_lines_are_kept_and_all_of_it_is_shown() -> None:
    shown: list[bytes] = []
    tail = process.Tail(shown.append, 2)
    tail(b"first\n\n  second  \n")
    tail(b"   \nthird\r\n")
    assert tail.lines == ("  second", "third")
    assert b"".join(shown) == b"first\n\n  second  \n   \nthird\r\n"


def test_the_lines_kept_of_a_program_have_no_colours() -> None:
    tail = process.Tail(lambda block: None, 2)
    tail(b"\x1b[31mERROR\x1b[0m \x1b[1mfourth\x1b[0m\n")
    assert tail.lines == ("ERROR fourth",)
