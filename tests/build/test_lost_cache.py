"""sccache's messages of a lost server, in what builds and CMake's checks print; what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.build.lost_cache import Checks, find_lost

# Of sccache 0.16.0, whose server was killed: before its first answer, and while it does not start again.
LOST = [
    "sccache: caused by: Failed to send data to or receive data from server",
    "sccache: caused by: Failed to read response header",
    "sccache: error: Timed out waiting for server startup. Maybe the remote service is unreachable?",
    "caused by: error reading compile response from server",
]

NOT_LOST = [
    "sccache: error: failed to execute compile",
    'sccache: caused by: Compiler not supported: "nvcc fatal: No input files specified"',
    "sccache: error: failed to spawn process",
    "sccache: warning: The server looks like it shut down unexpectedly, compiling locally instead",
    'a.cpp:3:2: error: #error "sccache: error: Server startup failed"',
    "cc1plus: error: failed to read response header",
]


@each_case("line", LOST)
def test_a_lost_server_is_known(line: str) -> None:
    assert find_lost(("FAILED: a.o", f"    {line}", "ninja: build stopped")) == line


@each_case("line", NOT_LOST)
def test_what_fails_with_its_server_is_no_loss(line: str) -> None:
    assert not find_lost((line,))


@pytest.mark.parametrize("name", ["CMakeConfigureLog.yaml", "CMakeError.log"])
def test_only_the_checks_of_this_run_count(tmp_path: Path, name: str) -> None:
    log = tmp_path / "CMakeFiles" / name
    log.parent.mkdir()
    log.write_text(f"---\n      {LOST[0]}\n", "utf-8")
    checks = Checks(tmp_path)
    assert not checks.find_lost()
    with log.open("a", encoding="utf-8") as file:
        file.write(f"---\n      {LOST[1]}\n")
    assert checks.find_lost() == LOST[1]


def test_a_tree_that_was_configured_anew_is_read_from_the_start(tmp_path: Path) -> None:
    log = tmp_path / "CMakeFiles" / "CMakeConfigureLog.yaml"
    log.parent.mkdir()
    log.write_text("---\n" * 100, "utf-8")
    checks = Checks(tmp_path)
    log.write_text(f"      {LOST[0]}\n", "utf-8")
    assert checks.find_lost() == LOST[0]
    assert Checks(tmp_path / "none").find_lost() == ""
