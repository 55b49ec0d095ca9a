"""What is refused just before the build begins, when it is known that there is something to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from torchbuild_tasks.build import compile as stage
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.errors import BuildFailed


@pytest.mark.parametrize(("free", "refused"), [(0, True), (500 << 10, True), (3 << 30, False), (None, False)])
def test_nothing_is_begun_on_a_full_disk(
    free: int | None, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "free_bytes", lambda path: free)
    work: Any = SimpleNamespace(build_dir=Path("/src/build"))
    if not refused:
        stage._require_room(cast(Work, work))
        return
    with pytest.raises(BuildFailed, match=r"build is on a full disk \(\d+ KiB free\)"):
        stage._require_room(cast(Work, work))
