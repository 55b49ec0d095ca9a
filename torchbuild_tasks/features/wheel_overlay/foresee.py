"""Say beforehand what `--from-wheel` and `--auto` would do: nothing is downloaded, nothing is written."""

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
    is_version,
    lacks_mixing,
    promise,
    wheel_inputs,
)
from torchbuild_tasks.features.wheel_overlay.find import (
    AUTO,
    Scene,
    check_wheel,
    find_named_wheels,
    indexed_version,
    local_wheels,
    look_at_change,
    look_at_due,
    nearest_release,
    release_of,
    stand_against,
)
from torchbuild_tasks.features.wheel_overlay.mixed import BUILD_FILE, hold_change, replaced_files
from torchbuild_tasks.model import BuildPlan, Choice, Finding
from torchbuild_tasks.model.wheel import Wheel
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.values import parse_json, replace

Decide = Callable[[Question], BuildPlan]
_LATER: Final = "what it is built from is seen when it is downloaded, and held to the checkout then"


# ---------------- plan --from-wheel, build --from-wheel --dry-run


def foresee(question: Question, plan: BuildPlan) -> BuildPlan:
    """Return the plan with the wheel that would be taken, or what stands against it."""
    scene = Scene(plan=plan, facts=question.facts, catalog=question.catalog)
    word = str(question.request.from_wheel)
    path = Path(word).expanduser()
    if word == AUTO:
        return _foresee_auto(scene, question.request.wheels)
    if path.exists():
        return _foresee_local(scene, find_named_wheels(scene, path), word)
    if is_version(word) or urlsplit(word).scheme.lower() in ("http", "https", "file"):
        return _with(plan, Choice(name="wheel", value=word, because=_LATER, source="flag"))
    text = f"--from-wheel {word}: that is neither a file, a folder, an address nor a version"
    return _refuse(plan, Finding(id="from-wheel", status="error", text=text))


def _foresee_auto(scene: Scene, wheels: str | None) -> BuildPlan:
    for wheel in local_wheels(scene, wheels, []):
        if not check_wheel(scene, wheel):
            return _plan_with_wheel(scene, wheel)
    release = nearest_release(scene)
    if release is None:
        return _with(
            scene.plan,
            Choice(name="wheel", value=indexed_version(release_of(scene), scene.plan), because=_LATER),
        )
    version, reached = release
    if against := stand_against(scene, reached):
        return _refuse(scene.plan, *against)
    because = f"{_differs(scene.plan)} differs from this release; it would be downloaded"
    return _with(
        scene.plan, Choice(name="wheel", value=indexed_version(version, scene.plan), because=because)
    )


def _foresee_local(scene: Scene, wheels: list[Wheel], word: str) -> BuildPlan:
    findings: list[Finding] = []
    for wheel in wheels:
        problem = check_wheel(scene, wheel)
        if not problem:
            return _plan_with_wheel(scene, wheel)
        text = f"{wheel.file}: {problem}"
        findings += (
            problem if isinstance(problem, tuple) else (Finding(id="from-wheel", status="error", text=text),)
        )
    none = Finding(id="from-wheel", status="error", text=f"no wheel of torch is in {word}")
    return _refuse(scene.plan, *(findings or [none]))


def _plan_with_wheel(scene: Scene, wheel: Wheel) -> BuildPlan:
    inputs = wheel_inputs(wheel, identify(wheel))
    expectations = promise(
        scene.catalog.check, scene.plan.expectations, inputs, sample=scene.facts.tree.sample
    )
    plan = replace(scene.plan, expectations=expectations)
    ahead = look_at_change(scene, Git(folder=scene.root), wheel.commit).ahead or 0
    because = f"built from {describe_distance(ahead)} ({wheel.commit[:10]}), and {_differs(plan)} differs"
    return _with(plan, Choice(name="wheel", value=wheel.path, because=because))


def _differs(plan: BuildPlan) -> str:
    if plan.way.target == CHANGED:
        return "nothing that code is generated from, and nothing of the build's own files,"
    return f"nothing but {PYTHON_PART}" if plan.way.target else "nothing that is compiled"


def _with(plan: BuildPlan, choice: Choice) -> BuildPlan:
    return replace(plan, choices=(*plan.choices, choice))


def _refuse(plan: BuildPlan, *findings: Finding) -> BuildPlan:
    return replace(plan, verdict="refuse", findings=(*plan.findings, *findings))


# ---------------- build --auto


def settle_auto(question: Question, decide: Decide, store: Path, report: Reporter) -> Question:
    """Choose the cheapest right way, say it in one line, and return the question that leads there."""
    seen = look_at_situation(question, decide, store)
    offers = offer_ways(seen)
    chosen = choose_offer(offers)
    report.note(describe_offers(chosen, offers))
    takes_wheel = chosen.way in ("from-wheel", "mixed") or (chosen.way == "no-op" and seen.laid)
    word = seen.wheel if takes_wheel else None
    target = seen.target if word and seen.mixed and chosen.way != "from-wheel" else question.request.target
    # What is laid from a wheel knows no --watch: the front goes on with the request that it has.
    watch = question.request.watch and word is None
    request = dataclasses.replace(question.request, auto=False, from_wheel=word, target=target, watch=watch)
    return replace(question, request=request)


def look_at_situation(question: Question, decide: Decide, store: Path) -> Situation:
    """Return what the choice is made from; a git that cannot say leaves the compile."""
    plan = decide(question)
    scene = Scene(plan=plan, facts=question.facts, catalog=question.catalog)
    previous = question.facts.tree.previous
    refused = plan.verdict == "refuse"
    seen = Situation(
        decided=list_user_choices(question, plan),
        no_compile="a compile cannot work here: see `plan`" if refused else "",
    )
    if past := longest_build(store, scene.root):
        seen = replace(seen, full_seconds=past.seconds, step_seconds=past.seconds / past.steps)
    if not question.facts.tree.commit:
        return replace(seen, no_wheel="it is not a git checkout")
    with contextlib.suppress(TorchbuildError):
        if previous is not None and "wheel" in previous.inputs:
            seen = replace(seen, laid=True, **_compare_overlay(scene, previous.inputs))
            if previous.inputs.get(TARGET) == CHANGED:
                return replace(seen, **_look_at_changed(question, decide, seen))
            return replace(seen, **_look_at_mixed(question, decide, seen.wheel or AUTO))
        if previous is not None and plan.freshness.needs != "first":
            due = look_at_due(scene) if plan.way.name == "install" else {"no_ninja": plan.way.because}
            return replace(seen, built=True, **due)
        if (scene.root / VERSION_FILE).exists():
            return replace(seen, in_way=VERSION_FILE)
        return replace(seen, **_nearest(scene, question.request))
    return replace(seen, no_wheel="git cannot say what has changed")


def _compare_overlay(scene: Scene, inputs: Any) -> dict[str, Any]:
    commit = (*str(inputs.get("wheel versions", "")).split(), "", "", "")[2]
    change = look_at_change(scene, Git(folder=scene.root), commit) if is_commit(commit) else None
    versions = [str(each.get("python", "")).rpartition(" ")[2] for each in (inputs, scene.plan.inputs)]
    if change is None or change.ahead is None or versions[0] != versions[1]:
        other = "for another Python" if versions[0] != versions[1] else "of a commit that is not an ancestor"
        moved = Reached(path=f"all (the wheel that lies here is {other})", kind="build", part="the build")
        return {"reached": (moved,)}
    recorded = read_json(last_manifest(scene.build_dir)).get("request", {}).get("from_wheel") or AUTO
    word = recorded if is_version(recorded) or "://" in recorded or Path(recorded).exists() else AUTO
    return {"reached": change.reached, "wheel": word}


def _look_at_mixed(question: Question, decide: Decide, wheel: str) -> dict[str, Any]:
    """Return what is due for torch_python, where one was compiled against this wheel by the same settings."""
    if lack := lacks_mixing(question.facts):
        return {"no_mixing": lack}
    scene, against = _plan_mixed(question, decide, wheel, PYTHON_PART)
    ran = read_json(last_manifest(scene.build_dir)).get("commands", ())
    if not any(each["argv"][-1] == PYTHON_PART for each in ran):  # CMake's settings were found alike before
        return {}
    if against:
        return {"no_mixing": against}
    due = look_at_due(scene, PYTHON_PART)
    return {"mixed": "steps" in due, "no_mixing": due.get("no_ninja", ""), **due}


def _plan_mixed(question: Question, decide: Decide, wheel: str, target: str) -> tuple[Scene, str]:
    """Return the plan that compiles this against a wheel, and why it cannot go on from what lies here."""
    request = dataclasses.replace(question.request, auto=False, from_wheel=wheel, target=target)
    scene = Scene(
        plan=decide(replace(question, request=request)), facts=question.facts, catalog=question.catalog
    )
    if scene.plan.verdict == "refuse":
        return (
            scene,
            f"a compile of {target if target == PYTHON_PART else 'what has changed'} cannot work here",
        )
    return scene, scene.plan.freshness.because if scene.plan.freshness.needs != "nothing" else ""


def _look_at_changed(question: Question, decide: Decide, seen: Situation) -> dict[str, Any]:
    """Return what is due of the libraries that the change reaches, where some were compiled here before."""
    scene, against = _plan_mixed(question, decide, seen.wheel or AUTO, CHANGED)
    if against or not (scene.build_dir / BUILD_FILE).is_file():
        return {"target": CHANGED, **({"no_mixing": against} if against else {})}
    inputs = question.facts.tree.previous.inputs if question.facts.tree.previous else {}
    named = Path(seen.wheel)
    found = (
        find_named_wheels(scene, named)
        if seen.wheel and named.exists()
        else local_wheels(scene, question.request.wheels, [])
    )
    wheel = next((each for each in found if inputs["wheel"].startswith(f"{each.file} ")), None)
    if wheel is None:
        return {"target": CHANGED, "no_mixing": "the wheel that lies here is no longer found"}
    spread, findings = hold_change(scene, wheel, parse_json(inputs[SETTINGS].encode()), seen.reached)
    if findings:
        return {"target": CHANGED, "no_mixing": findings[0].text}
    if replaced_files(spread, wheel, seen.reached) != parse_json(inputs.get(COMPILED, "[]")):
        return {"target": CHANGED, "mixed": True}
    due = [output for part in spread.due for output in part.files]
    steps = look_at_due(scene, "-f", BUILD_FILE, *due) if due else {"steps": 0}
    return {"target": CHANGED, "mixed": "steps" in steps, "no_mixing": steps.get("no_ninja", ""), **steps}


def _nearest(scene: Scene, request: BuildRequest) -> dict[str, Any]:
    differing: tuple[Reached, ...] = ()
    for wheel in local_wheels(scene, request.wheels, []):
        problem = check_wheel(scene, wheel)
        if not problem:
            return {"wheel": wheel.path, "wheel_size": sum(member.size for member in wheel.members)}
        if isinstance(problem, tuple) and not differing:
            differing = look_at_change(scene, Git(folder=scene.root), wheel.commit).reached
    if differing:
        return {"reached": differing}
    release = nearest_release(scene)
    if release is None:
        return {"no_wheel": "none is here, and no release's tag is an ancestor of this commit"}
    version, reached = release
    if request.offline and not reached:
        return {"no_wheel": f"that of the release {version} would be downloaded"}
    return {"wheel": AUTO, "reached": reached}
