from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.capabilities import needs_posix_paths
from torchbuild_tasks.facts import probe
from torchbuild_tasks.facts.probe import Output, Probe, in_plain_english
from torchbuild_tasks.system.process import Captured

pytestmark = pytest.mark.integration


def python(code: str, **environ: str) -> tuple[int, list[str], list[str]] | None:
    """Run a line of Python through the door: code and the lines of both streams."""
    output = Probe(environ={**os.environ, **environ}).run((sys.executable, "-c", code), timeout=30)
    return output and (output.rc, output.stdout.splitlines(), output.stderr.splitlines())


def test_run_gives_code_and_both_streams() -> None:
    code = "import os, sys; print(os.environ['X']); sys.stderr.write('bad'); sys.exit(3)"
    assert python(code, X="y") == (3, ["y"], ["bad"])


def test_messages_are_those_of_the_c_locale_and_characters_those_of_the_user() -> None:
    german = {"LC_ALL": "de_DE.UTF-8", "LC_MESSAGES": "fr_FR", "LANGUAGE": "de", "LANG": "en_US", "X": "y"}
    assert in_plain_english(german) == {"LANG": "C", "LC_CTYPE": "de_DE.UTF-8", "X": "y"}
    assert in_plain_english({"LANG": "C.UTF-8", "LC_ALL": ""}) == {"LANG": "C", "LC_CTYPE": "C.UTF-8"}
    assert in_plain_english({}) == {"LANG": "C"}


@needs_posix_paths
def test_a_venv_with_an_editable_install_below_a_folder_in_other_letters_answers(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "editable.pth").write_text(f"{tmp_path}/Müller\n", encoding="utf-8")
    here = Probe(environ={**os.environ, "LC_ALL": "C.UTF-8"})
    assert here.run((str(venv / "bin" / "python"), "-I", "-c", "pass"), timeout=30) == Output(0, "")


def test_run_gives_programs_nothing_to_read() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))") == (0, ["''"], [])


def test_what_cannot_start_is_none(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.exe"
    rubbish.write_bytes(b"\x00\x01\x02")
    rubbish.chmod(0o755)
    door = Probe(environ=os.environ)
    assert door.run((str(tmp_path / "missing"),)) is None
    assert door.run((str(tmp_path),)) is None
    assert door.run((str(rubbish),)) is None
    assert door.run((sys.executable, "-c", "print('a\0b')")) is None


def _dies(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("ending", ["time.sleep(60)", "pass"], ids=["hangs", "leaves a child behind"])
def test_a_late_program_is_killed_with_its_children(tmp_path: Path, ending: str) -> None:
    note = tmp_path / "pid"
    code = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid))\n{ending}\n"
    )
    began = time.monotonic()
    assert Probe(environ=os.environ, patience=4).run((sys.executable, "-c", code), timeout=4) is None
    assert time.monotonic() - began < 30  # a guard: the child would hold the streams for a minute
    assert _dies(int(note.read_text("utf-8")))


def test_a_flood_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIMIT", 100_000)
    assert python("import sys\nwhile True: sys.stdout.write('y' * 1000)") is None


@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="the system does not say how busy it is")
@pytest.mark.parametrize(("load", "times"), [(0.2, 1.0), (8.0, 2.0), (1000.0, 6.0)])
def test_a_busy_machine_is_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch, load: float, times: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    waited: list[float] = []

    def capture(argv: object, *, timeout: float, **how: object) -> Captured:
        waited.append(timeout)
        return Captured(rc=0, stdout=b"", stderr=b"")

    monkeypatch.setattr("torchbuild_tasks.facts.probe.capture", capture)
    Probe(environ={}).run(("program",), timeout=10)
    Probe(environ={}, patience=5).run(("program",), timeout=10)
    assert waited == [10 * times, 5]
