"""What is read of a file that a library names, and of the process that loads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.support.capabilities import needs_fifo
from tests.support.for_each import each_case
from torchbuild_tasks.features.closure.act import Files, find_closure, read_loader

REPORT: dict[str, Any] = {
    "windows": True,
    "system": [r"C:\Windows\System32", r"C:\Windows"],
    "machine": "x86_64",
    "executable": r"C:\py\python.exe",
    "dlls": [r"C:\t\lib\c10.dll"],
    "extension": r"C:\t\_C.pyd",
    "loaded": [r"C:\py\python312.dll"],
    "known": ["KERNEL32.dll"],
    "folders": [r"C:\t\lib"],
}


@needs_fifo
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # who opened it would wait for ever
    images = [Files().image(str(tmp_path / name)) for name in ("", "pipe")]
    assert [image and image.damage for image in images] == ["a folder", "no regular file"]
    assert Files().image(str(tmp_path / "none")) is None


def test_without_a_python_nothing_is_loaded() -> None:
    assert find_closure("", {}).problem == "no Python was found"


@each_case(("path", "folders"), [(r'C:\a;"C:\b c";;', (r"C:\a", r"C:\b c")), ("", ()), (None, ())])
def test_the_loader_of_a_process_of_windows(path: str | None, folders: tuple[str, ...]) -> None:
    loader = read_loader(REPORT, {} if path is None else {"PATH": path})
    assert loader.search_path == folders
    assert loader.roots == (r"C:\t\lib\c10.dll", r"C:\t\_C.pyd")
    assert loader.cache == {"kernel32.dll": (r"C:\Windows\System32\KERNEL32.dll",)}
