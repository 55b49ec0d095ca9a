"""Places that flags name, looked at before anything else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.driver import torchbuild
from tests.support.sample import SAMPLE
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


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="the file for all checkouts is elsewhere there")
def test_a_folder_of_the_users_own_file_that_is_gone_stops_what_needs_it_alone(tmp_path: Path) -> None:
    file = tmp_path / "torchbuild-tasks" / "torchbuild.toml"
    file.parent.mkdir()
    file.write_text(f'wheels = "/gone"\ncache-dir = "{file}"\n', "utf-8")
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    for words, code in (("source status", 0), ("clean --dry-run", 0), ("plan", 3), ("cache stats", 2)):
        done = torchbuild(*words.split(), "--source", SAMPLE, environ=environ)
        assert done.code == code, (words, done.out, done.err)
        if code:
            assert f"in {file}" in done.out + done.err
