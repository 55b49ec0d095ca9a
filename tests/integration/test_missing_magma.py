"""An archive of MAGMA that its server does not have: the build is planned again without it, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines import ask, plan_of_question, tree
from tests.support.sources import RecordingReporter
from tests.support.webserver import WebServer
from tests.support.windows import windows_facts
from torchbuild_tasks.errors import DownloadFailed
from torchbuild_tasks.flow import settle_helpers
from torchbuild_tasks.model import BuildPlan, Store
from torchbuild_tasks.plan.question import Question

pytestmark = pytest.mark.integration


def question(tmp_path: Path, url: str, *words: str) -> Question:
    """A Windows machine with CUDA 12.4 whose store is here, and whose downloads come from this server."""
    facts = windows_facts(
        environ={"CUDA_PATH": r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4"},
        tree=tree(root=str(tmp_path / "checkout"), version="2.6.0"),
        store=Store(folder=str(tmp_path / "store")),
    )
    return ask(facts, cuda=True, arch="8.6", mirror=url, allow_http=True, set=words)


def variables(plan: BuildPlan) -> dict[str, str]:
    return {op.name: op.value for op in plan.env if op.name in ("MAGMA_HOME", "USE_MAGMA")}


def test_without_the_archive_the_build_goes_on_without_magma(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    with WebServer({}) as server:
        asked = question(tmp_path, server.url(""))
        before = plan_of_question(asked)
        assert "MAGMA_HOME" in variables(before)
        report = RecordingReporter()
        _, plan = settle_helpers(asked, before, report)
    assert variables(plan) == {"USE_MAGMA": "0"}
    (choice,) = [each for each in plan.choices if each.name == "USE_MAGMA"]
    assert "magma-2.5.4-cuda124-release is not available" in choice.because
    assert "404" in choice.because
    assert not [each for each in plan.artifacts if each.name == "magma"]
    assert [text for text in report.notes if "planned again without it" in text]
    assert all("MAGMA_HOME" not in file.text for file in plan.env_files)


def test_who_asks_for_magma_is_not_left_without(tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    with WebServer({}) as server:
        asked = question(tmp_path, server.url(""), "USE_MAGMA=1")
        plan = plan_of_question(asked)
        (artifact,) = [each for each in plan.artifacts if each.name == "magma"]
        assert not artifact.optional
        assert settle_helpers(asked, plan, RecordingReporter())[1] is plan
        from torchbuild_tasks.context import fetching_of
        from torchbuild_tasks.features.helpers.act import fetch

        with pytest.raises(DownloadFailed):
            fetch((artifact,), fetching_of(asked), RecordingReporter())
