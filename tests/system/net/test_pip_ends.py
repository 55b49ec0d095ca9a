"""What is said where pip itself ends in the middle."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.system import process
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import PipSettings, WheelWanted, download_wheel

CRASH = (
    "Collecting tiny==1.0\nERROR: Exception:\nTraceback (most recent call last):\n"
    '  File "/pip/_internal/operations/prepare.py", line 212, in unpack_url\n    copy2(source, target)\n'
)


@pytest.mark.parametrize(
    ("last", "says", "advice"),
    [
        ("OSError: [Errno 28] No space left on device", "No space left on device", "bytes are free there"),
        ("OSError: [Errno 30] Read-only file system: '/x/tiny.whl'", "Read-only file system", "writable"),
        ("ImportError: No module named 'pip._vendor.rich'", "a wheel of tiny 1.0", "PIP_INDEX_URL"),
        ("OSError: [Errno 111] Connection refused", "a wheel of tiny 1.0", "PIP_INDEX_URL"),
    ],
)
def test_a_full_disk_is_no_matter_of_the_index(
    last: str, says: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stream(words: list[str], *, log: BytesIO, **_: Any) -> int:
        log.write(f"{CRASH}{last}\n".encode())
        return 2

    monkeypatch.setattr(process, "stream", stream)
    wanted = WheelWanted(project="tiny", version="1.0", tag="", sha256=None)
    with pytest.raises(DownloadFailed, match=says) as caught:
        download_wheel(wanted, tmp_path, PipSettings(), Net(), lambda *_: None)
    assert advice in caught.value.next_step
    assert advice != "PIP_INDEX_URL" or last in caught.value.looked
