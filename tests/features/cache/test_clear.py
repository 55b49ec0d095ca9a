"""What `cache clear` says when something stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchbuild_tasks.errors import CleanRefused
from torchbuild_tasks.features.cache import server
from torchbuild_tasks.features.cache.act import clear_caches
from torchbuild_tasks.model import CachePlan, CacheTool


def test_results_of_another_user_are_not_said_to_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = tmp_path / "0" / "mine", tmp_path / "1" / "other"
    for path in (mine, other):
        path.parent.mkdir()
        path.write_bytes(b"1" * 1000)

    def clear(*_: object) -> str:
        mine.unlink()
        return ""  # ccache 4.7.5 ends with 0 where it may not remove a file

    monkeypatch.setitem(server.HOMES, "ccache", lambda *_: (tmp_path, 0))
    monkeypatch.setattr(server, "clear", clear)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != other.parent)
    plan = CachePlan(tools=(CacheTool(name="ccache", program="ccache", version="4.7.5"),), size=0)
    said: list[str] = []
    with pytest.raises(CleanRefused, match="1 could not be emptied") as refused:
        clear_caches(plan, {}, lambda _: True, said.append)
    assert said == [f"ccache: 1.0 kB removed from {tmp_path}"]
    assert "--cache-dir" in refused.value.next_step
