"""The stage that fetches helpers, and the actions of `helpers`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from torchbuild_tasks.build.work import Fetching, Reporter, Work
from torchbuild_tasks.errors import ArchiveRefused, CleanRefused, DownloadFailed, HashRefused, PlanRefused
from torchbuild_tasks.features.helpers import store
from torchbuild_tasks.features.helpers.choose import (
    HelperReport,
    check_helpers,
    choose_helpers,
    helper_check,
    helper_lines,
    make_helper,
    part_lines,
)
from torchbuild_tasks.model import Artifact, Finding
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.artifacts import helper_rows
from torchbuild_tasks.plan.cuda.advice import advise
from torchbuild_tasks.plan.cuda.archs import choose_archs
from torchbuild_tasks.plan.cuda.best import choose_best
from torchbuild_tasks.plan.cuda.checks import check_toolkit
from torchbuild_tasks.plan.cuda.devices import devices
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import choose_build_type
from torchbuild_tasks.system import process
from torchbuild_tasks.system.remove import size_of
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.values import replace

CHECK_SECONDS = 60.0


def fetch_helpers(work: Work) -> Work:
    """Fetch every helper of the plan first, so that a failure costs no time."""
    needed = tuple(artifact for artifact in work.plan.artifacts if not artifact.optional)
    if needed:
        fetch(needed, work.fetching, work.report)
    for artifact in work.plan.artifacts:
        if artifact.optional and (reason := why_missing(artifact, work.fetching, work.report)):
            work.report.note(f"{reason}; the build continues without it")
    return work


def why_missing(artifact: Artifact, fetching: Fetching, report: Reporter) -> str:
    """Fetch an optional helper; return why it is not available, "" if it is."""
    try:
        fetch((artifact,), fetching, report)
    except (DownloadFailed, HashRefused, ArchiveRefused) as error:
        reasons = (error.what, *error.looked[:1])
        return f"{artifact.id} is not available: {'; '.join(each.rstrip('.') for each in reasons)}"
    return ""


def fetch(artifacts: tuple[Artifact, ...], fetching: Fetching, report: Reporter) -> Mapping[str, Path]:
    """Fetch and unpack missing artifacts; return the folder of each by its id."""
    from torchbuild_tasks.features.helpers.fetch import obtain  # imports of downloading and unpacking

    return obtain(
        artifacts,
        fetching.store,
        net=replace(fetching.net, say=report.note),
        lock_file=fetching.lock_file,
        require_hashes=fetching.require_hashes,
        allow_http=fetching.allow_http,
        tell=report.transfer,
        note=report.note,
    )


def choose_wanted(
    question: Question, action: str
) -> tuple[HelperReport, tuple[Artifact, ...], frozenset[str]]:
    """Return the input of `helpers`: the list, the helpers of the build, and the ids to keep.

    Raises:
        PlanRefused: a helper that is wanted is not available.
    """
    toolkit = choose_best(question)
    archs = choose_archs(question, toolkit, devices(question)) if toolkit.choice else None
    chosen = choose_helpers(question, choose_build_type(question).value, toolkit.version, archs)
    checked = (
        *check_helpers(question, chosen),
        *(advise(question, check_toolkit(question, toolkit)) if toolkit.problem else ()),
    )
    if errors := tuple(finding for finding in checked if finding.status == "error"):
        raise PlanRefused("These helpers are not available.", findings=errors)
    artifacts = (*chosen.artifacts, *toolkit.artifacts)
    lines = (*helper_lines(question, chosen), *part_lines(question, toolkit.artifacts))
    to_keep = frozenset(artifact.stored_as for artifact in artifacts) | frozenset(toolkit.kept)
    return HelperReport(action=action, lines=lines), artifacts, to_keep


def count_unfinished(before: HelperReport, fetching: Fetching) -> HelperReport:
    """Add the unfinished downloads to the report."""
    return replace(before, unfinished={str(path): size_of(path) for path in store.unfinished(fetching.store)})


def fetch_wanted(
    before: HelperReport,
    artifacts: tuple[Artifact, ...],
    fetching: Fetching,
    request: BuildRequest,
    report: Reporter,
) -> HelperReport:
    """Fetch the planned artifacts, unless --dry-run."""
    if request.dry_run:
        return before
    report.stage("fetch helpers")
    folders = fetch(artifacts, fetching, report)
    lines = (replace(line, here=line.here or line.id in folders) for line in before.lines)
    return replace(before, lines=tuple(lines))


def verify_helpers(before: HelperReport, question: Question, fetching: Fetching) -> HelperReport:
    """Compare unpacked helpers with their listings, then run each row's check command."""
    findings = list(store.verify(fetching.store))
    for helper in (make_helper(question, row) for row in helper_rows(question)):
        command = helper_check(question, helper)
        if not (helper.here and command):
            continue
        captured = process.capture(command, timeout=CHECK_SECONDS)
        if captured.rc != 0:
            text = f"{command[0]} ended with exit code {captured.rc}. {captured.error_text[-200:]}"
            fix = "Remove its folder (helpers where), then: helpers fetch."
            findings.append(Finding.error(helper.artifact.id, text, fix))
    return replace(before, findings=tuple(findings))


def prune_helpers(
    before: HelperReport,
    artifacts: tuple[Artifact, ...],
    keep: Collection[str],
    fetching: Fetching,
    request: BuildRequest,
    report: Reporter,
) -> HelperReport:
    """List what the plan does not need, then remove it, unless --dry-run."""
    partial = {store.partial_of(fetching.store, artifact) for artifact in artifacts}
    removable = store.prune(fetching.store, keep, partial=partial, dry_run=True)
    if not removable.paths or request.dry_run:
        return replace(before, removable=removable.paths)
    report.note(f"to be removed, {size_text(removable.bytes)}:")
    for path in removable.paths:
        report.note(path)
    if not (request.yes or report.confirm("Remove these?")):
        raise CleanRefused("Nothing was removed.", next_step="Add --yes to remove what is listed.")
    done = store.prune(fetching.store, keep, partial=partial)
    for stays, why in done.kept:
        report.note(f"{stays} stays: {why}")
    return replace(before, removed=done.paths)
