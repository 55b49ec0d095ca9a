"""Places that flags name, looked at before anything else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.flag_values import _find_cache_folder


def test_a_cache_folder_is_there_or_can_be_made(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", "utf-8")
    for good in (tmp_path, tmp_path / "new", tmp_path / "new" / "deeper"):
        _find_cache_folder(str(good))
    for bad in (file, file / "below", file / "below" / "deeper"):
        with pytest.raises(UsageError, match="--cache-dir"):
            _find_cache_folder(str(bad))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux' own file systems")
def test_a_place_of_the_kernel_takes_no_files_of_roots_either() -> None:
    for bad in ("/proc", "/proc/x", "/sys/x/deeper"):
        with pytest.raises(UsageError, match="make no files"):
            _find_cache_folder(bad)
    _find_cache_folder("/dev/shm/torchbuild-test")
