"""The stage that patches, what `clean --patches` takes back, and real PyTorch where there is one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.capabilities import needs, needs_git
from tests.support.jetsons import tx2
from tests.support.machines import ask, plan_of, with_tree
from tests.support.patched_sources import contents, lay_out
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.features.patches import act as patches
from torchbuild_tasks.features.patches.act import apply_patches, undo_patches
from torchbuild_tasks.features.patches.choose import choose_patches
from torchbuild_tasks.values import replace

pytestmark = [pytest.mark.integration, needs_git]

# A checkout or release of PyTorch; only a few of its files are read.
REAL = Path(os.environ.get("TORCHBUILD_TEST_PYTORCH", ""))
needs_pytorch = needs(
    bool(os.environ.get("TORCHBUILD_TEST_PYTORCH")) and (REAL / "version.txt").is_file(),
    "PyTorch source named by TORCHBUILD_TEST_PYTORCH",
)


class RecordingReporter:
    """A reporter that records its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, *, alone: bool = False) -> None:
        self.notes.append(text)


def work(root: Path, version: str, report: RecordingReporter, **flags: Any) -> Work:
    """A build of this checkout on a TX2, as far as this stage looks at it."""
    facts = with_tree(tx2(), root=str(root), version=version)
    plan = plan_of(facts, **flags)
    plan = replace(plan, source=str(root), patches=choose_patches(ask(facts, **flags)), verdict="ok")
    missing = cast(Any, None)
    return Work(
        question=missing,
        plan=plan,
        report=cast(Any, report),
        ledger=missing,
        fetching=missing,
    )


def test_the_stage_applies_once_and_takes_back_what_no_plan_wants(tmp_path: Path) -> None:
    root, report = lay_out(tmp_path), RecordingReporter()
    before = contents(root)
    planned = work(root, "1.13.0a0", report, cuda=True)
    assert apply_patches(planned) == planned
    assert contents(root) != before
    assert report.notes
    assert "launch-bounds" in report.notes[0]
    report.notes.clear()
    apply_patches(planned)
    assert report.notes == []
    apply_patches(work(root, "1.13.0a0", report, cpu=True))
    assert contents(root) == before
    assert "undone" in report.notes[0]


def test_clean_patches(tmp_path: Path) -> None:
    root, report = lay_out(tmp_path, "1.1.0"), RecordingReporter()
    before = contents(root)
    apply_patches(work(root, "1.1.0", report, cuda=True))
    after = contents(root)
    report.notes.clear()
    assert undo_patches(root, cast(Any, report), True) == ("launch-bounds-thcunn",)
    assert contents(root) == after
    assert not report.notes  # the answer says it, on stdout
    assert undo_patches(root, cast(Any, report), False) == ("launch-bounds-thcunn",)
    assert contents(root) == before
    assert undo_patches(root, cast(Any, report), False) == ()


@needs_pytorch
def test_the_rows_fit_real_pytorch(tmp_path: Path) -> None:
    """On a copy of the files that the patch is about."""
    version = (REAL / "version.txt").read_text("utf-8").strip()
    (patch,) = choose_patches(ask(with_tree(tx2(), version=version), cuda=True))
    for line in patch.diff.splitlines():
        if line.startswith("+++ b/"):
            name = line.removeprefix("+++ b/")
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REAL / name, tmp_path / name)
    before = contents(tmp_path)
    assert patches.bring(tmp_path, [patch]).applied == (patch.id,)
    after = contents(tmp_path)
    assert patches.bring(tmp_path, [patch]) == patches.Outcome()
    assert any(b"CUDA_NUM_THREADS = 512;" in data for data in after.values())
    assert not any(b"CUDA_NUM_THREADS = 1024;" in data for data in after.values())
    patches.bring(tmp_path, ())
    assert contents(tmp_path) == before
