"""What a build is only better with: where it is not available, the build goes on and says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.machines import base_python, linux_facts, plan_of
from torchbuild_tasks.build import prepare
from torchbuild_tasks.errors import DownloadFailed, RequirementsError
from torchbuild_tasks.features.helpers import act
from torchbuild_tasks.values import replace

PLAN = plan_of(linux_facts(pythons=(base_python(),)))


def work(plan: Any, said: list[str]) -> Any:
    return SimpleNamespace(plan=plan, report=SimpleNamespace(note=said.append), fetching=None)


def test_a_compiler_cache_that_cannot_be_downloaded_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(artifacts: Any, *_: Any) -> None:
        raise DownloadFailed(f"no {artifacts[0].name} there")

    monkeypatch.setattr(act, "fetch", fetch)
    said: list[str] = []
    act.fetch_helpers(work(PLAN, said))
    assert len(said) == 1 and "sccache" in said[0] and "continues without it" in said[0]
    needed = replace(PLAN, artifacts=tuple(replace(each, optional=False) for each in PLAN.artifacts))
    with pytest.raises(DownloadFailed):
        act.fetch_helpers(work(needed, said))


def test_a_better_ninja_that_cannot_be_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def install(_: Any, command: Any) -> None:
        if "ninja>=1.13" in command.argv:
            raise RequirementsError("no such wheel")

    monkeypatch.setattr(prepare, "install", install)
    said: list[str] = []
    assert PLAN.environment.better is not None
    prepare._install_optional(work(PLAN, said), PLAN.environment.better)
    left_out = "Left out, because it is not available: ninja>=1.13"
    assert said == [f"{left_out} (--machine-tools does not ask for it)"]
