"""Run the compiler caches of a build: start them before CMake, watch, count and stop them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.errors import INTERRUPTIONS
from torchbuild_tasks.features.cache import probe, server, stats
from torchbuild_tasks.features.cache.address import Remote, own_variable, read_remotes, server_variables
from torchbuild_tasks.features.cache.choose import RECC
from torchbuild_tasks.features.cache.drift import drift, drift_line, remember_settings
from torchbuild_tasks.features.cache.folder import Folder, Memory, look_into
from torchbuild_tasks.features.cache.probe import EVERY, Watch
from torchbuild_tasks.features.cache.server import own_place
from torchbuild_tasks.model import CachePlan, CacheReport, CacheTool
from torchbuild_tasks.system.connections import break_connections
from torchbuild_tasks.system.files import STATE_DIR, unlink
from torchbuild_tasks.system.remove import remove_tree
from torchbuild_tasks.values import replace

Say = Callable[[str], None]
# The settings by which each tool is bypassed, or only read.
PASS: Final = {
    "ccache": {"CCACHE_DISABLE": "1"},
    "sccache": {"SCCACHE_NO_CACHE": "1"},
    RECC: {"RECC_PASSTHROUGH": "1"},
}
READ_ONLY: Final = {"ccache": {"CCACHE_READONLY": "1"}, "sccache": {"SCCACHE_LOCAL_RW_MODE": "READ_ONLY"}}
_SIZE: Final = {"ccache": "CCACHE_MAXSIZE", "sccache": "SCCACHE_CACHE_SIZE"}
_SELDOM: Final = 10  # our own server is tested so much more rarely, since that starts a program
_LOGIN: Final = ("_USERNAME", "_PASSWORD", "_TOKEN")  # suffix of such variables
_LAUNCHERS: Final = tuple(f"CMAKE_{name}_COMPILER_LAUNCHER" for name in ("C", "CXX", "CUDA"))


@dataclasses.dataclass(kw_only=True)
class Running:
    """The running caches of a build: `environ` is the build's; `reports` are set at the end.

    `unlaunched`: the launcher had to be taken out of it, so that CMake has to run again.
    """

    environ: dict[str, str]
    reports: tuple[CacheReport, ...] = ()
    unlaunched: bool = False


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
    complete: bool = True,
    goes_on: bool = False,
) -> Iterator[Running]:
    """Run the caches of a plan during the body; then count, report and stop.

    Args:
        plan: None for a build without a cache: nothing happens then.
        addresses: the words of --cache, with the passwords that no plan holds.
        environ: the build's environment.
        root: the checkout.
        say: shows a line to a person, from any thread.
        name: tells servers of one checkout apart that may run at the same time.
        every: seconds between two looks at a shared cache.
        complete: whether all of torch is compiled once the body has ended well.
        goes_on: whether an earlier run that did not end well has compiled some of it.
    """
    running = Running(environ=dict(environ))
    if plan is None:
        yield running
        return
    memory = Memory(plan.memory)
    remotes = read_remotes(addresses, read_only=plan.read_only) if plan.remotes else ()
    with contextlib.ExitStack() as at_end:
        for tool in plan.tools:
            one = _One(tool, plan, running, memory, say, complete=complete, goes_on=goes_on)
            at_end.push(one.finish)
            if tool.name == "sccache":
                one.serve(root, name, remotes, every, at_end)
            elif tool.name == RECC:
                one.connect(root, remotes, every, at_end)
            else:
                one.log(root)
        yield running


class _One:
    """One cache of a build."""

    def __init__(
        self,
        tool: CacheTool,
        plan: CachePlan,
        running: Running,
        memory: Memory,
        say: Say,
        *,
        complete: bool,
        goes_on: bool,
    ) -> None:
        self._complete = complete
        self._goes_on = goes_on
        self._tool = tool
        self._plan = plan
        self._running = running
        self._memory = memory
        self._say = say
        self._server: server.Server | None = None
        self._logged, self._before = Path(), ""
        home = server.HOMES.get(tool.name)
        folder, size = home(tool.program, running.environ) if home else (None, 0)
        self._folder: Folder | None = look_into(folder) if folder else None
        self._changes: tuple[str, ...] = ()
        if 0 < size < plan.size and _SIZE[tool.name] not in running.environ:
            running.environ[_SIZE[tool.name]] = str(plan.size)
        self._check_folder()

    def _check_folder(self) -> None:
        """Check the cache's folder and settings before the build; bypass it if the folder is unusable."""
        name = self._tool.name
        folder = self._folder
        if folder is None:
            return
        if folder.problem:
            how = READ_ONLY if folder.read_only else PASS
            self._running.environ.update(how[name])
            what = "adds nothing to it" if folder.read_only else "keeps nothing"
            self._say(f"Warning: {name} {what} in this build: {folder.problem}.")
            return
        seen = self._memory.list_settings(folder.path)
        self._changes = drift(self._tool, seen)
        if line := drift_line(self._tool, self._changes):
            self._say(line)

    def serve(
        self, root: Path, name: str, remotes: tuple[Remote, ...], every: float, at_end: contextlib.ExitStack
    ) -> None:
        """Start the server with the shared caches that respond, and watch these; send compiles away."""
        environ, self._running.environ = self._running.environ, server.disk_only(self._running.environ)
        remotes = tuple(_with_login(remote, environ) for remote in remotes)
        remotes = tuple(remote for remote in remotes if self._answers(remote))
        if remotes:  # only those of --cache, with logins from the environment
            environ = {k: v for k, v in environ.items() if not server.REMOTE.match(k) or k.endswith(_LOGIN)}
        distributor = None
        if self._plan.distribution:
            from torchbuild_tasks.features.cluster.act import Client

            distributor = Client(self._plan.distribution)
        away = distributor.server_settings(root, self._say) if distributor else {}
        started = server.Server(self._tool.program, own_place(root, name), environ | away)
        levels = server_variables(remotes)
        problem = started.start(levels or None)
        if problem:
            if remotes or any(server.REMOTE.match(name) for name in environ):
                self._say(f"Warning: the shared cache is left out: {problem}.")
            remotes = ()
            problem = started.start_alone(away.get("SCCACHE_CONF", os.devnull))
        if problem:
            self._drop_launchers(problem)
            return
        self._server = started
        # Not 0 as ours has: once that is killed, compiles start several, of which we stop only one.
        self._running.environ.update(started.clients | {"SCCACHE_IDLE_TIMEOUT": "600"})
        if remotes:
            self._say(f"shared cache: {', '.join(remote.shown for remote in remotes)}")
        at_end.enter_context(self._watch(remotes, every))
        at_end.enter_context(self._watch_own(started, every))
        if away and distributor:
            program = self._tool.program
            environ = self._running.environ
            at_end.enter_context(distributor.sending(started, program, environ, away, self._say, every))

    def connect(
        self, root: Path, remotes: tuple[Remote, ...], every: float, at_end: contextlib.ExitStack
    ) -> None:
        """Make recc use its server, or bypass it if it does not respond, now or later.

        recc has no local server: each compile connects to the remote one, and reads recc.conf.
        """
        environ = self._running.environ
        remotes = tuple(replace(each, ca=environ.get("RECC_SERVER_CERT", "")) for each in remotes)
        if not remotes or not all(self._answers(remote) for remote in remotes):
            environ.update(PASS[RECC])
            return
        folder = Path(tempfile.mkdtemp(prefix="recc-", dir=root / STATE_DIR))
        self._logged = folder / "metrics"
        environ |= {
            "RECC_ENABLE_METRICS": "1",
            "RECC_METRICS_FILE": str(self._logged),
            "RECC_LOG_DIRECTORY": str(folder),
        }
        self._say(f"shared cache: {remotes[0].shown}")
        if "RECC_CONFIG_DIRECTORY" in environ:  # the user's; recc reads only one
            return
        environ["RECC_CONFIG_DIRECTORY"] = str(folder)

        def pass_on(shown: str, reason: str) -> None:
            (folder / "recc.conf").write_text("passthrough=1\n", "utf-8")
            for each in remotes:  # otherwise a distributed compile waits for a server that hangs
                break_connections(each.host, each.port)
            self._say(f"Warning: the build continues without its shared cache. {shown} is gone: {reason}.")

        at_end.enter_context(Watch(_probes(remotes), pass_on, every))

    def _answers(self, remote: Remote) -> bool:
        if reason := probe.why_unreachable(remote):
            self._say(f"Warning: {remote.shown} is left out of this build: {reason}.")
        return not reason

    def _drop_launchers(self, problem: str) -> None:
        """Remove sccache from the compilers' launchers: without a server it compiles nothing."""
        self._say(f"Warning: the build goes on without sccache, whose server does not start: {problem}.")
        for name in _LAUNCHERS:
            if self._running.environ.get(name, "") == self._tool.program.replace("\\", "/"):
                self._running.environ[name] = ""
                self._running.unlaunched = True

    def _watch(self, remotes: tuple[Remote, ...], every: float) -> Watch:
        def do_without(shown: str, reason: str) -> None:
            assert self._server is not None
            problem = self._server.replace({})
            self._say(f"Warning: the build continues without its shared cache. {shown} is gone: {reason}.")
            if problem:
                self._say(f"Warning: a new server did not start: {problem}.")

        return Watch(_probes(remotes), do_without, every)

    def _watch_own(self, running: server.Server, every: float) -> Watch:
        def replace_server(name: str, reason: str) -> None:
            problem = running.hand_over(())
            self._say(f"Warning: {name} hung ({reason}), so another one was started in its place.")
            if problem:
                self._say(f"Warning: it did not start: {problem}.")

        return Watch({"sccache's server": running.why_stuck}, replace_server, _SELDOM * every)

    def log(self, root: Path) -> None:
        """Make ccache write a statistics log; for older versions read the counters."""
        self._logged = root / STATE_DIR / server.LOG
        with contextlib.suppress(OSError):
            self._logged.unlink(missing_ok=True)
        self._before = server.statistics(self._tool.program, self._running.environ)
        if self._logged.parent.is_dir():
            self._running.environ["CCACHE_STATSLOG"] = str(self._logged)

    def _read_report(self) -> CacheReport | None:
        if self._tool.name == RECC:
            text = self._logged.read_text("utf-8", "replace") if self._logged.is_file() else ""
            if self._logged.is_absolute():
                remove_tree(self._logged.parent)
            return stats.recc_report(text)
        if self._logged.is_file():
            text = self._logged.read_text("utf-8", "replace")
            with contextlib.suppress(OSError):
                unlink(self._logged)
            return stats.ccache_report(text)
        after = server.statistics(self._tool.program, self._running.environ)
        return stats.ccache_difference(self._before, after) if self._before and after else None

    def finish(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Stop the server, count and report hits, and record the settings."""
        if self._server is not None:
            cut = kind is not None and issubclass(kind, INTERRUPTIONS)
            self._server.stop(at_once=cut)
            reports = [stats.sccache_report(*answers) for answers in self._server.answers]
        else:
            reports = [self._read_report()] if self._tool.name != "sccache" else []
        report = CacheReport(tool=self._tool.name)
        for each in filter(None, reports):
            report = stats.add_reports(report, each)
        if not stats.report_lines(report):
            return
        self._report(report, complete=self._complete and kind is None)
        self._running.reports += (report,)

    def _report(self, report: CacheReport, *, complete: bool) -> None:
        """Report the statistics; only a complete build fills the cache for the next one."""
        for line in stats.report_lines(report):
            self._say(line)
        folder = self._folder
        if folder is None or folder.problem:
            return
        seen = self._memory.list_settings(folder.path)
        all_of_it = complete and not self._goes_on
        if hint := stats.hint(report, first=not seen, drifted=bool(self._changes), complete=all_of_it):
            self._say(hint)
        if report.looked:
            now = remember_settings(seen, self._tool.settings) if complete else list(seen)
            self._memory.keep(folder.path, now, created=folder.created)


def _with_login(remote: Remote, environ: Mapping[str, str]) -> Remote:
    """Return the address with the login of sccache's own variables, if it has none."""
    user, password = (environ.get(own_variable(remote.level, name), "") for name in ("USERNAME", "PASSWORD"))
    return replace(remote, user=remote.user or user, password=remote.password or password)


def _probes(remotes: tuple[Remote, ...]) -> dict[str, Callable[[], str]]:
    return {each.shown: functools.partial(probe.why_unreachable, each) for each in remotes}
