"""The shortest correct way from an edit to an importable torch; the plan has said which are open.

Round the front end: Ninja, then CMake's own install into the place that the editable install
reads from. What was in place after the last complete install is compared with what is there
now, so that a library that was removed or replaced comes back, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from torchbuild_tasks.core.outputs import patterns
from torchbuild_tasks.core.placed import SOURCES, Due, due, left_over
from torchbuild_tasks.effects import owned, placed
from torchbuild_tasks.model import Command
from torchbuild_tasks.model.placed import Placed
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.plan.install import front_end_rows
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.stages.work import Work
from torchbuild_tasks.system import process
from torchbuild_tasks.values import replace

T = TypeVar("T")
UP_TO_DATE: Final = b"ninja: no work to do"


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Commands to run one after the other; `round_it` means without the front end, from `before`."""

    commands: tuple[Command, ...]
    round_it: bool = False
    before: Placed = msgspec.field(default_factory=Placed)


def first_route(work: Work) -> Route | None:
    """What is to be run; None when nothing is. Says in a line which way is taken, and why."""
    way = work.plan.way
    if way.name == "front end" or way.ninja is None:
        return _front_end(work, way.because)
    ninja = way.ninja
    try:
        dry, looks = _both(lambda: _dry_run(work, ninja), lambda: _looks(work))
    except OSError as error:
        return _front_end(work, f"the install scripts cannot be read: {error}")
    if looks is None:
        return _front_end(work, "it is not known what the last install put in place")
    before, now = looks
    found = due(before, now, lists_modules=_lists_modules(work))
    if found.front_end:
        return _front_end(work, found.front_end)
    if dry == "idle" and not (found.cmake or found.install):
        return None
    return _round(work, ninja, found, before)


def still_open(work: Work, route: Route) -> Route:
    """The route, or the front end where CMake's memory was set aside: only that fills it anew."""
    if not route.round_it or (work.build_dir / "CMakeCache.txt").exists():
        return route
    return _front_end(work, "CMake has to be run anew")


def next_route(work: Work, route: Route) -> Route | None:
    """After a route was run: None when torch is in place, else the front end, which is needed after all."""
    if not route.round_it:
        _remember(work)
        return None
    reason = left_over(
        route.before, placed.look(_where(work), route.before), lists_modules=_lists_modules(work)
    )
    if reason:
        return _front_end(work, reason)
    _remember(work)
    return None


def _front_end(work: Work, because: str) -> Route:
    work.report.note(f"by the Python front end: {because}")
    placed.forget(work.build_dir)
    return Route(commands=(work.plan.compile,))


def _round(work: Work, ninja: Command, found: Due, before: Placed) -> Route:
    reasons = "; ".join(filter(None, (found.cmake, found.install))) or work.plan.way.because
    by = "by CMake, Ninja and install" if found.cmake else "by Ninja and install"
    work.report.note(f"{by}: {reasons}")
    install = replace(ninja, argv=(*ninja.argv, "install"))
    cmake = Command(argv=("cmake", str(work.build_dir)), cwd=ninja.cwd, because=found.cmake)
    return Route(commands=(cmake, install) if found.cmake else (install,), round_it=True, before=before)


def _remember(work: Work) -> None:
    """What is in place now, for the next build; without Ninja nobody would ask."""
    if work.plan.mode != "develop" or not (work.build_dir / "build.ninja").exists():
        return
    try:
        now = placed.look(_where(work))
    except OSError as error:
        work.report.note(f"The next build goes by the front end again: {error}")
        return
    from torchbuild_tasks.core.manifest.secrets import conceal_inputs

    placed.write(work.build_dir, now, conceal_inputs(work.plan.inputs))


def _lists_modules(work: Work) -> bool:
    return work.plan.era == "scikit-build-core"


def _where(work: Work) -> placed.Where:
    question = Question(work.request, work.facts, work.catalog)
    outputs = patterns(work.catalog, work.plan.era).below(owned.within(work.root, work.build_dir))

    def paths(role: str) -> tuple[str, ...]:
        return tuple(row.path for row in front_end_rows(question, role))

    return placed.Where(
        root=work.root,
        build_dir=work.build_dir,
        makes=paths("makes"),
        carries=paths("carries"),
        holds=paths("holds"),
        counts=lambda name: name.endswith((*SOURCES, ".py")),
        ignored=outputs.matches,
    )


def _looks(work: Work) -> tuple[Placed, Placed] | None:
    """What the last complete install left, and what is there now; None when the first is not known."""
    before = placed.read(work.build_dir)
    return None if before is None else (before, placed.look(_where(work), before))


def _dry_run(work: Work, ninja: Command) -> str:
    """ "idle" when Ninja would compile, link and configure nothing, else "busy".

    Steps that run at every build, such as PyTorch's writing of torch/version.py, are run
    and do not count, unless something follows from them.
    """
    dry = process.capture((*ninja.argv, "-n"), env=work.environ, cwd=ninja.cwd)
    if dry.rc == 0 and UP_TO_DATE in dry.stdout:
        return "idle"
    if dry.rc != 0 or _builds(dry.stdout):
        return "busy"
    done = process.capture(ninja.argv, env=work.environ, cwd=ninja.cwd)
    return "idle" if done.rc == 0 and not _builds(done.stdout) else "busy"


def _builds(said: bytes) -> bool:
    parser = ProgressParser()
    steps = [parser.feed(line) for line in said.decode(errors="replace").splitlines()]
    return any(step is not None and step.phase != "codegen" for step in steps)


def _both(one: Callable[[], str], other: Callable[[], T]) -> tuple[str, T]:
    """Both at once: while Ninja works, this process has nothing else to do.

    The second runs in a thread, for Ctrl-C comes to the first. Raises what either raises.
    """
    found: list[T] = []
    failed: list[OSError] = []

    def run() -> None:
        try:
            found.append(other())
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="what is in place")
    thread.start()
    try:
        answer = one()
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return answer, found[0]
