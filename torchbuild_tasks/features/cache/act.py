"""The folder of a cache: whether it can be written, before hours of compiling depend on it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from torchbuild_tasks.errors import CleanRefused, Interrupted, UsageError
from torchbuild_tasks.features.cache import probe, stats
from torchbuild_tasks.features.cache import server as ccache
from torchbuild_tasks.features.cache import server as sccache
from torchbuild_tasks.features.cache.address import Remote, read_remotes, server_variables
from torchbuild_tasks.features.cache.choose import (
    CHOICE,
    HOW,
    PREFIXES,
    drift,
    drift_line,
    remembered,
)
from torchbuild_tasks.features.cache.probe import EVERY, Watch
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.model import BuildPlan, CachePlan, CacheReport, CacheState, CacheTool
from torchbuild_tasks.system.files import unlink, write_atomic
from torchbuild_tasks.system.remove import remove_tree, size_of
from torchbuild_tasks.values import replace

# Not in the cache's own folder: sccache takes every file there for an entry, and evicts it one day.


class Memory:
    """One JSON file; one that cannot be read or written only costs a warning that is not given."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: dict[str, list[dict[str, str]]] = {}
        self._made: list[str] = []
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
            data = json.loads(path.read_text("utf-8")) if path else {}
            self._seen = {str(k): [_texts(each) for each in v] for k, v in data.get("seen", {}).items()}
            self._made = [str(folder) for folder in data.get("made", [])]

    def seen(self, folder: Path) -> Sequence[Mapping[str, str]]:
        """Return the combinations of settings that builds have used with this folder, the newest last."""
        return self._seen.get(str(folder), [])

    def is_made(self, folder: Path) -> bool:
        """Return whether a build of ours made the folder, so that it may be emptied."""
        return str(folder) in self._made

    def keep(self, folder: Path, seen: Sequence[Mapping[str, str]], *, made: bool) -> None:
        """Remember; at once on disk."""
        self._seen[str(folder)] = [dict(each) for each in seen]
        if made and str(folder) not in self._made:
            self._made.append(str(folder))
        self._write()

    def forget(self, folder: Path) -> None:
        """After the folder was emptied: nothing it was filled with counts any more."""
        self._seen.pop(str(folder), None)
        self._write()

    def _write(self) -> None:
        if self._path is None:
            return
        text = json.dumps({"made": self._made, "seen": self._seen}, indent=1)
        with contextlib.suppress(OSError, UsageError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, text.encode(), error=UsageError)


def _texts(item: Mapping[str, object]) -> dict[str, str]:
    return {str(name): str(value) for name, value in item.items()}


# ----------------


# With less than this a cache would only evict, and the build needs the space itself.
LEAST: Final = 256 << 20


class Folder(msgspec.Struct, frozen=True, kw_only=True):
    """A folder as it was found: `made` by us just now, `filled` with anything; `problem` is why it is no use.

    `read_only` says that what is there can be used and nothing be added.
    """

    path: Path
    made: bool = False
    filled: bool = False
    read_only: bool = False
    problem: str = ""


def look_into(path: Path, least: int = LEAST) -> Folder:
    """Make the folder if it is not there, and write a byte into it.

    Args:
        path: the cache's folder.
        least: bytes that must be free on its disk.
    """
    there = path.is_dir()
    try:
        path.mkdir(parents=True, exist_ok=True)
        filled = any(path.iterdir())
    except OSError as error:
        return Folder(path=path, problem=f"{path}: {error.strerror or error}")
    try:
        _write(path)
        free = shutil.disk_usage(path).free
    except OSError as error:
        problem = f"{path}: {error.strerror or error}"
        return Folder(path=path, filled=filled, read_only=filled, problem=problem)
    if free < least:
        problem = f"{path}: only {free >> 20} MiB are free on its disk"
        return Folder(path=path, made=not there, filled=filled, read_only=filled, problem=problem)
    return Folder(path=path, made=not there, filled=filled)


def _write(folder: Path) -> None:
    """Write a whole block: a full disk still takes an empty file."""
    probe = folder / f".torchbuild-probe.{os.getpid()}"
    try:
        probe.write_bytes(b"\0" * 4096)
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


# ----------------
# the compiler cache beside a build: prepared before CMake, watched, counted and stopped at the end


Say = Callable[[str], None]
# How each tool is told to pass everything on, and to read only.
PASS: Final = {"ccache": {"CCACHE_DISABLE": "1"}, "sccache": {"SCCACHE_NO_CACHE": "1"}}
READ_ONLY: Final = {"ccache": {"CCACHE_READONLY": "1"}, "sccache": {"SCCACHE_LOCAL_RW_MODE": "READ_ONLY"}}
_SIZE: Final = {"ccache": "CCACHE_MAXSIZE", "sccache": "SCCACHE_CACHE_SIZE"}
_LAUNCHERS: Final = tuple(f"CMAKE_{name}_COMPILER_LAUNCHER" for name in ("C", "CXX", "CUDA"))


@dataclasses.dataclass(kw_only=True)
class Running:
    """The caches of a build under way: `environ` is the build's; `reports` stand there at the end.

    `unlaunched` says that the launcher had to be taken out of it, so that CMake has to run anew.
    """

    environ: dict[str, str]
    reports: tuple[CacheReport, ...] = ()
    unlaunched: bool = False


class Distributor(Protocol):
    """Sends compiles to other machines through sccache's server; features/cluster has it."""

    def server_settings(self, root: Path, say: Say, /) -> dict[str, str]: ...
    def sending(
        self,
        server: sccache.Server,
        launcher: str,
        environ: dict[str, str],
        settings: Mapping[str, str],
        say: Say,
        every: float,
        /,
    ) -> contextlib.AbstractContextManager[None]: ...


@contextlib.contextmanager
def cache_running(
    plan: CachePlan | None,
    addresses: str,
    environ: Mapping[str, str],
    root: Path,
    say: Say,
    *,
    name: str = "build",
    every: float = EVERY,
    distributor: Distributor | None = None,
) -> Iterator[Running]:
    """Have the caches of a plan work while the body runs; then count, say and stop.

    Args:
        plan: None for a build without a cache: nothing happens then.
        addresses: the words of --cache, with the passwords that no plan holds.
        environ: the build's environment.
        root: the checkout.
        say: told what a person wants to know, from any thread.
        name: tells servers of one checkout apart that may run at the same time.
        every: seconds between two looks at a shared cache.
        distributor: has compiles sent to other machines; None compiles all of them here.
    """
    running = Running(environ=dict(environ))
    if plan is None:
        yield running
        return
    memory = Memory(Path(plan.memory) if plan.memory else None)
    remotes = read_remotes(addresses, read_only=plan.read_only) if plan.remotes else ()
    with contextlib.ExitStack() as at_end:
        for tool in plan.tools:
            one = _One(tool, plan, running, memory, say)
            at_end.push(one.over)
            if tool.name == "sccache":
                one.serve(root, name, remotes, every, distributor, at_end)
            else:
                one.log(root)
        yield running


class _One:
    """One cache of a build."""

    def __init__(self, tool: CacheTool, plan: CachePlan, running: Running, memory: Memory, say: Say) -> None:
        self._tool, self._plan, self._running, self._memory, self._say = tool, plan, running, memory, say
        self._server: sccache.Server | None = None
        self._logged, self._before = Path(), ""
        home = {"ccache": ccache.ccache_home, "sccache": sccache.sccache_home}[tool.name]
        folder, size = home(tool.program, running.environ)
        self._folder: Folder | None = look_into(folder) if folder else None
        self._changes: tuple[str, ...] = ()
        if 0 < size < plan.size and _SIZE[tool.name] not in running.environ:
            running.environ[_SIZE[tool.name]] = str(plan.size)
        self._look()

    def _look(self) -> None:
        """Say before the build what would make the cache useless, and have the tool pass everything on."""
        name, folder = self._tool.name, self._folder
        if folder is None:
            return
        if folder.problem:
            how = READ_ONLY if folder.read_only else PASS
            self._running.environ.update(how[name])
            what = "adds nothing to it" if folder.read_only else "keeps nothing"
            self._say(f"Warning: {name} {what} in this build: {folder.problem}.")
            return
        seen = self._memory.seen(folder.path)
        self._changes = drift(self._tool, seen)
        if line := drift_line(self._tool, self._changes):
            self._say(line)

    # ------------------------------------------------------------ sccache

    def serve(
        self,
        root: Path,
        name: str,
        remotes: tuple[Remote, ...],
        every: float,
        distributor: Distributor | None,
        at_end: contextlib.ExitStack,
    ) -> None:
        """Start the server, with the shared caches that answer, and watch these."""
        environ, self._running.environ = self._running.environ, sccache.disk_only(self._running.environ)
        remotes = tuple(_with_login(remote, environ) for remote in remotes)
        remotes = tuple(remote for remote in remotes if self._answers(remote))
        if remotes:  # those named by --cache alone, with a login that the environment has for them
            environ = {k: v for k, v in environ.items() if not sccache.REMOTE.match(k) or _is_login(k)}
        away = distributor.server_settings(root, self._say) if distributor else {}
        server = sccache.Server(self._tool.program, own_place(root, name), environ | away)
        levels = server_variables(remotes)
        problem = server.start(levels or None)
        if problem:
            if remotes or any(sccache.REMOTE.match(name) for name in environ):
                self._say(f"Warning: the shared cache is left out: {problem}.")
            remotes, problem = (), server.start_alone(away.get("SCCACHE_CONF", os.devnull))
        if problem:
            self._without_server(problem)
            return
        self._server = server
        self._running.environ.update(server.clients | {"SCCACHE_IDLE_TIMEOUT": "0"})
        if remotes:
            self._say(f"shared cache: {', '.join(remote.shown for remote in remotes)}")
        at_end.enter_context(self._watch(remotes, every))
        if away and distributor:
            program, environ = self._tool.program, self._running.environ
            at_end.enter_context(distributor.sending(server, program, environ, away, self._say, every))

    def _answers(self, remote: Remote) -> bool:
        if reason := probe.why_unreachable(_target(remote)):
            self._say(f"Warning: {remote.shown} is left out of this build: {reason}.")
        return not reason

    def _without_server(self, problem: str) -> None:
        """Without a server sccache compiles nothing, so it must not stand before the compilers."""
        self._say(f"Warning: the build goes on without sccache, whose server does not start: {problem}.")
        for name in _LAUNCHERS:
            if self._running.environ.get(name, "") == self._tool.program.replace("\\", "/"):
                self._running.environ[name] = ""
                self._running.unlaunched = True

    def _watch(self, remotes: tuple[Remote, ...], every: float) -> Watch:
        left = {remote.shown: remote for remote in remotes}
        probes = {shown: _asking(remote) for shown, remote in left.items()}

        def gone(shown: str, reason: str) -> None:
            assert self._server is not None
            problem = self._server.replace({})
            self._say(f"Warning: the build goes on without its shared cache. {shown} is gone: {reason}.")
            if problem:
                self._say(f"Warning: a new server did not start: {problem}.")

        return Watch(probes, gone, every)

    # ------------------------------------------------------------ ccache

    def log(self, root: Path) -> None:
        """Have each ccache write down what it did; older ones cannot, so their counters are read."""
        self._logged = root / ".torchbuild" / ccache.LOG
        with contextlib.suppress(OSError):
            self._logged.unlink(missing_ok=True)
        self._before = ccache.statistics(self._tool.program, self._running.environ)
        if self._logged.parent.is_dir():
            self._running.environ["CCACHE_STATSLOG"] = str(self._logged)

    def _counted(self) -> CacheReport | None:
        if self._logged.is_file():
            text = self._logged.read_text("utf-8", "replace")
            with contextlib.suppress(OSError):
                unlink(self._logged)
            return stats.ccache_report(text)
        after = ccache.statistics(self._tool.program, self._running.environ)
        return stats.ccache_difference(self._before, after) if self._before and after else None

    # ------------------------------------------------------------ the end

    def over(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Stop, count, say, remember."""
        if self._server is not None:
            cut = kind is not None and issubclass(kind, (Interrupted, KeyboardInterrupt))
            self._server.stop(at_once=cut)
            found = [stats.sccache_report(*answers) for answers in self._server.answers]
        else:
            found = [self._counted()] if self._tool.name == "ccache" else []
        report = CacheReport(tool=self._tool.name)
        for each in filter(None, found):
            report = stats.added(report, each)
        if not stats.report_lines(report):
            return
        self._tell(report)
        self._running.reports += (report,)

    def _tell(self, report: CacheReport) -> None:
        for line in stats.report_lines(report):
            self._say(line)
        folder = self._folder
        if folder is None or folder.problem:
            return
        seen = self._memory.seen(folder.path)
        if said := stats.hint(report, first=not seen, drifted=bool(self._changes)):
            self._say(said)
        if stats.hit_rate(report) is not None:
            self._memory.keep(folder.path, remembered(seen, self._tool.settings), made=folder.made)


def _is_login(name: str) -> bool:
    return name.endswith(("_USERNAME", "_PASSWORD", "_TOKEN"))


def _with_login(remote: Remote, environ: Mapping[str, str]) -> Remote:
    """sccache's own variables say the login where the address does not."""
    prefix = f"SCCACHE_{remote.level.upper()}"
    user = remote.user or environ.get(f"{prefix}_USERNAME", "")
    return replace(remote, user=user, password=remote.password or environ.get(f"{prefix}_PASSWORD", ""))


def _target(remote: Remote) -> probe.Target:
    return probe.Target(
        kind=remote.level,
        host=remote.host,
        port=remote.port,
        tls=remote.tls,
        user=remote.user,
        password=remote.password,
        web=remote.web,
    )


def _asking(remote: Remote) -> Callable[[], str]:
    return lambda: probe.why_unreachable(_target(remote))


# ----------------
# what the `cache` verb does: tell how full the caches are, empty them, run a server for builds by
# hand


def cache_environ(plan: BuildPlan, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the variables of the plan that are for caches, without the whole env file."""
    ours = {op.name: op.value for op in plan.env if op.op == "set" and op.name.startswith(PREFIXES)}
    return {**environ, **ours}


def caches_of(plan: BuildPlan) -> CachePlan:
    """Return the caches of the plan.

    Raises:
        UsageError: it takes none; says why.
    """
    if plan.cache is None:
        why = next((choice.because for choice in plan.choices if choice.name == CHOICE), "no reason is known")
        raise UsageError(f"This build takes no compiler cache: {why}.", next_step=f"{HOW}.")
    return plan.cache


def cache_states(plan: CachePlan, environ: Mapping[str, str]) -> tuple[CacheState, ...]:
    """Return the state of every cache of the plan; one that does not report its folder has "" for it."""
    memory = _memory(plan)
    return tuple(_state(tool, environ, memory) for tool in plan.tools)


def _state(tool: CacheTool, environ: Mapping[str, str], memory: Memory) -> CacheState:
    folder, limit = {"ccache": ccache.ccache_home, "sccache": sccache.sccache_home}[tool.name](
        tool.program, environ
    )
    return CacheState(
        tool=tool.name,
        version=tool.version,
        program=tool.program,
        folder=str(folder or ""),
        used=size_of(folder) if folder and folder.is_dir() else None,
        limit=limit or None,
        made=folder is not None and memory.is_made(folder),
    )


def clear_caches(
    plan: CachePlan, environ: Mapping[str, str], agreed: Callable[[str], bool], say: Say
) -> tuple[CacheState, ...]:
    """Empty the caches of the plan: ccache by its own command, sccache's where a build of ours made it.

    Args:
        plan: which caches.
        environ: the build's environment.
        agreed: asks the user; --yes agrees to all.
        say: told what was done.

    Returns:
        The caches that were emptied, as they were before.

    Raises:
        CleanRefused: the user did not agree, a folder is not ours to empty, or it cannot be emptied.
    """
    memory = _memory(plan)
    emptied = []
    for state in cache_states(plan, environ):
        if state.used is None:
            continue
        if state.tool == "sccache" and not state.made:
            raise CleanRefused(
                f"{state.folder} was there before any build of this tool, so it is not emptied.",
                next_step="If nothing in it is needed, remove the folder yourself; sccache makes it anew.",
            )
        if not agreed(f"Empty {state.folder} ({state.used >> 20} MiB of {state.tool})?"):
            raise CleanRefused("Nothing was removed.", next_step="Say --yes to empty it.")
        if problem := _empty(state, environ):
            raise CleanRefused(f"{state.folder} could not be emptied: {problem}")
        memory.forget(Path(state.folder))
        say(f"{state.tool}: {state.used >> 20} MiB removed from {state.folder}")
        emptied.append(state)
    return tuple(emptied)


def until_interrupted() -> None:
    """Sleep until Ctrl-C; on Windows nothing but sleeping can be interrupted."""
    while True:
        time.sleep(1.0)


def _empty(state: CacheState, environ: Mapping[str, str]) -> str:
    if state.tool == "ccache":
        return ccache.clear(state.program, {**environ, "CCACHE_DIR": state.folder})
    try:
        remove_tree(Path(state.folder))
        Path(state.folder).mkdir()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def serve_cache(
    plan: CachePlan | None,
    addresses: str,
    environ: Mapping[str, str],
    root: Path,
    say: Say,
    wait: Callable[[], None],
    distributor: Distributor | None = None,
) -> None:
    """Run the plan's sccache server for builds by hand until `wait` returns, or Ctrl-C."""
    serving = cache_running(plan, addresses, environ, root, say, name="serve", distributor=distributor)
    with serving as running:
        set_by = "set {}={}" if sys.platform == "win32" else "export {}='{}'"
        led = [name for name in ("SCCACHE_SERVER_UDS", "SCCACHE_SERVER_PORT") if name in running.environ]
        if not led:
            say("There is no server to run: these builds take no sccache. Say --cache sccache.")
            return
        say(set_by.format(led[0], running.environ[led[0]]))
        say("Builds in a shell that has this variable use the server. Ctrl-C stops it.")
        with contextlib.suppress(KeyboardInterrupt):  # the way to end it
            wait()


def _memory(plan: CachePlan) -> Memory:
    return Memory(Path(plan.memory) if plan.memory else None)
