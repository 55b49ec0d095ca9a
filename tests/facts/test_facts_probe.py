from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, write
from torchbuild_tasks.facts import probe as probe_module
from torchbuild_tasks.facts.probe import Probe

SH = "/bin/sh"


def test_which_takes_the_first_program_and_skips_what_cannot_be_started(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        files={"/a/tool": "not executable", "/b/tool/": ""},
        programs={"/c/tool": "", "/d/tool": ""},
        environ={"PATH": "/a:/b::/missing:/c/:/c:/d"},
    )
    assert door.which_all("tool") == ("/c/tool", "/d/tool")
    assert door.which("tool") == "/c/tool"
    assert door.which("other") is None
    assert door.path_folders == ("/a", "/b", "/missing", "/c", "/d")


def test_without_path_nothing_is_found(tmp_path: Path) -> None:
    assert Probe(environ={}, root=tmp_path).which_all("sh") == ()


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, {"/folder/": "", "/text": "é"})
    (tmp_path / "bytes").write_bytes(b"a\xffb")
    door = Probe(environ={}, root=tmp_path)
    assert [door.read(name) for name in ("/missing", "/folder", "/pipe", "/text/below")] == [None] * 4
    assert door.read("/text") == "é"
    assert door.read("/bytes") == "a�b"
    assert door.children("/text") == door.children("/missing") == ()
    assert door.writable("/missing") is None


def test_names_that_no_file_system_holds_are_not_there(tmp_path: Path) -> None:
    door = Probe(environ={}, root=tmp_path)
    for name in ("/a\0b", "/" + "x" * 5000):
        assert not door.exists(name)
        assert not door.is_program(name)
        assert door.read(name) is None
        assert door.children(name) == ()


def test_realpath_stays_inside_the_root(tmp_path: Path) -> None:
    write(tmp_path, {"/usr/bin/g++-12": ""})
    link(tmp_path, "/usr/bin/g++", "g++-12")
    link(tmp_path, "/usr/bin/c++", "g++")
    link(tmp_path, "/round/a", "b")
    link(tmp_path, "/round/b", "a")
    door = Probe(environ={}, root=tmp_path)
    assert door.realpath("/usr/bin/c++") == "/usr/bin/g++-12"
    assert door.realpath("/round/a") == "/round/a"
    assert not door.exists("/round/a")


def test_absolute_knows_home_and_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    door = Probe(environ={"HOME": "/home/me"})
    assert door.absolute("~/src/../torch") == "/home/me/torch"
    assert door.absolute("~") == "/home/me"
    assert door.absolute("sub/./x") == f"{tmp_path}/sub/x"
    assert door.absolute("/a//b/") == "/a/b"


def test_a_removed_current_folder_is_no_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Probe(environ={}).absolute("x") == "x"


@pytest.mark.integration
def test_run_gives_code_and_both_streams_in_the_c_locale() -> None:
    door = Probe(environ={"PATH": os.environ["PATH"], "LC_ALL": "de_DE.UTF-8", "X": "y"})
    output = door.run((SH, "-c", 'echo "$LC_ALL $X"; echo bad >&2; exit 3'))
    assert output == (3, "C y\n", "bad\n")


@pytest.mark.integration
def test_run_gives_programs_nothing_to_read() -> None:
    output = Probe(environ=os.environ).run((SH, "-c", "cat; echo end"), timeout=5)
    assert output == (0, "end\n", "")


@pytest.mark.integration
def test_what_cannot_start_is_none(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"\x00\x01\x02")
    rubbish.chmod(0o755)
    door = Probe(environ=os.environ)
    assert door.run((str(tmp_path / "missing"),)) is None
    assert door.run((str(tmp_path),)) is None
    assert door.run((str(rubbish),)) is None
    assert door.run((SH, "-c", "echo a\0b")) is None


def _alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _dies(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while _alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _alive(pid)


@pytest.mark.integration
@pytest.mark.parametrize("ending", ["wait", "exit 0"], ids=["hangs", "leaves a child behind"])
def test_a_late_program_is_killed_with_its_children(tmp_path: Path, ending: str) -> None:
    note = tmp_path / "pid"
    began = time.monotonic()
    output = Probe(environ=os.environ).run((SH, "-c", f"sleep 60 & echo $! > {note}; {ending}"), timeout=0.5)
    assert output is None
    assert time.monotonic() - began < 5
    assert _dies(int(note.read_text("utf-8")))


@pytest.mark.integration
def test_a_flood_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "LIMIT", 100_000)
    script = "import sys\nwhile True: sys.stdout.write('y' * 1000)"
    assert Probe(environ=os.environ).run((sys.executable, "-c", script), timeout=20) is None


@pytest.mark.integration
def test_the_real_machine_answers() -> None:
    door = Probe(environ=os.environ)
    assert (door.cores() or 0) >= (door.affinity() or 1) >= 1
    assert door.uname().system == sys.platform
    total, free = door.disk_usage("/") or (0, 0)
    assert total >= free > 0
