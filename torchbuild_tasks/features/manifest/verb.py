"""`replay` and `compare`: repeat a recorded build, and list differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from torchbuild_tasks import flow
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.context import accept, decide, look, read_named_build, writer
from torchbuild_tasks.errors import PlanRefused, VerifyFailed
from torchbuild_tasks.features.manifest.choose import pin_facts, pins, request_again, settings_of
from torchbuild_tasks.features.manifest.compare import Comparison, Difference, differences, not_compared
from torchbuild_tasks.features.manifest.replay import (
    Replay,
    believe,
    compare_plan,
    load,
    load_named,
    source_of,
    use_recorded_variables,
    write_diffs,
)
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.record import Manifest, VerifyReport
from torchbuild_tasks.options import BuildRequest, own_flag
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.show import plan_text, report_text
from torchbuild_tasks.values import replace
from torchbuild_tasks.verbs import Outcome

_SAME = "Nothing that a manifest knows differs.\n"
_SAME_OF_KNOWN = "Nothing that these manifests know differs; what they do not know may.\n"
_REPLAYED_OF_KNOWN = "This replay differs from the recorded build in nothing that is known; the rest may.\n"
_REPLAYED = (
    "This replay differs in nothing from the recorded build; its env file is the same, byte for byte.\n"
)


def compare_text(differing: Sequence[Difference], names: tuple[str, str], unknown: Sequence[str] = ()) -> str:
    """Return every difference by group; `-` marks a missing value."""
    head = f"- {names[0]}\n+ {names[1]}\n"
    same = _SAME_OF_KNOWN if unknown else _SAME
    return head + ("".join(_groups(differing)) or same) + _unknown(unknown)


def _unknown(unknown: Sequence[str]) -> str:
    return "\nnot compared\n" + "".join(f"  {each}\n" for each in unknown) if unknown else ""


def replay_text(replay: Replay) -> str:
    """Return the differences that the replay could not remove, with remedies."""
    number = len(replay.differences)
    if number:
        what = "One difference is" if number == 1 else f"{number} differences are"
        text = f"\n{what} left (- there, + here, -> what would remove it)\n" + "".join(
            _groups(replay.differences)
        )
    else:
        text = f"\n{_REPLAYED_OF_KNOWN if replay.not_compared else _REPLAYED}"
    text += _unknown(replay.not_compared)
    if replay.not_carried:
        text += f"Not in the manifest, or not known here: {', '.join(replay.not_carried)}\n"
    return text


def _groups(differing: Iterable[Difference]) -> Iterator[str]:
    for group, members in groupby(differing, key=lambda each: each.group):
        yield f"\n{group}\n"
        for each in members:
            yield f"  {each.name}\n    - {each.there}\n    + {each.here}\n"
            if each.remedy:
                yield f"    -> {each.remedy}\n"


def look_again(request: BuildRequest, manifest: Manifest, source: str) -> tuple[Question, BuildPlan]:
    """Gather the facts for a recorded build; make a plan as near to the recorded one as possible."""
    question = look(request_again(manifest.request, request, source), settings_of(manifest))
    question = replace(question, facts=pin_facts(question.facts, manifest))
    plan = decide(question)
    if more := pins(manifest, plan, question.facts):
        request_pinned = replace(question.request, set=(*question.request.set, *more))
        question = replace(question, request=request_pinned)
        plan = decide(question)
    return question, plan


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplayRequest(BuildRequest):
    """The words of `replay`."""

    positionals = ("manifest",)

    manifest: str | None = own_flag(
        "manifest of a build (torchbuild-manifest.json in its build tree)",
        metavar="MANIFEST",
        positional=True,
        sample=("manifest", "MANIFEST"),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompareRequest(BuildRequest):
    """The words of `compare`."""

    positionals = ("manifest", "other")

    manifest: str | None = own_flag(
        "manifest of a build (torchbuild-manifest.json in its build tree), or the build's name",
        metavar="MANIFEST",
        positional=True,
        sample=("manifest", "MANIFEST"),
    )
    other: str | None = own_flag(
        "manifest of another build, or its name",
        metavar="OTHER",
        positional=True,
        sample=("other manifest", "OTHER"),
    )
    bits: bool = own_flag(
        "compare two wheels, archives or libraries file by file, and explain each difference", default=False
    )


def replay(request: ReplayRequest, report: Reporter) -> Outcome:
    """Plan a recorded build again here, and list the remaining differences; --yes builds it."""
    replayed, verified = replay_build(request, report)
    code = PlanRefused.exit_code if replayed.plan.verdict == "refuse" else 0
    value = {"replay": replayed, "verify": verified}
    for path in replayed.written:
        report.note(f"wrote {path}")
    text = ""
    if verified is not None:
        text = report_text(verified)
    elif not request.yes:
        text = plan_text(replayed.plan, verbose=request.verbose)
    return Outcome(value, text + replay_text(replayed), code)


def replay_build(request: ReplayRequest, report: Reporter) -> tuple[Replay, VerifyReport | None]:
    """Plan a recorded build again here, with the remaining differences; --yes also builds it."""
    name = str(request.manifest)
    catalog = load_catalog()
    recorded = load(name)
    written = write_diffs(recorded, Path(request.out).expanduser()) if request.out else ()
    believed, withheld = believe(recorded, name, catalog)
    with use_recorded_variables(believed, catalog):
        question, plan = look_again(request, believed, source_of(believed, request.source))
        replayed = compare_plan(recorded, name, question, plan, writer(), written, withheld)
        if not request.yes:
            return replayed, None
        for line in replayed.lines:
            report.note(line)
        return replayed, flow.build_plan(question, accept(plan), report).verified


def compare(request: CompareRequest, report: Reporter) -> Outcome:
    """List the differences between the manifests of two builds, or the bytes of two files."""
    names = (str(request.manifest), str(request.other))
    if request.bits:
        from torchbuild_tasks.features.reproducible.bits import bits_text, compare_bits

        bits = compare_bits(*(Path(name).expanduser() for name in names))
        value = {"same": bits.same, **msgspec.structs.asdict(bits)}
        return Outcome(value, bits_text(bits, names), 0 if bits.same else VerifyFailed.exit_code)
    comparison = find_differences(request)
    value = {"there": names[0], "here": names[1], "differences": comparison.differences}
    value["not_compared"] = comparison.not_compared
    return Outcome(value, compare_text(comparison.differences, names, comparison.not_compared))


def find_differences(request: CompareRequest) -> Comparison:
    """Compare two builds, each a manifest's file or the name of a build."""
    about = read_named_build(request)
    there, here = (load_named(str(each), about) for each in (request.manifest, request.other))
    return Comparison(differences=differences(there, here), not_compared=not_compared(there, here))
