"""What a build tells before it begins."""

from __future__ import annotations

from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import RecordingReporter
from torchbuild_tasks.flow import tell_warnings
from torchbuild_tasks.model import Way
from torchbuild_tasks.values import replace


def test_warnings_are_told_before_hours_are_spent_and_not_at_each_edit() -> None:
    plan = plan_of(linux_facts(), set=("USE_NUMPYY=1",))
    report = RecordingReporter()
    tell_warnings(plan, report)
    told = "\n".join(report.notes)
    assert "Warning: USE_NUMPYY is read by nothing" in told and "-> Did you mean USE_NUMPY?" in told
    again = RecordingReporter()
    tell_warnings(replace(plan, way=Way(name="install", because="")), again)
    assert not again.notes
