"""What a build tells before it begins, and what the verbs around it look at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import RecordingReporter
from torchbuild_tasks import flow
from torchbuild_tasks.flow import tell_warnings
from torchbuild_tasks.model import Way
from torchbuild_tasks.options import BuildRequest
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


class Looked(Exception):
    """The look at the machine, with its options."""


@pytest.mark.parametrize(
    "run",
    [
        lambda request: flow.preview_build(request),
        lambda request: flow.write_env(request),
        lambda request: flow.verify(request, RecordingReporter()),
        lambda request: flow.clean(request, RecordingReporter()),
    ],
    ids=["plan", "env", "verify", "clean"],
)
def test_a_verb_on_a_build_sees_what_the_build_saw_and_asks_no_program_anew(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(request: BuildRequest, **options: bool) -> None:
        raise Looked(options)

    monkeypatch.setattr(flow, "look", look)
    with pytest.raises(Looked) as caught:
        run(BuildRequest())
    assert caught.value.args == ({"everything": False},)
