"""A folder for named pipes that nothing else is in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """An empty folder; the test's own has its home in it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder
