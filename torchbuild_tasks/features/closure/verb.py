"""`verify --closure`: list every library that `import torch` loads, and where it is found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchbuild_tasks.errors import VerifyFailed
from torchbuild_tasks.features.closure.choose import searched_text
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.text.show import columns
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.model.closure import Break, Closure

_MARK = {"error": "x", "warn": "!"}


def closure_text(closure: Closure) -> str:
    """Return one line for each library in the order of loading; then the breaks with chain and fix."""
    if closure.problem:
        return f"Nothing to follow: {closure.problem}.\n"
    shown = [each for each in closure.libraries if each.state not in ("api set", "on demand")]
    rows = [(each.name, each.path or "-", each.how or each.state) for each in shown]
    breaks = "".join(line for each in closure.breaks for line in _lines(each))
    return f"What `import torch` of {closure.python} loads:\n{columns(rows)}{breaks}{_total(closure)}"


def _lines(broken: Break) -> Iterable[str]:
    yield f"{_MARK[broken.status]} {broken.text}\n"
    for depth, path in enumerate(broken.chain):
        yield f"    {'  ' * depth}{path}\n"
    if broken.looked:
        yield f"  looked in: {searched_text(broken)}\n"
    if broken.fix:
        yield f"  -> {broken.fix}\n"


def _total(closure: Closure) -> str:
    states = [each.state for each in closure.libraries]
    words = [f"{states.count('found')} libraries found"]
    words += [f"{states.count(state)} {text}" for state, text in _OTHERS.items() if state in states]
    errors = sum(broken.status == "error" for broken in closure.breaks)
    verdict = f"{errors} will keep it from loading" if errors else "it closes"
    return f"{', '.join(words)}: {verdict}. It took {closure.seconds:.1f} s.\n"


_OTHERS = {
    "missing": "missing",
    "damaged": "damaged",
    "other machine": "for another processor",
    "api set": "API sets of Windows",
    "on demand": "only on demand",
}


def list_libraries(request: BuildRequest) -> Outcome:
    """List every library that `import torch` loads and its path, without loading any."""
    import os

    from torchbuild_tasks.features.closure.act import find_closure
    from torchbuild_tasks.flow import plan_of_built
    from torchbuild_tasks.system.signals import interruptible

    with interruptible():
        _, plan = plan_of_built(request)
        closure = find_closure(plan.environment.python, os.environ)
    broken = closure.problem or any(each.status == "error" for each in closure.breaks)
    return Outcome(closure, closure_text(closure), VerifyFailed.exit_code if broken else 0)
