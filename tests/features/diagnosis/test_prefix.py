"""What stands before every line of a log is learnt from the log, and taken off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.diagnosis import machine, read_file
from torchbuild_tasks.features.diagnosis.prefix import common_prefix

SAID = (
    "running build_ext\n"
    "Traceback (most recent call last):\n"
    '  File "setup.py", line 3, in <module>\n'
    "    import zork\n"
    "ModuleNotFoundError: No module named 'zork'\n"
)


@pytest.mark.parametrize(
    "before",
    [
        "2026-03-04 05:06:07.{n} | INFO     | build:run:42 - ",
        "2026-03-04 05:06:07,{n} [main] INFO  c.b.Runner - ",
        "[2026-03-04 05:06:07,{n}: WARNING/ForkPoolWorker-1] ",
        "[2026-03-04, 05:06:07 UTC] {{subprocess.py:93}} INFO - ",
        "I0304 05:06:07.{n}   42 run.go:1] ",
        "Mar 04 05:06:07 host1 torch-build[{n}]: ",
        "2026/03/04 05:06:07 ",
        "[  {n}.123s] ",
        "stderr: ",
        "remote:        ",
        "node01: ",
        "python3.12-torch> ",
        'Step #1 - "build": ',
        " * ",
        " │ │ ",
    ],
)
def test_any_prefix_is_learnt(tmp_path: Path, before: str) -> None:
    log = tmp_path / "build.log"
    lines = (before.format(n=100 + 7 * at) + line for at, line in enumerate(SAID.splitlines()))
    log.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    reading = read_file(log)
    assert (reading.kind, reading.subject, reading.line_number) == ("missing-module", "zork", 5)
    assert reading.error_line.startswith(before.partition("{")[0]), "the line as it stands in the log"
    assert machine().value("python")


def test_the_fence_of_a_page_hides_no_prefix(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text(
        "".join(f"{line}\n" for line in ("```txt", *(f"1> [x] {line}" for line in SAID.splitlines())))
    )
    assert read_file(log).line_number == 6


def test_a_structured_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    lines = (f'{{"stream": "{line}\\n"}}\n' for line in SAID.replace('"', '\\"').splitlines())
    log.write_text("".join(lines), "utf-8")
    assert read_file(log).kind == "missing-module"


@pytest.mark.parametrize(
    "text",
    [
        "error: a\nerror: b\nerror: c\n",
        "ninja: warning: a\nninja: b\nninja: error: c\n",
        "a.obj : error LNK2001: x\na.obj : error LNK2001: y\na.obj : error LNK2001: z\n",
        "/usr/bin/ld: a\n/usr/bin/ld: b\n/usr/bin/ld: c\n",
        "one: a\none: b\ntwo: c\n",
        "one: a\n",
    ],
)
def test_what_speaks_is_no_prefix(text: str) -> None:
    assert common_prefix(text.encode()) is None


def test_the_last_line_may_be_of_the_launcher_that_labelled_the_others() -> None:
    labelled = b"".join(b"%d: some line of %d\n" % (0, number) for number in range(8))
    prefix = common_prefix(labelled + b"srun: error: node017: task 0: Exited with exit code 1\n")
    assert prefix is not None
    assert prefix.sub("", "0: meson.build:1:8: ERROR: x", count=1) == "meson.build:1:8: ERROR: x"
    assert common_prefix(b"srun: error: x\n" + labelled) is None


def test_a_prefix_stands_at_the_start_of_a_line_only(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    last = "srun: error: node017: task 0: Exited with exit code 1"
    log.write_text("".join(f"0: {line}\n" for line in (*"abcdefg", "error: x is missing")) + last)
    assert read_file(log).error_block == ("error: x is missing", last)


@pytest.mark.parametrize("before", ["[2025-03-29T04:55:33.812Z] ", "12:04:05 ", "job1 | "])
def test_the_program_that_speaks_behind_a_prefix_is_no_part_of_it(before: str) -> None:
    said = [f"sccache: {words}" for words in ("encountered fatal error", "error: x", "caused by: x")]
    prefix = common_prefix("".join(f"{before}{line}\n" for line in said).encode())
    assert prefix is None or [prefix.sub("", f"{before}{line}", count=1) for line in said] == said
