"""Plan `--from-wheel` and choose the way of `--auto`, without a download or a change."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.build.history import longest_build
from torchbuild_tasks.build.ledger import last_manifest
from torchbuild_tasks.build.work import Planned, Reporter
from torchbuild_tasks.catalog.match import parse_version, series
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
    INDEX,
    NO_PLACE,
    check_wheel,
    count_due_steps,
    find_named_wheels,
    find_obstacles,
    indexed_version,
    local_wheels,
    look_at_change,
    nearest_release,
    place_of,
    release_of,
)
from torchbuild_tasks.features.wheel_overlay.mixed import BUILD_FILE, check_change, replaced_files
from torchbuild_tasks.model import BuildPlan, Choice, Finding, verdict
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.environment import first_python
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.requirements import missing_from_files, missing_requirements, one_each, run_time
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.values import parse_json, replace

Decide = Callable[[Question], BuildPlan]
_LATER: Final = "the commit that it was built from is compared with the checkout after the download"


# ---------------- plan --from-wheel, build --from-wheel --dry-run


def preview(question: Question, plan: BuildPlan) -> BuildPlan:
    """Return the plan with the wheel that would be used, or refused with the findings against it."""
    planned = Planned(question=question, plan=plan)
    word = str(question.request.from_wheel)
    match place_of(word):
        case "auto":
            return _preview_auto(planned, question.request.wheels)
        case "path":
            return _preview_local(planned, find_named_wheels(planned, Path(word).expanduser()), word)
        case "address" | "version":
            choice = Choice(name="wheel", value=word, because=_LATER, source="flag")
            return _warn_offline(question, _add_choice(plan, choice), word)
    return _refuse(plan, obstacle(f"--from-wheel {word}: {NO_PLACE}"))


def _preview_auto(planned: Planned, wheels: str | None) -> BuildPlan:
    for wheel in local_wheels(planned, wheels, []):
        if not check_wheel(planned, wheel):
            return _warn_offline(planned.question, _plan_with_wheel(planned, wheel))
    version, reached = nearest_release(planned) or (release_of(planned), None)
    if reached is not None and (obstacles := find_obstacles(planned, reached)):
        return _refuse(planned.plan, *obstacles)
    because = f"{_differs(planned.plan)} differs from this release; it would be downloaded"
    value = indexed_version(version, planned.plan)
    known = because if reached is not None else _LATER
    plan = _add_choice(planned.plan, Choice(name="wheel", value=value, because=known))
    return _warn_offline(planned.question, plan, value)


def _warn_offline(question: Question, plan: BuildPlan, word: str = "") -> BuildPlan:
    """Return the plan, with a warning where --offline may prevent a download; builds ask all of pip.

    Args:
        question: what is planned.
        plan: the plan without it.
        word: the version or address of the wheel, "" for one that is here.
    """
    if not question.given("offline") or "file:" in question.value("mirror", ""):
        return plan
    brought = question.facts.brought.wheels if question.facts.brought else ()
    named = (f"torch=={word}",) if parse_version(word) else ()
    here = not word or word.startswith("file:") or bool(named and not missing_from_files(brought, named))
    lacking = one_each(missing_from_files(brought, _run_time(question, plan)))
    if here and not lacking:
        return plan
    wheel = [] if here else [f"the wheel of torch ({word})"]
    text = (
        f"--offline, and this would be downloaded: {', '.join((*wheel, *lacking))}. The build takes it from "
    )
    text += "places on this machine alone, and --wheels has none of it"
    fetched = () if here else named  # with what it asks for
    line = _download(question, plan, fetched or lacking) if fetched or lacking else ""
    if not (here or named):
        line = f"{line}{'; ' if line else ''}bring the wheel, too, and name it: --from-wheel FILE"
    findings = (*plan.findings, Finding.warn("from-wheel", text, f"{line[0].upper()}{line[1:]}."))
    return replace(plan, findings=findings, verdict=verdict(findings))


def _run_time(question: Question, plan: BuildPlan) -> tuple[str, ...]:
    """Return what torch asks for and the Python that gets it lacks, as far as the checkout says it."""
    python = first_python(question)
    if python is None:
        return ()
    have = None if plan.environment.create else python
    return missing_requirements(question, have, python, run_time(question))


def _download(question: Question, plan: BuildPlan, wanted: tuple[str, ...]) -> str:
    """Return how to bring wheels: of torch also what it asks for, and its variant from its own index."""
    variant = wanted[0].partition("+")[2]
    index = ("--index-url", f"{INDEX}{variant}") if variant else ()
    line = question.line("pip", "download", "--dest", "wheels", *index, *wanted)
    where = f"where there is a network, with Python {series(plan.environment.version)} on such a system"
    return f"{where}: {line}; then use --wheels wheels here"


def _preview_local(planned: Planned, wheels: list[Wheel], word: str) -> BuildPlan:
    findings: list[Finding] = []
    for wheel in wheels:
        problem = check_wheel(planned, wheel)
        if not problem:
            return _warn_offline(planned.question, _plan_with_wheel(planned, wheel))
        text = f"{wheel.file}: {problem}"
        findings += problem if isinstance(problem, tuple) else (obstacle(text),)
    return _refuse(planned.plan, *(findings or [obstacle(f"no wheel of torch is in {word}")]))


def _plan_with_wheel(planned: Planned, wheel: Wheel) -> BuildPlan:
    inputs = wheel_inputs(wheel, identify(wheel))
    expectations = wheel_expectations(planned.question, planned.plan.expectations, inputs)
    plan = replace(planned.plan, expectations=expectations)
    ahead = look_at_change(planned, wheel.commit).ahead or 0
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
    request = dataclasses.replace(question.request, from_wheel=word, target=target, watch=watch)
    return replace(question, request=request)


def look_at_situation(question: Question, decide: Decide, store: Path) -> Situation:
    """Return the input of the choice; if git fails, only a compile is left."""
    plan = decide(question)
    planned = Planned(question=question, plan=plan)
    tree = question.facts.tree
    refused = plan.verdict == "refuse"
    situation = Situation(
        decided=list_user_choices(question, plan),
        no_compile="a compile cannot work here: see `plan`" if refused else "",
    )
    if past := longest_build(store, planned.root):
        situation = replace(situation, full_seconds=past.seconds, step_seconds=past.seconds / past.steps)
    if not tree.commit:
        return replace(situation, no_wheel=tree.git_problem or "it is not a git checkout")
    with contextlib.suppress(TorchbuildError):
        if (previous := tree.previous) is not None and "wheel" in previous.inputs:
            situation = replace(situation, laid=True, **_compare_overlay(planned, previous.inputs))
            if previous.inputs.get(TARGET) == CHANGED:
                return replace(situation, target=CHANGED, **_look_at_changed(question, decide, situation))
            return replace(situation, **_look_at_mixed(question, decide, situation.wheel or AUTO))
        if previous is not None and plan.freshness.needs != "first":
            due = count_due_steps(planned) if plan.way.name == "install" else {"no_ninja": plan.way.because}
            return replace(situation, built=True, **due)
        if (planned.root / VERSION_FILE).exists():
            return replace(situation, in_way=VERSION_FILE)
        return replace(situation, **_look_at_nearest(planned, question.request))
    return replace(situation, no_wheel="git cannot say what has changed")


def _compare_overlay(planned: Planned, inputs: Any) -> dict[str, Any]:
    commit = (*str(inputs.get("wheel versions", "")).split(), "", "", "")[2]
    change = look_at_change(planned, commit) if is_commit(commit) else None
    versions = [str(each.get("python", "")).rpartition(" ")[2] for each in (inputs, planned.plan.inputs)]
    if change is None or change.ahead is None or versions[0] != versions[1]:
        other = "for another Python" if versions[0] != versions[1] else "of a commit that is not an ancestor"
        moved = Reached(path=f"all (the wheel in this checkout is {other})", kind="build", part="the build")
        return {"reached": (moved,)}
    recorded = read_json(last_manifest(planned.build_dir)).get("request", {}).get("from_wheel") or AUTO
    return {"reached": change.reached, "wheel": recorded if place_of(recorded) else AUTO}


def _look_at_mixed(question: Question, decide: Decide, wheel: str) -> dict[str, Any]:
    """Return the steps due for torch_python, if it was compiled against this wheel with the same settings."""
    if lack := why_no_mixed_build(question.facts):
        return {"no_mixing": lack}
    planned, obstacle = _plan_mixed(question, decide, wheel, PYTHON_PART)
    ran = read_json(last_manifest(planned.build_dir)).get("commands", ())
    if not any(each["argv"][-1] == PYTHON_PART for each in ran):  # CMake's settings were found alike before
        return {}
    if obstacle:
        return {"no_mixing": obstacle}
    return _count_mixed(planned, PYTHON_PART)


def _count_mixed(planned: Planned, *targets: str) -> dict[str, Any]:
    due = count_due_steps(planned, *targets)
    return {"mixed": "steps" in due, "no_mixing": due.get("no_ninja", ""), **due}


def _plan_mixed(question: Question, decide: Decide, wheel: str, target: str) -> tuple[Planned, str]:
    """Return the plan of a mixed build, and why it cannot continue the one in the checkout ("" if it can)."""
    request = dataclasses.replace(question.request, auto=False, from_wheel=wheel, target=target)
    question = replace(question, request=request)
    planned = Planned(question=question, plan=decide(question))
    if planned.plan.verdict == "refuse":
        what = target if target == PYTHON_PART else "what has changed"
        return planned, f"a compile of {what} cannot work here"
    fresh = planned.plan.freshness
    return planned, fresh.because if fresh.needs != "nothing" else ""


def _look_at_changed(question: Question, decide: Decide, situation: Situation) -> dict[str, Any]:
    """Return the steps due for the libraries that the change reaches, if some were compiled here before."""
    planned, obstacle = _plan_mixed(question, decide, situation.wheel or AUTO, CHANGED)
    if obstacle or not (planned.build_dir / BUILD_FILE).is_file():
        return {"no_mixing": obstacle} if obstacle else {}
    inputs = question.facts.tree.previous.inputs if question.facts.tree.previous else {}
    named = Path(situation.wheel)
    found = (
        find_named_wheels(planned, named)
        if situation.wheel and named.exists()
        else local_wheels(planned, question.request.wheels, [])
    )
    wheel = next((each for each in found if inputs["wheel"].startswith(f"{each.file} ")), None)
    if wheel is None:
        return {"no_mixing": "the wheel in this checkout is no longer found"}
    spread, findings = check_change(planned, wheel, parse_json(inputs[SETTINGS].encode()), situation.reached)
    if findings:
        return {"no_mixing": findings[0].text}
    if replaced_files(spread, wheel, situation.reached) != parse_json(inputs.get(COMPILED, "[]")):
        return {"mixed": True}
    due = [output for part in spread.due for output in part.files]
    return _count_mixed(planned, "-f", BUILD_FILE, *due) if due else {"mixed": True, "steps": 0}


def _look_at_nearest(planned: Planned, request: BuildRequest) -> dict[str, Any]:
    differing: tuple[Reached, ...] = ()
    for wheel in local_wheels(planned, request.wheels, []):
        problem = check_wheel(planned, wheel)
        if not problem:
            return {"wheel": wheel.path, "wheel_size": sum(member.size for member in wheel.members)}
        if isinstance(problem, tuple) and not differing:
            differing = look_at_change(planned, wheel.commit).reached
    if differing:
        return {"reached": differing}
    release = nearest_release(planned)
    if release is None:
        return {"no_wheel": "none is here, and no release's tag is an ancestor of this commit"}
    version, reached = release
    if request.offline and not reached:
        return {"no_wheel": f"that of the release {version} would be downloaded"}
    return {"wheel": AUTO, "reached": reached}
