"""What Windows says of its memory, as far as that can be tried on any system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from torchbuild_tasks.system import windows_memory


def test_the_structure_has_the_size_of_windows_headers() -> None:
    """Two DWORDs and seven DWORDLONGs: Windows refuses a structure with another length."""
    assert ctypes.sizeof(windows_memory._MemoryStatusEx) == 2 * 4 + 7 * 8


@pytest.mark.skipif(sys.platform == "win32", reason="needs another system than Windows")
def test_other_systems_say_nothing() -> None:
    assert windows_memory.memory_status() is None
