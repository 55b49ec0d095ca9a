"""`report`: write the last build's timeline, slowest files and critical path as one page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest, flag
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.report.act import ReportFiles


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportRequest(BuildRequest):
    """The flags of `report`."""

    trace: str | None = flag(
        "also write the timeline as a trace for Perfetto or Chrome",
        metavar="FILE",
        in_file=False,
    )


def run(request: ReportRequest, report: Reporter) -> Outcome:
    """Write the report of the last build: one HTML page, with --trace also a timeline for Perfetto."""
    written = write_report(request)
    for note in written.notes:
        report.note(note)
    trace = written.trace and str(written.trace)
    return Outcome(
        {"page": str(written.page), "trace": trace, "steps": written.steps},
        "".join(f"wrote {path}\n" for path in (written.page, written.trace) if path),
    )


def write_report(request: ReportRequest) -> ReportFiles:
    """Write the page, and the trace if requested."""
    from torchbuild_tasks.context import look, require_checkout
    from torchbuild_tasks.features.report.act import make_report

    question = look(request)
    root = require_checkout(question)
    build_dir = Path(question.facts.tree.build_dir or root / "build")
    out = Path(request.out).expanduser() if request.out else None
    trace = Path(request.trace).expanduser() if request.trace else None
    return make_report(root, build_dir, question.catalog, out, trace, question.facts.tree.running)
