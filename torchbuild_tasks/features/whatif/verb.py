"""`plan --what-if`: simulate the build of this tree under other conditions; nothing is run or written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.features.whatif.choose import Answer, Tree
    from torchbuild_tasks.model import BuildPlan
    from torchbuild_tasks.model.history import History
    from torchbuild_tasks.options import BuildRequest
    from torchbuild_tasks.plan.question import Question

# Ninja 1.12 writes logs of version 6, and is the first to start steps on the critical path first.
_BY_CHAINS: Final = 6


def foresee(request: BuildRequest, text: str) -> Outcome:
    """Simulate the build as it is, and under the named conditions.

    Args:
        request: the flags of `plan`.
        text: the value of --what-if.
    """
    from torchbuild_tasks.context import decide, look, require_checkout
    from torchbuild_tasks.features.whatif.choose import answer, parse_scenario, scenario_here

    question = look(request, everything=False)
    parse_scenario(text, scenario_here(question))  # report a wrong word before a missing tree
    root = require_checkout(question)
    plan = decide(question)
    choices = {choice.name: choice.value for choice in plan.choices}
    result = answer(question, read_tree(question, plan, root), choices, text)
    return Outcome({"what_if": result}, "" if request.json else _text(result))


def _text(answer: Answer) -> str:
    from torchbuild_tasks.features.whatif.show import answer_text

    return answer_text(answer)


def read_tree(question: Question, plan: BuildPlan, root: Path) -> Tree:
    """Return the input of a simulation from the build tree of a plan.

    Raises:
        UsageError: it was not configured, or not for Ninja, or its build.ninja is damaged.
    """
    from torchbuild_tasks.build.history import NINJA_LOG, read_build_file, read_ninja_log, recall
    from torchbuild_tasks.errors import UsageError
    from torchbuild_tasks.features.whatif.choose import Tree
    from torchbuild_tasks.ninja.log import last_run
    from torchbuild_tasks.ninja.step_times import compiler_of
    from torchbuild_tasks.ninja.timeline import wall_seconds

    folder = Path(plan.build_dir)
    store = question.facts.store
    compiler = compiler_of({choice.name: choice.value for choice in plan.choices})
    history = recall(Path(store.folder if store else root), root, compiler)
    try:
        file = read_build_file(folder)
    except (OSError, ValueError, RecursionError) as problem:
        why = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        raise UsageError(
            f"There is no graph of Ninja to simulate: {why}.",
            looked=(f"what the build consists of: {folder / 'build.ninja'}", *_say_remembered(history)),
            next_step="Building one small target makes it: torchbuild build --target c10",
        ) from None
    if not (folder / NINJA_LOG).exists():
        return Tree(file=file, history=history)
    log = read_ninja_log(folder)
    last = last_run(log)
    wall = wall_seconds(last.steps) if last else 0.0
    return Tree(
        file=file,
        history=history,
        logged={name: step.seconds for run in log.runs for step in run.steps for name in step.outputs},
        at_once=sum(step.seconds for step in last.steps) / wall if last and wall else 0.0,
        chains=log.version >= _BY_CHAINS,
    )


def _say_remembered(history: History) -> tuple[str, ...]:
    """Return the history of builds as text, without a graph for a simulation."""
    from torchbuild_tasks.text.show import took

    return tuple(
        f"the builds before: {build.steps:,} steps in {took(build.seconds)}, together {took(build.work)}"
        for build in history.builds[:1]
    )
