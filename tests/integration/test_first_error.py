"""The first error of a build is reported while other steps run: real Ninja, steps that wait for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.test_jobserver import needs_ninja_1_13
from tests.integration.test_jobserver_build import work_on
from tests.support.preflight import RecordingReporter
from torchbuild_tasks.build.compile import run_build
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.values import replace

pytestmark = [pytest.mark.integration, needs_ninja_1_13]
# The first step fails; the others run until somebody was told, or give up.
STEPS = """
import sys, time
from pathlib import Path
name, told = Path(sys.argv[1]), Path("told")
if name.name == "0.o":
    raise SystemExit("nvcc fatal   : Unsupported gpu architecture 'compute_37'")
end = time.monotonic() + 30
while not told.exists() and time.monotonic() < end:
    time.sleep(0.02)
name.write_text("told" if told.exists() else "nobody was told", "utf-8")
"""


class Tells(RecordingReporter):
    """Lets the other steps end when it hears of the error."""

    def __init__(self, flag: Path) -> None:
        super().__init__()
        self.flag = flag

    def note(self, text: str, *, alone: bool = False) -> None:
        super().note(text)
        if text.startswith("First error"):
            self.flag.touch()


def test_the_first_error_is_reported_while_other_steps_run(tmp_path: Path) -> None:
    work, _ = work_on(tmp_path, STEPS)
    said = Tells(tmp_path / "build/told")
    with work.ledger, pytest.raises(BuildFailed) as failed:
        run_build(replace(work, report=said), work.plan.compile)
    assert [(tmp_path / f"build/{number}.o").read_text("utf-8") for number in (1, 2)] == ["told"] * 2
    error, cause = said.notes  # and once
    (number,) = re.findall(r"line (\d+)", failed.value.next_step)
    wanted = "nvcc fatal   : Unsupported gpu architecture 'compute_37'"
    assert error == f"First error, in line {number} of the log: {wanted}"
    assert cause.startswith(failed.value.diagnoses[0].cause)
    assert cause.endswith("What runs already is still waited for; Ctrl-C ends it now.")
