"""Over real commits the rows never say "no compile" where an input of upstream's build differs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.classification import classify, read_commits
from tests.support.capabilities import needs, needs_git

HISTORY = os.environ.get("TORCHBUILD_TEST_HISTORY", "")

pytestmark = [
    pytest.mark.integration,
    needs_git,
    needs(bool(HISTORY) and Path(HISTORY).is_dir(), "clone of PyTorch named by TORCHBUILD_TEST_HISTORY"),
]


def test_no_commit_with_a_changed_input_needs_no_compile() -> None:
    result = classify(
        read_commits(Path(HISTORY), os.environ.get("TORCHBUILD_TEST_HISTORY_REF", "HEAD"), 1000)
    )
    assert result.commits >= 500
    assert result.free > 0
    assert result.inputs > 0
    assert result.wrong == []
