"""`helpers`: list, fetch, find, verify, prune or build the libraries and tools that builds download."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import ArchiveRefused
from torchbuild_tasks.features.helpers.choose import HelperLine, HelperReport
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.text.show import columns, finding_text, size_text
from torchbuild_tasks.text.words import counted
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.plan.question import Question


def _list(report: HelperReport) -> str:
    head = ("", "helper", "size", "hash", "state", "what it is")
    rows = [_row(line) for line in report.lines]
    text = columns([head, *rows], "") + "* is wanted by the build that these flags describe\n"
    if report.unfinished:
        count = counted(len(report.unfinished), "unfinished download")
        size = size_text(sum(report.unfinished.values()))
        text += f"{count}, {size} in all: `helpers fetch` goes on with what the build wants, "
        text += "`helpers prune` removes the rest\n"
    return text


def _row(line: HelperLine) -> tuple[str, ...]:
    return (
        "*" if line.wanted else "",
        line.id,
        size_text(line.size) if line.size else "-",
        "known" if line.sha256 else "at first use",
        "here" if line.here else "not here",
        line.because,
    )


def _where(report: HelperReport) -> str:
    """Return the folders of the needed helpers, and mark missing ones."""
    rows = [
        (x.id, x.folder if x.here else f"{x.folder}  (not fetched yet)") for x in report.lines if x.wanted
    ]
    return columns(rows, "") or "No helper is wanted by the build that these flags describe.\n"


def _verify(report: HelperReport) -> str:
    lines = (
        finding_text(replace(finding, text=f"{finding.id}: {finding.text}")) for finding in report.findings
    )
    return "".join(lines) or "No helper is here.\n"


def _prune(report: HelperReport) -> str:
    lines = [*(f"removed {x}\n" for x in report.removed), *(f"would remove {x}\n" for x in report.removable)]
    return "".join(lines) or "Nothing to remove.\n"


def _build(report: HelperReport) -> str:
    """Return how builds use the built helper; `row` is for torchbuild.toml."""
    if not report.built:
        return f"would build:\n{report.row}"
    return (
        f"{report.built}\n"
        f"Builds take it by this row of torchbuild.toml, which also stands in {report.built}.toml:\n\n"
        f"{report.row}"
    )


_TEXTS = {
    "list": _list,
    "fetch": _where,
    "where": _where,
    "verify": _verify,
    "prune": _prune,
    "build": _build,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class HelpersRequest(BuildRequest):
    """The words of `helpers`."""

    actions = {
        "list": "show all helpers for this machine; * marks what the build needs",
        "fetch": "download and unpack what the build needs",
        "where": "print their folders",
        "verify": "compare every file with its hash, and run the helper's own check",
        "prune": "remove what the build does not need; lists first, asks",
        "build": "build one from source, such as magma",
    }
    objects = {"build": ("what",)}
    takes = ("arch", "jobs", "set")

    what: str | None = own_flag(
        "helper to build from source: magma, magma=PATH, or magma=URL@REF",
        metavar="NAME",
        positional=True,
        sample=("helper", "magma"),
    )


def run(request: HelpersRequest, report: Reporter) -> Outcome:
    """List, fetch, find, verify, prune or build the libraries and tools that builds download."""
    result = run_action(request, report)
    bad = any(finding.status == "error" for finding in result.findings)
    return Outcome(result, _TEXTS[result.action](result), ArchiveRefused.exit_code if bad else 0)


def run_action(request: HelpersRequest, report: Reporter) -> HelperReport:
    """Run the requested action."""
    from torchbuild_tasks.context import fetching_of, look
    from torchbuild_tasks.features.helpers.act import (
        choose_wanted,
        count_unfinished,
        fetch_wanted,
        prune_helpers,
        verify_helpers,
    )
    from torchbuild_tasks.system.signals import interruptible

    question = look(request)
    if request.action == "build":
        with interruptible():
            return build_wanted(question, request, report)
    listed, artifacts, to_keep = choose_wanted(question, str(request.action))
    with interruptible():
        match request.action:
            case "fetch":
                return fetch_wanted(listed, artifacts, fetching_of(question), request, report)
            case "verify":
                return verify_helpers(listed, question, fetching_of(question))
            case "prune":
                return prune_helpers(listed, artifacts, to_keep, fetching_of(question), request, report)
    return count_unfinished(listed, fetching_of(question))


def build_wanted(question: Question, request: HelpersRequest, report: Reporter) -> HelperReport:
    """Build a helper from source, in the environment of torch's build; --dry-run only lists the steps."""
    from torchbuild_tasks.context import decide, fetching_of
    from torchbuild_tasks.features.recipes import act
    from torchbuild_tasks.features.recipes.choose import accept_compilers, configure_argv, make_order
    from torchbuild_tasks.features.toolkit.act import assemble_planned
    from torchbuild_tasks.system.net.client import redact

    order = make_order(question, str(request.what))
    plan = accept_compilers(decide(question), order.row.name)
    report.note(order.because)
    fetching = fetching_of(question)
    if request.dry_run and (source := act.name_missing(order, fetching)):
        then = "its patches and options are known once it is here"
        return HelperReport(action="build", lines=(), row=f"source from {redact(source)}; {then}\n")
    job = act.prepare(order, question.catalog, fetching, request.out, report)
    if request.dry_run:
        argv = configure_argv(order, job.recipe, str(job.tree), str(job.build))
        steps = (*(f"patch {patch.id}: {patch.because}" for patch in job.patches), " ".join(argv))
        return HelperReport(action="build", lines=(), row="\n".join((*steps, str(job.archive), "")))
    assemble_planned(plan, question.catalog, fetching, report)
    built = act.build(job, plan, report)
    return HelperReport(action="build", lines=(), built=built.archive, row=built.row)
