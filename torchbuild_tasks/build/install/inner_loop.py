"""The shortest correct way from an edit to an importable torch; the plan has said which are open.

Round the front end: Ninja, then CMake's own install into the place that the editable install
reads from. What was in place after the last complete install is compared with what is there
now, so that a library that was removed or replaced comes back, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from torchbuild_tasks.build import owned
from torchbuild_tasks.build.install.installed import SOURCES, Due, Folder, Placed, Stamp, due, left_over
from torchbuild_tasks.build.install.rules import Rule, read_manifest, read_rules
from torchbuild_tasks.build.outputs import patterns
from torchbuild_tasks.build.work import Work
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.model import Command
from torchbuild_tasks.ninja.progress import ProgressParser
from torchbuild_tasks.plan.install import front_end_rows
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import unlink, write_atomic
from torchbuild_tasks.values import replace

INSTALL_FILE: Final = "torchbuild-install.json"
PLACED_FILE: Final = "torchbuild-placed.json"
SCHEMA: Final = 1


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look: the checkout, the build tree, and patterns relative to the checkout.

    `counts` says of a file's name whether it is a source; `ignored` of a path whether a build made it.
    """

    root: Path
    build_dir: Path
    makes: tuple[str, ...]
    carries: tuple[str, ...]
    holds: tuple[str, ...]
    counts: Callable[[str], bool]
    ignored: Callable[[str], bool]


def look(where: Where, before: Placed | None = None) -> Placed:
    """One look; folders that are as they were `before` are not read again.

    Raises:
        OSError: the install scripts of the build tree cannot be read.
    """
    known = before.folders if before else {}
    return Placed(
        installed=_stamps(read_manifest(where.build_dir)),
        sources=dict(_sources(read_rules(where.build_dir))),
        made=_stamps(_found(where, where.makes)),
        carried={path: _digest(Path(path)) for path in _found(where, where.carries)},
        folders=dict(_folders(where, known)),
    )


def _found(where: Where, patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        start, _, rest = pattern.partition("/")
        folder, name = (where.build_dir, rest) if start == "build" else (where.root, pattern)
        yield from sorted(str(path) for path in folder.glob(name))


def _stamps(paths: Iterable[str]) -> dict[str, Stamp]:
    found: dict[str, Stamp] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            info = os.stat(path)  # noqa: PTH116 - thousands of them at every build
            found[path] = (info.st_size, info.st_mtime_ns)
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _sources(rules: Iterable[Rule]) -> Iterator[tuple[str, Stamp]]:
    for rule in rules:
        wanted, excluded = _either(rule.wanted), _either(rule.excluded)
        for source in rule.sources:
            try:
                info = os.stat(source)  # noqa: PTH116
            except OSError:
                continue  # OPTIONAL, or CMake says so itself
            if not stat.S_ISDIR(info.st_mode):
                yield source, (info.st_size, info.st_mtime_ns)
            else:
                yield from _inside(source.removesuffix("/.").rstrip("/"), wanted, excluded)


def _either(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    """CMake's regular expressions are nearly Python's; what is not is taken for everything."""
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else None
    except re.error:
        return None


def _inside(
    folder: str, wanted: re.Pattern[str] | None, excluded: re.Pattern[str] | None
) -> Iterator[tuple[str, Stamp]]:
    todo = [folder]
    while todo:
        for entry in _entries(todo.pop()):
            path = entry.path.replace("\\", "/")
            if excluded and excluded.search(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif wanted is None or wanted.search(path):
                with contextlib.suppress(OSError):
                    info = os.stat(entry.path)  # noqa: PTH116 - an entry of Windows knows old times
                    yield path, (info.st_size, info.st_mtime_ns)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _folders(where: Where, known: Mapping[str, Folder]) -> Iterator[tuple[str, Folder]]:
    todo = list(where.holds)
    while todo:
        path = todo.pop()
        place = f"{where.root}{os.sep}{path}"
        try:
            changed = os.stat(place).st_mtime_ns  # noqa: PTH116
        except OSError:
            continue
        folder = known.get(path)
        if folder is None or folder.changed != changed:
            folder = _folder(where, path, place, changed)
        yield path, folder
        todo += (f"{path}/{name}" for name in folder.folders)


def _folder(where: Where, path: str, place: str, changed: int) -> Folder:
    names, folders = [], []
    for entry in _entries(place):
        name = entry.name
        if entry.is_dir(follow_symlinks=False):
            if name != "__pycache__" and not where.ignored(f"{path}/{name}/x"):
                folders.append(name)
        elif where.counts(name) and not where.ignored(f"{path}/{name}"):
            names.append(name)
    return Folder(changed, tuple(sorted(names)), tuple(sorted(folders)))


# ---------------------------------------------------------------- the last look


def read(build_dir: Path) -> Placed | None:
    """The look after the last complete install; None when there is none that can be read."""
    try:
        data = json.loads((build_dir / PLACED_FILE).read_bytes())
        if data["schema"] != SCHEMA:
            return None
        return Placed(
            **{part: _tuples(data[part]) for part in ("installed", "sources", "made")},
            carried=data["carried"],
            folders={
                path: Folder(changed, tuple(names), tuple(folders))
                for path, (changed, names, folders) in data["folders"].items()
            },
        )
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _tuples(stamps: Mapping[str, list[int]]) -> dict[str, Stamp]:
    return {path: (size, changed) for path, (size, changed) in stamps.items()}


def write(build_dir: Path, placed: Placed, inputs: Mapping[str, str]) -> None:
    """Remember a complete install and the inputs that it was made from.

    Raises:
        BuildFailed: it cannot be written.
    """
    folders = {path: (each.changed, each.names, each.folders) for path, each in placed.folders.items()}
    data = {**_shallow(placed), "folders": folders, "schema": SCHEMA}
    write_atomic(build_dir / PLACED_FILE, json.dumps(data).encode(), error=BuildFailed)
    inputs_file = json.dumps({"schema": SCHEMA, "inputs": dict(inputs)}).encode()
    write_atomic(build_dir / INSTALL_FILE, inputs_file, error=BuildFailed)


def _shallow(placed: Placed) -> dict[str, object]:
    return {name: getattr(placed, name) for name in ("installed", "sources", "made", "carried")}


def forget(build_dir: Path) -> None:
    """Before the front end runs: what was in place is no longer known."""
    for name in (INSTALL_FILE, PLACED_FILE):
        with contextlib.suppress(OSError):
            unlink(build_dir / name, missing_ok=True)


# ----------------


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
    reason = left_over(route.before, look(_where(work), route.before), lists_modules=_lists_modules(work))
    if reason:
        return _front_end(work, reason)
    _remember(work)
    return None


def _front_end(work: Work, because: str) -> Route:
    work.report.note(f"by the Python front end: {because}")
    forget(work.build_dir)
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
        now = look(_where(work))
    except OSError as error:
        work.report.note(f"The next build goes by the front end again: {error}")
        return
    from torchbuild_tasks.features.manifest.choose import conceal_inputs

    write(work.build_dir, now, conceal_inputs(work.plan.inputs))


def _lists_modules(work: Work) -> bool:
    return work.plan.era == "scikit-build-core"


def _where(work: Work) -> Where:
    question = Question(work.request, work.facts, work.catalog)
    outputs = patterns(work.catalog, work.plan.era).below(owned.within(work.root, work.build_dir))

    def paths(role: str) -> tuple[str, ...]:
        return tuple(row.path for row in front_end_rows(question, role))

    return Where(
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
    before = read(work.build_dir)
    return None if before is None else (before, look(_where(work), before))


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
