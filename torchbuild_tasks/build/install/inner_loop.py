"""Choose the shortest correct route from an edit to an importable torch, of those that the plan permits.

Without the Python front end: Ninja, then CMake's own install into the folder of the editable install. The
front end runs if the plan requires it, if the install was changed since, and after an install that changed
files which only the front end copies or lists.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build import ownership
from torchbuild_tasks.build.install import snapshot
from torchbuild_tasks.build.install.due import SOURCES, Due, Snapshot, find_due, why_front_end
from torchbuild_tasks.build.install.early import DRY, take_answer
from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.model import Command
from torchbuild_tasks.ninja.build_file import Step, find_step
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.plan.install import front_end_rows
from torchbuild_tasks.system import process
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.values import replace

_SECOND: Final = 1_000_000_000  # ns
# Seconds by which a file's time may be behind the clock: Linux takes that of its last tick, 1 to 10 ms ago
# (ktime_get_coarse_real_ts64() in current_time(); the kernel's commit d651d1607f22 says why).
_TICK: Final = 0.02
UP_TO_DATE: Final = b"ninja: no work to do"
_GRAPH: Final = 256 << 20  # bytes; 2.6.0 has 10 MB
_STEP: Final = re.compile(rb"(?m)^\[\d+/\d+\] (.*?)\r?$")

_NEWER: Final = re.compile(
    rb"(?m) older than most recent input (.+) \(-?\d+ vs -?\d+\)\r?$"
)  # of Ninja 1.11 to 1.13
_AHEAD: Final = 5.0  # seconds; file systems keep times no finer than two
_NAMED: Final = 20  # files in a command


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Commands to run one after the other, by the Python front end or without it.

    Without it `before` is the snapshot after the last complete install.
    """

    commands: tuple[Command, ...]
    front_end: bool
    before: Snapshot = msgspec.field(default_factory=Snapshot)


def choose_route(work: Work) -> Route | None:
    """Return the commands to run, None if there are none; a note names the route and its reason."""
    way = work.plan.way
    if way.name == "front end" or way.ninja is None:
        return _front_end(work, way.because)
    try:
        with ThreadPoolExecutor(1) as beside:  # Ninja in this thread, to which Ctrl-C is delivered
            look = beside.submit(_look_at_install, work)
            is_idle = _is_idle(work, way.ninja)
        found = look.result()
    except OSError as error:
        return _front_end(work, f"the install scripts cannot be read: {error}")
    if found is None:
        return _front_end(work, "it is not known what the last install put in place")
    before, due = found
    if due.front_end:
        return _front_end(work, due.front_end)
    if is_idle and not (due.cmake or due.install):
        return None
    return _ninja(work, way.ninja, due, before)


def confirm_route(work: Work, route: Route) -> Route:
    """Return the route, or the front end if CMake's cache was set aside: only that creates it again."""
    if route.front_end or (work.build_dir / "CMakeCache.txt").exists():
        return route
    return _front_end(work, "CMake has to be run again")


def next_route(work: Work, route: Route) -> Route | None:
    """Return None if torch is installed after a route, else the front end, which turned out to be needed."""
    if route.front_end:
        _save_snapshot(work)
        return None
    reason = why_front_end(
        route.before, snapshot.take(_places(work), route.before), lists_modules=_lists_modules(work)
    )
    if reason:
        return _front_end(work, reason)
    _save_snapshot(work)
    return None


def _front_end(work: Work, because: str) -> Route:
    work.report.note(f"by setup.py or pip: {because}")
    wait_for_next_second(snapshot.read(work.build_dir))
    snapshot.forget(work.build_dir)
    return Route(commands=(work.plan.compile,), front_end=True)


def _ninja(work: Work, ninja: Command, due: Due, before: Snapshot) -> Route:
    reasons = "; ".join(filter(None, (due.cmake, due.install))) or work.plan.way.because
    by = "by CMake, Ninja and install" if due.cmake else "by Ninja and install"
    work.report.note(f"{by}: {reasons}")
    wait_for_next_second(before)
    install = replace(ninja, argv=(*ninja.argv, "install"))
    cmake = Command(argv=("cmake", str(work.build_dir)), cwd=ninja.cwd, because=due.cmake)
    return Route(commands=(cmake, install) if due.cmake else (install,), front_end=False, before=before)


def wait_for_next_second(before: Snapshot | None) -> None:
    """Wait until the clock has left the second in which the newest installed file was written.

    CMake's install gives a copy the time of its source in whole seconds, and skips a source with an equal
    time, whatever its size (file(INSTALL) of CMake 3.25.1 and 4.4.4, tried): the old copy would stay.
    """
    newest = max((changed for _, changed in before.sources.values()), default=0) if before else 0
    remaining = newest // _SECOND + 1 - time.time()
    if 0 < remaining <= 1:  # not for a time in the future
        time.sleep(remaining + _TICK)


def _save_snapshot(work: Work) -> None:
    """Save a snapshot of the install for the next build; only builds by Ninja read it."""
    if work.plan.mode != "develop" or not (work.build_dir / "build.ninja").exists():
        return
    try:
        now = snapshot.take(_places(work))
    except OSError as error:
        work.report.note(f"The next build is by setup.py or pip again: {error}")
        return
    from torchbuild_tasks.features.manifest.choose import conceal_inputs

    snapshot.write(work.build_dir, now, conceal_inputs(work.plan.inputs))


def _lists_modules(work: Work) -> bool:
    return work.plan.era == "scikit-build-core"


def _places(work: Work) -> snapshot.Places:
    outputs = patterns(work.catalog, work.plan.era).below(ownership.within(work.root, work.build_dir))

    def paths(role: str) -> tuple[str, ...]:
        return tuple(row.path for row in front_end_rows(work.question, role))

    return snapshot.Places(
        root=work.root,
        build_dir=work.build_dir,
        generated=paths("makes"),
        copied=paths("carries"),
        sources=paths("holds"),
        is_source=lambda name: name.endswith((*SOURCES, ".py")),
        is_output=outputs.matches,
    )


def _look_at_install(work: Work) -> tuple[Snapshot, Due] | None:
    """Return the snapshot after the last complete install, and what is due since; None without one."""
    before = snapshot.read(work.build_dir)
    if before is None:
        return None
    return before, find_due(before, snapshot.take(_places(work), before), lists_modules=_lists_modules(work))


def _is_idle(work: Work, ninja: Command) -> bool:
    """Say whether Ninja would compile, link and configure nothing.

    Steps that run at every build, such as PyTorch's writing of torch/version.py, are run
    and do not count, unless something follows from them. One alone, from which nothing can follow,
    is run without Ninja, which would read the whole graph again (0.18 s of 2.6.0).
    """
    began = time.time_ns()
    dry = take_answer(ninja.argv, work.build_dir, work.env)
    if dry is None:
        dry = process.capture((*ninja.argv, *DRY), env=work.environ, cwd=ninja.cwd)
    if dry.rc == 0 and UP_TO_DATE in dry.stdout:
        return True
    if dry.rc != 0 or _builds(dry.stdout):
        if ahead := _dated_ahead(work, dry.stderr):
            work.report.note(ahead)
        return False
    step = _single_step(work, dry.stdout)
    if step:
        shell = step.command if work.facts.host.os == "windows" else ("/bin/sh", "-c", step.command)
        written = ownership.read_outputs(work.build_dir, step.outputs)
        captured = process.capture(shell, env=work.environ, cwd=work.build_dir)
        if not ownership.put_times_back(work.root, written):
            ownership.renew(work.root, began, written)
    else:
        captured = process.capture(ninja.argv, env=work.environ, cwd=ninja.cwd)
        ownership.renew(work.root, began)
    return captured.rc == 0 and (step is not None or not _builds(captured.stdout))


def _dated_ahead(work: Work, explained: bytes) -> str:
    """Return a warning about inputs dated in the future, which are newer than all that is made of them."""
    files = {work.build_dir / os.fsdecode(name) for name in _NEWER.findall(explained)}
    ahead = sorted(os.path.normpath(file) for file in files if _changed(file) > time.time() + _AHEAD)
    if not ahead:
        return ""
    more = f" and {len(ahead) - 1} more are" if len(ahead) > 1 else " is"
    then = "save each anew" if work.facts.host.os == "windows" else shlex.join(("touch", *ahead[:_NAMED]))
    return (
        f"Warning: {ahead[0]}{more} dated in the future, so what is made of it is made again at every build. "
        f"Put the clock right; then: {then}"
    )


def _changed(file: Path) -> float:
    with contextlib.suppress(OSError):
        return file.stat().st_mtime
    return 0.0


def _single_step(work: Work, dry: bytes) -> Step | None:
    """Return the step of a dry run, to be run as Ninja runs it; None if it lists several steps.

    A dry run also lists every dependent of a step, because `restat` has no effect in it
    (Builder::FinishCommand of Ninja 1.13.2). So a step listed alone has no dependents.
    """
    steps = _STEP.findall(dry)
    if len(steps) != 1 or not steps[0]:
        return None
    try:
        graph = read_bytes(work.build_dir / "build.ninja", most=_GRAPH)
    except OSError:
        return None
    return find_step(graph, steps[0].decode(errors="surrogateescape"))


def _builds(output: bytes) -> bool:
    parser = ProgressParser()
    steps = [parser.feed(line) for line in output.decode(errors="replace").splitlines()]
    return any(step is not None and step.phase != "codegen" for step in steps)
