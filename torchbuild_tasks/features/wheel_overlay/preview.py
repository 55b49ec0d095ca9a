"""Plan `--from-wheel` and choose the way of `--auto`, without a download or a change."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from torchbuild_tasks.build.history import longest_build
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.errors import TorchbuildError
from torchbuild_tasks.facts.wheel import VERSION_FILE, identify
from torchbuild_tasks.features.wheel_overlay.act import COMPILED, SETTINGS, TARGET
from torchbuild_tasks.features.wheel_overlay.cheapest import (
    Situation,
    choose_offer,
    describe_offers,
    list_user_choices,
    offer_ways,
)
from torchbuild_tasks.features.wheel_overlay.choose import (
    CHANGED,
    PYTHON_PART,
    Reached,
    describe_distance,
    is_commit,
    obstacle,
    wheel_expectations,
    wheel_inputs,
    why_no_mixed_build,
)
from torchbuild_tasks.features.wheel_overlay.find import (
    AUTO,
    Context,
    check_wheel,
    count_due_steps,
    find_named_wheels,
    find_obstacles,
    indexed_version,
    local_wheels,
    look_at_change,
    nearest_release,
    release_of,
)
from torchbuild_tasks.features.wheel_overlay.mixed import BUILD_FILE, check_change, replaced_files
from torchbuild_tasks.model import BuildPlan, Choice, Finding
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.values import parse_json, replace

Decide = Callable[[Question], BuildPlan]
_LATER: Final = "the commit that it was built from is compared with the checkout after the download"


# ---------------- plan --from-wheel, build --from-wheel --dry-run


def preview(question: Question, plan: BuildPlan) -> BuildPlan:
    """Return the plan with the wheel that would be used, or refused with the findings against it."""
    context = Context(plan=plan, facts=question.facts, catalog=question.catalog)
    word = str(question.request.from_wheel)
    path = Path(word).expanduser()
    if word == AUTO:
        return _preview_auto(context, question.request.wheels)
    if path.exists():
        return _preview_local(context, find_named_wheels(context, path), word)
    if parse_version(word) or urlsplit(word).scheme.lower() in ("http", "https", "file"):
        return _add_choice(plan, Choice(name="wheel", value=word, because=_LATER, source="flag"))
    text = f"--from-wheel {word}: that is neither a file, a folder, an address nor a version"
    return _refuse(plan, obstacle(text))


def _preview_auto(context: Context, wheels: str | None) -> BuildPlan:
    for wheel in local_wheels(context, wheels, []):
        if not check_wheel(context, wheel):
            return _plan_with_wheel(context, wheel)
    release = nearest_release(context)
    if release is None:
        return _add_choice(
            context.plan,
            Choice(name="wheel", value=indexed_version(release_of(context), context.plan), because=_LATER),
        )
    version, reached = release
    if obstacles := find_obstacles(context, reached):
        return _refuse(context.plan, *obstacles)
    because = f"{_differs(context.plan)} differs from this release; it would be downloaded"
    return _add_choice(
        context.plan, Choice(name="wheel", value=indexed_version(version, context.plan), because=because)
    )


def _preview_local(context: Context, wheels: list[Wheel], word: str) -> BuildPlan:
    findings: list[Finding] = []
    for wheel in wheels:
        problem = check_wheel(context, wheel)
        if not problem:
            return _plan_with_wheel(context, wheel)
        text = f"{wheel.file}: {problem}"
        findings += problem if isinstance(problem, tuple) else (obstacle(text),)
    return _refuse(context.plan, *(findings or [obstacle(f"no wheel of torch is in {word}")]))


def _plan_with_wheel(context: Context, wheel: Wheel) -> BuildPlan:
    inputs = wheel_inputs(wheel, identify(wheel))
    expectations = wheel_expectations(
        context.catalog.check, context.plan.expectations, inputs, sample=context.facts.tree.sample
    )
    plan = replace(context.plan, expectations=expectations)
    ahead = look_at_change(context, Git(folder=context.root), wheel.commit).ahead or 0
    because = f"built from {describe_distance(ahead)} ({wheel.commit[:10]}), and {_differs(plan)} differs"
    return _add_choice(plan, Choice(name="wheel", value=wheel.path, because=because))


def _differs(plan: BuildPlan) -> str:
    if plan.way.target == CHANGED:
        return "nothing that code is generated from, and nothing of the build's own files,"
    return f"nothing but {PYTHON_PART}" if plan.way.target else "nothing that is compiled"


def _add_choice(plan: BuildPlan, choice: Choice) -> BuildPlan:
    return replace(plan, choices=(*plan.choices, choice))


def _refuse(plan: BuildPlan, *findings: Finding) -> BuildPlan:
    return replace(plan, verdict="refuse", findings=(*plan.findings, *findings))


# ---------------- build --auto


def settle_auto(question: Question, decide: Decide, store: Path, report: Reporter) -> Question:
    """Choose the cheapest way, report it in one line, and return the question with its flags."""
    situation = look_at_situation(question, decide, store)
    offers = offer_ways(situation)
    chosen = choose_offer(offers)
    report.note(describe_offers(chosen, offers))
    takes_wheel = chosen.way in ("from-wheel", "mixed") or (chosen.way == "no-op" and situation.laid)
    word = situation.wheel if takes_wheel else None
    target = (
        situation.target
        if word and situation.mixed and chosen.way != "from-wheel"
        else question.request.target
    )
    # A wheel excludes --watch; the front keeps watching by the request that it has.
    watch = question.request.watch and word is None
    request = dataclasses.replace(question.request, auto=False, from_wheel=word, target=target, watch=watch)
    return replace(question, request=request)


def look_at_situation(question: Question, decide: Decide, store: Path) -> Situation:
    """Return the input of the choice; if git fails, only a compile is left."""
    plan = decide(question)
    context = Context(plan=plan, facts=question.facts, catalog=question.catalog)
    previous = question.facts.tree.previous
    refused = plan.verdict == "refuse"
    situation = Situation(
        decided=list_user_choices(question, plan),
        no_compile="a compile cannot work here: see `plan`" if refused else "",
    )
    if past := longest_build(store, context.root):
        situation = replace(situation, full_seconds=past.seconds, step_seconds=past.seconds / past.steps)
    if not question.facts.tree.commit:
        return replace(situation, no_wheel="it is not a git checkout")
    with contextlib.suppress(TorchbuildError):
        if previous is not None and "wheel" in previous.inputs:
            situation = replace(situation, laid=True, **_compare_overlay(context, previous.inputs))
            if previous.inputs.get(TARGET) == CHANGED:
                return replace(situation, **_look_at_changed(question, decide, situation))
            return replace(situation, **_look_at_mixed(question, decide, situation.wheel or AUTO))
        if previous is not None and plan.freshness.needs != "first":
            due = count_due_steps(context) if plan.way.name == "install" else {"no_ninja": plan.way.because}
            return replace(situation, built=True, **due)
        if (context.root / VERSION_FILE).exists():
            return replace(situation, in_way=VERSION_FILE)
        return replace(situation, **_look_at_nearest(context, question.request))
    return replace(situation, no_wheel="git cannot say what has changed")


def _compare_overlay(context: Context, inputs: Any) -> dict[str, Any]:
    commit = (*str(inputs.get("wheel versions", "")).split(), "", "", "")[2]
    change = look_at_change(context, Git(folder=context.root), commit) if is_commit(commit) else None
    versions = [str(each.get("python", "")).rpartition(" ")[2] for each in (inputs, context.plan.inputs)]
    if change is None or change.ahead is None or versions[0] != versions[1]:
        other = "for another Python" if versions[0] != versions[1] else "of a commit that is not an ancestor"
        moved = Reached(path=f"all (the wheel in this checkout is {other})", kind="build", part="the build")
        return {"reached": (moved,)}
    recorded = read_json(last_manifest(context.build_dir)).get("request", {}).get("from_wheel") or AUTO
    word = recorded if parse_version(recorded) or "://" in recorded or Path(recorded).exists() else AUTO
    return {"reached": change.reached, "wheel": word}


def _look_at_mixed(question: Question, decide: Decide, wheel: str) -> dict[str, Any]:
    """Return the steps due for torch_python, if it was compiled against this wheel with the same settings."""
    if lack := why_no_mixed_build(question.facts):
        return {"no_mixing": lack}
    context, obstacle = _plan_mixed(question, decide, wheel, PYTHON_PART)
    ran = read_json(last_manifest(context.build_dir)).get("commands", ())
    if not any(each["argv"][-1] == PYTHON_PART for each in ran):  # CMake's settings were found alike before
        return {}
    if obstacle:
        return {"no_mixing": obstacle}
    due = count_due_steps(context, PYTHON_PART)
    return {"mixed": "steps" in due, "no_mixing": due.get("no_ninja", ""), **due}


def _plan_mixed(question: Question, decide: Decide, wheel: str, target: str) -> tuple[Context, str]:
    """Return the plan of a mixed build, and why it cannot continue the one in the checkout ("" if it can)."""
    request = dataclasses.replace(question.request, auto=False, from_wheel=wheel, target=target)
    context = Context(
        plan=decide(replace(question, request=request)), facts=question.facts, catalog=question.catalog
    )
    if context.plan.verdict == "refuse":
        return (
            context,
            f"a compile of {target if target == PYTHON_PART else 'what has changed'} cannot work here",
        )
    return context, context.plan.freshness.because if context.plan.freshness.needs != "nothing" else ""


def _look_at_changed(question: Question, decide: Decide, situation: Situation) -> dict[str, Any]:
    """Return the steps due for the libraries that the change reaches, if some were compiled here before."""
    context, obstacle = _plan_mixed(question, decide, situation.wheel or AUTO, CHANGED)
    if obstacle or not (context.build_dir / BUILD_FILE).is_file():
        return {"target": CHANGED, **({"no_mixing": obstacle} if obstacle else {})}
    inputs = question.facts.tree.previous.inputs if question.facts.tree.previous else {}
    named = Path(situation.wheel)
    found = (
        find_named_wheels(context, named)
        if situation.wheel and named.exists()
        else local_wheels(context, question.request.wheels, [])
    )
    wheel = next((each for each in found if inputs["wheel"].startswith(f"{each.file} ")), None)
    if wheel is None:
        return {"target": CHANGED, "no_mixing": "the wheel in this checkout is no longer found"}
    spread, findings = check_change(context, wheel, parse_json(inputs[SETTINGS].encode()), situation.reached)
    if findings:
        return {"target": CHANGED, "no_mixing": findings[0].text}
    if replaced_files(spread, wheel, situation.reached) != parse_json(inputs.get(COMPILED, "[]")):
        return {"target": CHANGED, "mixed": True}
    due = [output for part in spread.due for output in part.files]
    steps = count_due_steps(context, "-f", BUILD_FILE, *due) if due else {"steps": 0}
    return {"target": CHANGED, "mixed": "steps" in steps, "no_mixing": steps.get("no_ninja", ""), **steps}


def _look_at_nearest(context: Context, request: BuildRequest) -> dict[str, Any]:
    differing: tuple[Reached, ...] = ()
    for wheel in local_wheels(context, request.wheels, []):
        problem = check_wheel(context, wheel)
        if not problem:
            return {"wheel": wheel.path, "wheel_size": sum(member.size for member in wheel.members)}
        if isinstance(problem, tuple) and not differing:
            differing = look_at_change(context, Git(folder=context.root), wheel.commit).reached
    if differing:
        return {"reached": differing}
    release = nearest_release(context)
    if release is None:
        return {"no_wheel": "none is here, and no release's tag is an ancestor of this commit"}
    version, reached = release
    if request.offline and not reached:
        return {"no_wheel": f"that of the release {version} would be downloaded"}
    return {"wheel": AUTO, "reached": reached}
