"""The lines that enter a named build; a real shell takes one in integration/test_builds.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import NotBuilt
from torchbuild_tasks.features.builds.act import enter_build
from torchbuild_tasks.features.builds.choose import HOOKS, PROFILES, entry_line
from torchbuild_tasks.options import SHELLS, BuildRequest
from torchbuild_tasks.plan.settings import check_settings


@each_case("shell", SHELLS)
def test_every_shell_has_a_line_a_hook_and_a_profile(shell: str) -> None:
    line = entry_line(shell, "/src/it's here", "debug")
    assert line.count("\n") == 0
    assert f"env_set.{shell}" in line
    assert "TORCHBUILD_NAME" in line
    assert f"--env-shell {shell}" in HOOKS[shell]
    assert shell in PROFILES


def test_folders_are_quoted_as_each_shell_wants_it() -> None:
    assert entry_line("sh", "/a'b", "x").startswith("cd '/a'\\''b' && ")
    assert entry_line("fish", "/a'b", "x").startswith("cd '/a\\'b'; ")
    assert entry_line("ps1", "C:\\a'b", "x").startswith("Set-Location -LiteralPath 'C:\\a''b'; ")
    assert entry_line("bat", "C:\\a b", "x").startswith('cd /d "C:\\a b" && ')


def test_uv_gets_the_constraint_where_its_list_can_hold_the_path() -> None:
    assert entry_line("sh", "/a", "x", "/a/c.txt").endswith(
        "export TORCHBUILD_NAME='x' UV_CONSTRAINT='/a/c.txt'"
    )
    assert "UV_CONSTRAINT" not in entry_line("sh", "/a", "x", "/a b/c.txt")


def test_a_build_that_was_not_made_yet_cannot_be_entered(tmp_path: Path) -> None:
    settings = check_settings(str(tmp_path / "torchbuild.toml"), {"builds": {"debug": {}}}, {})
    with pytest.raises(NotBuilt, match="no env file"):
        enter_build(settings, BuildRequest(name="debug"), tmp_path / "src")
