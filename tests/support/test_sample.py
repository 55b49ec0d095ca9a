"""A repository of the sample where there is no git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.packages import without
from tests.support.sample import materialise


def test_without_git_a_test_that_wants_a_repository_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception) as skipped:
        materialise(tmp_path / "minitorch", git=True)
    assert skipped.value.msg == without("git")
