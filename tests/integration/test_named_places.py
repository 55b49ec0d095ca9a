"""Places that flags name, looked at before anything else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.context import _find_cache_folder
from torchbuild_tasks.errors import UsageError


def test_a_cache_folder_is_there_or_can_be_made(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    for good in (tmp_path, tmp_path / "new", tmp_path / "new" / "deeper"):
        _find_cache_folder(str(good))
    for bad in (file, file / "below", file / "below" / "deeper"):
        with pytest.raises(UsageError, match="--cache-dir"):
            _find_cache_folder(str(bad))
