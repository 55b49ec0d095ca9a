"""`diagnose`: find the first real error of a log, its cause, and what to do about it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest, flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.model import Reading


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiagnoseRequest(BuildRequest):
    """The flags of `diagnose`."""

    optional = {"": "log"}

    log: str | None = flag(
        "log of a build, or - for standard input (default: the last build's)",
        metavar="LOG",
        in_file=False,
        positional=True,
        sample=("log", "LOG"),
    )


def run(request: DiagnoseRequest, report: Reporter) -> Outcome:
    """Find the first real error of a log, its cause, and what to do about it."""
    from torchbuild_tasks.features.diagnosis.show import reading_text

    reading = read_log(request)
    head = "" if request.log else f"The log of this checkout's last build: {reading.log}\n"
    return Outcome(reading, head + reading_text(reading))


def read_log(request: DiagnoseRequest) -> Reading:
    """Find the first real error of a log, and the causes that the rows know for this machine."""
    from torchbuild_tasks.catalog.failures import FailureBook
    from torchbuild_tasks.context import decide, look
    from torchbuild_tasks.features.diagnosis.act import diagnose_log, last_log
    from torchbuild_tasks.features.diagnosis.machine import Machine
    from torchbuild_tasks.features.diagnosis.show import state_text
    from torchbuild_tasks.system.signals import interruptible
    from torchbuild_tasks.values import replace

    question = look(request)
    name = request.log or last_log(question.facts.tree)
    machine = Machine(question.facts, decide(question), question.catalog, built=not request.log)
    with interruptible():
        reading = diagnose_log(name, FailureBook(question.catalog.failure), machine)
        clean = reading.status == "clean"
        state = "" if request.log else state_text(question.facts.tree, clean=clean)
        return replace(reading, log=name, state=state)
