"""`support`: write one archive for another person to examine, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchbuild_tasks.context import look
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.support.act import SupportFile


def support_text(archive: SupportFile) -> str:
    """Return the archive's path, its members, the redactions, and the failures."""
    redacted = ", ".join(f"{rule} ({count})" for rule, count in archive.redacted.items()) or "nothing"
    lines = [f"wrote {archive.path}", f"  in it: {', '.join(archive.members)}", f"  taken out: {redacted}"]
    lines += [f"  could not be fetched: {problem}" for problem in archive.problems]
    return "\n".join(lines) + "\n  Look through it before you hand it on.\n"


def run(request: BuildRequest, report: Reporter) -> Outcome:
    """Write one archive for another person to examine."""
    written = write_archive(request)
    return Outcome(written, support_text(written))


def write_archive(request: BuildRequest) -> SupportFile:
    """Write the archive; it lists what is not available."""
    from torchbuild_tasks.catalog import load_catalog
    from torchbuild_tasks.context import decide, writer
    from torchbuild_tasks.features.doctor import health
    from torchbuild_tasks.features.support.act import Attempts, make_support

    attempts = Attempts()
    question = attempts("look", lambda: look(request, patience=health.PATIENCE))
    question = question or attempts(
        "look without flags and settings", lambda: health.look_without_settings(request)
    )
    if question is None:
        return make_support(request, None, None, load_catalog(), attempts, writer=writer())
    seen = question
    plan = attempts("plan", lambda: decide(seen))
    if plan is not None:
        seen = attempts("doctor", lambda: health.examine(question, plan)) or question
    return make_support(request, seen.facts, plan, seen.catalog, attempts, writer=writer())
