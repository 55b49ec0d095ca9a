"""Who holds a file."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import pytest

from torchbuild_tasks.system import windows_holders as module
from torchbuild_tasks.system.windows_holders import holders

pytestmark = pytest.mark.integration


@pytest.mark.skipif(sys.platform != "win32", reason="needs the types of Windows")
def test_the_structure_has_the_size_of_windows_headers() -> None:
    assert ctypes.sizeof(module._ProcessInfo) == 4 + 8 + 512 + 128 + 4 * 4


def test_the_restart_manager_names_us(tmp_path: Path) -> None:
    path = tmp_path / "held.txt"
    with path.open("w"):
        told = holders(path)
    if not told:
        pytest.skip("needs a Restart Manager")
    assert any(f"process {os.getpid()}" in who for who in told)
    assert holders(path) == ()
