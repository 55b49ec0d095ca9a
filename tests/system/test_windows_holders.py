"""Who holds a file."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.system import windows_holders as module
from torchbuild_tasks.system.windows_holders import by_open_files, by_restart_manager, holders

pytestmark = pytest.mark.integration
HOLDER = "import sys, time; f = open(sys.argv[1]); print('open', flush=True); time.sleep(60)"


@pytest.mark.skipif(sys.platform != "win32", reason="needs the types of Windows")
def test_the_structure_has_the_size_of_windows_headers() -> None:
    assert ctypes.sizeof(module._ProcessInfo) == 4 + 8 + 512 + 128 + 4 * 4


def test_another_process_is_found_by_its_open_files(tmp_path: Path) -> None:
    path = tmp_path / "held.txt"
    path.touch()
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert [who for who in by_open_files(path) if who.endswith(f"process {holder.pid}")]
        if sys.platform == "win32":
            assert any(f"process {holder.pid}" in who for who in holders(path))
        else:
            assert holders(path) == ()  # nobody can hold a file there
        holder.kill()
    assert list(by_open_files(path)) == []


def test_the_restart_manager_names_us(tmp_path: Path) -> None:
    path = tmp_path / "held.txt"
    with path.open("w"):
        told = by_restart_manager(path)
    if told is None:
        pytest.skip("needs a Restart Manager")
    assert any(f"process {os.getpid()}" in who for who in told)
