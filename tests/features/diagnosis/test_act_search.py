"""When the log of a build is searched for its error, and from where its lines count."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis import act
from torchbuild_tasks.features.diagnosis.act import Search, stream_into_log, whole_lines
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.system.log import Log, open_log

pytestmark = pytest.mark.integration
SAID = "one\n[1/2] Building\nFAILED: a.o\na.c:1:2: error: no\n[2/2] Building\n"


def scanner() -> LogScanner:
    return LogScanner(FailureBook(()))


def streamed(log: Log, rc: int) -> tuple[int, LogScanner | None]:
    blocks = list[bytes]()
    argv = [sys.executable, "-c", f"print({SAID!r}, end=''); raise SystemExit({rc})"]
    ended = stream_into_log(argv, env=None, cwd=None, on_block=blocks.append, search=Search(log, scanner))
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
        ended = stream_into_log(argv, env=None, cwd=None, on_block=print, search=Search(log, scanner))
    assert ended[0] == 3
    assert ended[1] is not None
    assert ended[1].found is None


def error_line(found: LogScanner) -> int:
    return found.proven.error.number if found.proven else 0


@pytest.mark.parametrize("cut", range(len("FAILED: ") + 1))
def test_a_look_meets_a_sign_that_is_written_in_two_pieces(tmp_path: Path, cut: int) -> None:
    with open_log(tmp_path, "build", ["x"]) as log:
        log.write(b"FAILED: before\n")
        search = Search(log, scanner, (b"FAILED: ", b"!"))
        assert search.look(error_line) is None  # that was not the command's
        log.write(b"[1/2] Building\n" + b"FAILED: "[:cut])
        assert search.look(error_line) == (0 if cut == len("FAILED: ") else None)
        log.write(b"FAILED: "[cut:] + b"a.o\ncc a.c\na.c:1:2: error: no\n[2/2] Bui")
        assert search.look(error_line) == 6
        log.write(b"lding\n")
        assert error_line(search.end()) == 6
        assert search.look(error_line) is None


def test_a_sign_between_two_chunks_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(act, "_CHUNK", 4)
    with open_log(tmp_path, "build", ["x"]) as log:
        search = Search(log, scanner, (b"FAILED: ",))
        log.write(SAID.encode())
        assert search.look(error_line) == 5


def test_without_a_sign_nothing_is_searched_before_the_end(tmp_path: Path) -> None:
    made = list[LogScanner]()

    def make() -> LogScanner:
        made.append(scanner())
        return made[-1]

    with open_log(tmp_path, "build", ["x"]) as log:
        search = Search(log, make, (b"FAILED: ",))
        log.write(b"[1/2] Building\na.c:1:2: error: no\n")
        assert search.look(error_line) is None and made == []
        assert search.end() is made[0]


def test_a_line_ends_as_an_editor_counts_it() -> None:
    blocks = whole_lines(iter([b"10%\r20%\rdone\nerr", b"or\r\nlast"]))
    assert b"".join(blocks) == b"10%\r20%\rdone\nerror\r\nlast\n"
