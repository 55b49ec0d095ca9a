"""The two ends of a log, whole lines of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.system.log import HEAD, LONGEST, TAIL, log_ends


def test_a_short_log_is_its_head(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\r\ntwo\nthree without an end")
    assert log_ends(log) == ("one\ntwo\nthree without an end\n", "")


@pytest.mark.parametrize("size", [HEAD + 10, HEAD + TAIL - 5, HEAD + TAIL, 3 * TAIL])
def test_no_line_is_cut_and_none_stands_twice(tmp_path: Path, size: int) -> None:
    log = tmp_path / "a.log"
    lines = [f"line {number:09}\n" for number in range(size // 15 + 1)]
    log.write_text("".join(lines), "utf-8", newline="")
    head, tail = log_ends(log)
    assert lines[0] == head.splitlines(True)[0]
    assert lines[-1] == tail.splitlines(True)[-1]
    seen = head.splitlines(True) + tail.splitlines(True)
    assert set(seen) <= set(lines)
    assert len(seen) == len(set(seen))
    if log.stat().st_size <= HEAD + TAIL:
        assert seen == lines


def test_utf_16_bytes_that_are_no_text_and_endless_lines(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes("grün\n".encode("utf-16"))
    assert log_ends(log)[0] == "grün\n"
    log.write_bytes(b"\xff\x00bad\n" + b"x" * (LONGEST + 5))
    first, second = log_ends(log)[0].splitlines()
    assert "bad" in first
    assert len(second) == LONGEST
