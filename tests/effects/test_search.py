"""When the log of a build is searched for its error, and from where its lines count."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.core.diagnosis.rows import FailureBook
from torchbuild_tasks.core.diagnosis.scanner import LogScanner
from torchbuild_tasks.effects.log import Log, open_log
from torchbuild_tasks.effects.search import stream_searched, whole_lines

pytestmark = pytest.mark.integration
SAID = "one\n[1/2] Building\nFAILED: a.o\na.c:1:2: error: no\n[2/2] Building\n"


def scanner() -> LogScanner:
    return LogScanner(FailureBook(()))


def streamed(log: Log, rc: int) -> tuple[int, LogScanner | None]:
    blocks = list[bytes]()
    argv = [sys.executable, "-c", f"print({SAID!r}, end=''); raise SystemExit({rc})"]
    ended = stream_searched(argv, env=None, cwd=None, log=log, on_block=blocks.append, make_scanner=scanner)
    assert b"".join(blocks).decode() == SAID
    return ended


def test_the_line_of_an_error_is_the_line_of_the_log(tmp_path: Path) -> None:
    with open_log(tmp_path, "build", ["x"]) as log:
        log.write(b"what pip said\nFAILED: to do something else\n")
        rc, found = streamed(log, 1)
    assert rc == 1
    assert found is not None
    assert found.found is not None
    assert found.found.text == ("FAILED: a.o", "a.c:1:2: error: no")
    assert log.path.read_text("utf-8").splitlines()[found.found.lines[0].number - 1] == "FAILED: a.o"


def test_a_build_that_goes_well_is_not_searched(tmp_path: Path) -> None:
    with open_log(tmp_path, "build", ["x"]) as log:
        assert streamed(log, 0) == (0, None)


def test_what_a_full_disk_did_not_take_is_searched_as_it_goes_by(tmp_path: Path) -> None:
    with open_log(tmp_path, "build", ["x"]) as log:
        log.problem = "No space left on device"
        rc, found = streamed(log, 1)
    assert rc == 1
    assert found is not None
    assert found.found is not None
    assert found.found.text[0] == "FAILED: a.o"


def test_a_log_that_someone_removed_is_not_searched(tmp_path: Path) -> None:
    if os.name != "posix":
        pytest.skip("needs a system on which an open file can be removed")
    with open_log(tmp_path, "build", ["x"]) as log:
        remove = f"import os; os.remove({str(log.path)!r}); raise SystemExit(3)"
        argv = [sys.executable, "-c", remove]
        ended = stream_searched(argv, env=None, cwd=None, log=log, on_block=print, make_scanner=scanner)
    assert ended[0] == 3
    assert ended[1] is not None
    assert ended[1].found is None


def test_a_line_ends_as_an_editor_counts_it() -> None:
    blocks = whole_lines(iter([b"10%\r20%\rdone\nerr", b"or\r\nlast"]))
    assert b"".join(blocks) == b"10%\r20%\rdone\nerror\r\nlast\n"
