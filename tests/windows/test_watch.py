"""A bench that stands still is named, ended, tried again: with programs in the place of pytest and wine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.capabilities import needs_shebang
from tests.windows.watch import Stillness, run_tests
from tests.windows.wine import LATE, Bench

ROOT = Path(__file__).parents[2]


class Pytest:
    """Writes the next of some records, as a run of pytest would."""

    def __init__(self, record: Path, runs: Sequence[tuple[str, int]]) -> None:
        self.record, self.runs = record, list(runs)
        self.words: list[Sequence[str]] = []

    def __call__(self, words: Sequence[str], still: Callable[[], bool]) -> int:
        self.words.append(words)
        lines, code = self.runs.pop(0)
        with self.record.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n".replace(" ", "\t") for line in ["session ", *lines.split(", ")]))
        return code


@pytest.mark.parametrize(
    ("runs", "code", "words"),
    [
        ([("begins a, passed a, code 0", 0)], 0, []),
        # What failed is tried once more, and is named whatever comes of it.
        (
            [("begins a, failed a, code 1", 1)] * 2,
            1,
            ["a failed; once more", "a failed once and then failed"],
        ),
        (
            [("begins a, failed a, code 1", 1), ("begins a, passed a, code 0", 0)],
            0,
            ["a failed once and then passed", "0 skipped; passed only at the second try: a\n"],
        ),
        # Tests of more than three files are not tried again; how many tests it are is no matter.
        ([(", ".join(f"begins {a}, failed {a}" for a in "abcd") + ", code 1", 1)], 1, []),
        (
            [
                (", ".join(f"begins a::{a}, failed a::{a}" for a in "abcd") + ", code 1", 1),
                (", ".join(f"begins a::{a}, passed a::{a}" for a in "abcd") + ", code 0", 0),
            ],
            0,
            ["4 passed, 0 failed, 0 skipped; passed only at the second try: a::a, a::b, a::c, a::d\n"],
        ),
        ([("code 4", 4)], 4, []),
        # Stands still in b, and passes at its second try.
        ([("begins a, passed a, begins b", LATE), ("begins b, passed b, code 0", 0)], 0, ["b stood still"]),
        # What failed before it stood still is not forgotten.
        (
            [
                ("begins a, failed a, begins b", LATE),
                ("begins b, passed b, code 0", 0),
                ("begins a, failed a, code 1", 1),
            ],
            1,
            ["b stood still", "failed: a", "1 passed, 1 failed"],
        ),
        # Two tests, each of them once.
        (
            [("begins a", LATE), ("begins a, passed a, begins b", 1), ("begins b, passed b, code 0", 0)],
            0,
            ["a stood still", "b stood still"],
        ),
        ([("begins a", LATE), ("begins a", LATE)], LATE, ["a stood still or ended pytest, try 2 of 2"]),
        # Ended without a word and with exit code 0, outside of any test: no success.
        ([("begins a, passed a", 0)], 1, ["ended before their end"]),
        ([("", 3)], 3, ["ended before their end"]),
    ],
)
def test_every_test_comes_to_its_end_or_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    runs: list[tuple[str, int]],
    code: int,
    words: list[str],
) -> None:
    record = tmp_path / "record"
    record.write_text("failed\told\n", "utf-8")
    fake = Pytest(record, runs)
    assert run_tests(fake, record) == code
    assert fake.runs == []
    said = capsys.readouterr().err
    for word in words:
        assert word in said
    rest = {f"--only-{which}={record.as_posix()}" for which in ("left", "failed")}
    assert all(bool(rest & {*words}) is bool(number) for number, words in enumerate(fake.words))


def test_a_file_that_does_not_grow_stands_still(tmp_path: Path) -> None:
    file = tmp_path / "record"
    assert not Stillness(file, 60)()
    assert Stillness(file, -1)()
    still = Stillness(file, 60, since=-1000.0)
    assert not still()  # it was never looked at before
    still.since -= 61
    assert still()
    file.write_text("a line", "utf-8")
    assert not still()


WINE = """#!{python}
import os, signal, sys, time
words = sys.argv[1:]
if words[:1] == ["cmd"]:
    sys.exit()
said = dict(word.split("=", 1) for word in words if "=" in word)
with open(said["--record"], "a") as record:
    record.write("session\\t\\nbegins\\tstands_still\\n")
    record.flush()
    if os.environ["ALWAYS"] == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "--only-left" not in said or os.environ["ALWAYS"] == "yes":
        print("standing still", flush=True)
        time.sleep(300)
    record.write("passed\\tstands_still\\ncode\\t0\\n")
"""


def bench_command(folder: Path, always: str) -> tuple[list[str], dict[str, str]]:
    """The command that runs tests on a bench whose wine is that script, and its environment."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "wine").write_text(WINE.format(python=sys.executable), "utf-8")
    (programs / "wineserver").write_text("#!/bin/sh\n", "utf-8")
    for program in programs.iterdir():
        program.chmod(0o755)
    bench = folder / "bench"
    (bench / "made").mkdir(parents=True)
    (bench / "made" / "packages").touch()
    (bench / "prefix").mkdir()
    argv = [sys.executable, "-m", "tests.windows.bench", "tests", str(bench), "--still", "2"]
    argv += ["--record", str(folder / "record"), "--set", f"ALWAYS={always}", "--", "-q"]
    return argv, {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


@needs_shebang
@pytest.mark.integration
@pytest.mark.parametrize(("always", "code", "times"), [("no", 0, 1), ("yes", LATE, 2)])
def test_the_bench_ends_a_pytest_that_stands_still(
    tmp_path: Path, always: str, code: int, times: int
) -> None:
    """With a wine that sleeps in a test at the first try, or at each."""
    argv, environ = bench_command(tmp_path, always)
    done = subprocess.run(
        argv, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.count("standing still; all its processes were ended") == times
    assert f"stands_still stood still or ended pytest, try {times} of 2" in done.stderr


IMPATIENT = """
import sys
from tests.windows import bench, relay
relay.PATIENCE = 0.5
sys.exit(bench.main(sys.argv[1:]))
"""


@needs_shebang
@pytest.mark.integration
@pytest.mark.parametrize("hears", ["no", "deaf"])
def test_after_a_signal_nothing_is_tried_again(tmp_path: Path, hears: str) -> None:
    """Nor is a program waited for that does not end of it."""
    argv, environ = bench_command(tmp_path, hears)
    argv[argv.index("--still") + 1] = "200"
    if hears == "deaf":
        argv[1:3] = ["-c", IMPATIENT]
    with subprocess.Popen(argv, cwd=ROOT, env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"standing still\n"
        process.terminate()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert (tmp_path / "record").read_text("utf-8").count("begins") == 1


SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"


@needs_shebang
@pytest.mark.integration
def test_what_wine_cannot_end_is_ended_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bench's processes are recognised by their environment; no other process is ended."""
    (tmp_path / "wineserver").write_text("#!/bin/sh\nexec sleep 5\n", "utf-8")
    (tmp_path / "wineserver").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("tests.windows.wine.SECONDS_TO_END", 0.5)
    monkeypatch.setattr(Bench, "environment", lambda bench: {**os.environ, "WINEPREFIX": str(bench.prefix)})
    bench = Bench(tmp_path / "bench")
    bench.prefix.mkdir(parents=True)
    argv = [sys.executable, "-c", SLEEPER]
    with (
        subprocess.Popen(argv, env=bench.environment(), stdout=subprocess.PIPE) as ours,
        subprocess.Popen(argv, stdout=subprocess.PIPE) as other,
    ):
        try:
            for process in (ours, other):
                assert process.stdout is not None
                assert int(process.stdout.readline()) == process.pid
            assert ours.pid in bench.processes()
            bench.stop()
            assert ours.wait(timeout=60) == -9
            assert other.poll() is None
        finally:
            ours.kill()
            other.kill()
