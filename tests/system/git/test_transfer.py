"""The progress of a slow git, read from lines that real ones printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_git, needs_shebang
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.transfer import Stopped, Watch, run

pytestmark = [pytest.mark.integration, needs_git, needs_shebang]

FAKE = """#!{python}
import sys, time
if "fetch" not in sys.argv:
    sys.exit()  # it is asked for its settings before
for line in {lines!r}:
    sys.stderr.write(line)
    sys.stderr.flush()
{then}
"""
LINES = [
    "remote: Enumerating objects: 5, done.\n",
    "remote: Counting objects: 100% (5/5), done.\r",
    "Receiving objects:  45% (9/20), 1.50 MiB | 500.00 KiB/s\r",
    "Receiving objects: 100% (20/20), 3.00 MiB | 1.00 MiB/s, done.\n",
    "fatal: it broke\n",
]


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], then: str) -> Git:
    """A git that says these lines and then does this."""
    program = folder / "bin/git"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable, lines=lines, then=then))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return Git(folder=folder)


def test_bytes_are_reported_and_the_words_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[tuple[str, int, int | None]] = []
    watch = Watch(tree="t", patience=60, transfer=lambda *each: came.append(each), note=lambda text: None)
    moved = run(fake(tmp_path, monkeypatch, LINES, "sys.exit(128)"), ("fetch",), "pytorch", watch)
    assert (moved.rc, moved.words) == (128, ("fatal: it broke",))
    assert came == [("pytorch", 3 << 19, None), ("pytorch", 3 << 20, None)]


def test_silence_ends_it_and_computing_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    watch = Watch(tree="t", patience=1, transfer=lambda *each: None, note=notes.append)
    moved = run(fake(tmp_path, monkeypatch, [], "time.sleep(600)"), ("fetch",), "pytorch", watch)
    assert moved.words == ("nothing was heard for 1 seconds",)
    (tmp_path / "bin/git").unlink()
    (tmp_path / "bin").rmdir()
    busy = "end = time.process_time() + 3\nwhile time.process_time() < end: pass"
    moved = run(fake(tmp_path, monkeypatch, [], busy), ("fetch",), "pytorch", watch)
    assert moved.rc == 0
    # On a busy machine it takes long enough to be told again.
    assert set(notes) == {"pytorch: waiting for an answer"}


def test_it_ends_when_all_is_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(tree="t", patience=60, transfer=lambda *each: None, note=lambda text: None)
    watch.stop.set()
    with pytest.raises(Stopped):
        run(fake(tmp_path, monkeypatch, [], "time.sleep(600)"), ("fetch",), "pytorch", watch)
