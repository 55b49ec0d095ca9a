"""What is looked at for a build, and what only for those who ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_git
from tests.support.sample import materialise
from torchbuild_tasks.context import look
from torchbuild_tasks.options import BuildRequest

pytestmark = [pytest.mark.integration, needs_git]


def test_a_build_does_not_ask_git_for_changes_that_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = materialise(tmp_path / "minitorch", git=True)
    monkeypatch.chdir(tmp_path)
    (tree / "README.md").write_text("changed\n", "utf-8")

    def dirty(*, everything: bool, reproducible: bool = False) -> bool | None:
        request = BuildRequest(source=str(tree), reproducible=reproducible)
        return look(request, everything=everything).facts.tree.dirty

    assert dirty(everything=False) is None
    assert dirty(everything=True) is True
    assert dirty(everything=False, reproducible=True) is True
