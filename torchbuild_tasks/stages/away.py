"""Compiles on other machines, beside a build: tried once before CMake, watched, given up in one line.

The first compile is tried because nothing else shows whether the whole chain works: another version of
sccache-dist, a toolchain that does not run there, a sandbox that cannot be made. A failure that sccache
takes for the build's own (a refused token is one) would end the build.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torchbuild_tasks.core.cache import stats
from torchbuild_tasks.core.cluster.said import BUSY, CLIENT_LOG, given_back
from torchbuild_tasks.effects.cache.sccache import Server
from torchbuild_tasks.effects.cache.watch import Watch
from torchbuild_tasks.effects.cluster.ask import ask
from torchbuild_tasks.effects.cluster.keep import value
from torchbuild_tasks.model import Distribution
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR

Say = Callable[[str], None]
# Packing the toolchain takes some seconds, and sending it to the first server as long as the network does.
TRIAL: Final = 120.0
_LOG: Final = "sccache-away.log"
_SOURCE: Final = "int torchbuild_trial() { return 1; }\n"


def server_settings(plan: Distribution | None, root: Path, say: Say) -> dict[str, str]:
    """What sccache's server is started with to send compiles away; nothing when that is no use now.

    Args:
        plan: None for a build that compiles all by itself.
        root: the checkout.
        say: told when the scheduler has gone since the plan was made.
    """
    if plan is None:
        return {}
    if problem := _asking(plan)():
        say(f"Warning: everything is compiled here. {plan.url} is no use now: {problem}.")
        return {}
    settings = {"SCCACHE_CONF": plan.conf}
    if (root / STATE_DIR).is_dir():
        settings |= {"SCCACHE_LOG": CLIENT_LOG, "SCCACHE_ERROR_LOG": str(root / STATE_DIR / _LOG)}
    return settings


@contextlib.contextmanager
def sending_away(
    plan: Distribution,
    server: Server,
    launcher: str,
    environ: dict[str, str],
    settings: Mapping[str, str],
    say: Say,
    every: float,
) -> Iterator[None]:
    """Have compiles sent away while the body runs, if a first one comes back; then say what did not.

    Args:
        plan: to whom, and with how many jobs.
        server: runs with `settings`.
        launcher: sccache.
        environ: the build's; it gets the jobs once the first compile has come back.
        settings: as `server_settings` gave them.
        say: told what a person wants to know, from any thread.
        every: seconds between two looks at the scheduler.
    """
    log = Path(settings["SCCACHE_ERROR_LOG"]) if "SCCACHE_ERROR_LOG" in settings else None

    def give_up(reason: str) -> None:
        problem = server.hand_over(settings)
        say(f"Warning: everything is compiled here from now on. {plan.url}: {reason}.")
        if problem:
            say(f"Warning: a new server did not start: {problem}.")

    reason = _tried(plan, server, launcher, environ, log)
    server.count_anew()
    if reason:
        give_up(f"a first compile did not come back from a server: {reason}")
        yield
        return
    environ["MAX_JOBS"] = str(plan.jobs)
    say(f"compiles are sent away by {plan.url}, {plan.jobs} at once")
    with Watch({plan.url: _asking(plan)}, lambda _, gone: give_up(gone), every):
        yield
    if reason := given_back(_read(log)):
        say(f"What came back was compiled here, mostly because: {reason}.")


def _asking(plan: Distribution) -> Callable[[], str]:
    token = value(Path(plan.conf), "dist", "auth", "token")
    return lambda: ask(plan.url, token).problem


def _tried(
    plan: Distribution, server: Server, launcher: str, environ: Mapping[str, str], log: Path | None
) -> str:
    """Compile one small file elsewhere; "" when a server has made it, or all are busy, else why not."""
    before = server.statistics()
    with tempfile.TemporaryDirectory(prefix="torchbuild-") as folder:
        source = Path(folder) / "trial.cpp"
        output = Path(folder) / "trial.o"
        source.write_text(_SOURCE, "utf-8")
        argv = (launcher, plan.compiler, "-c", str(source), "-o", str(output))
        # A result that lies in the cache would prove nothing.
        done = process.capture(argv, env={**environ, "SCCACHE_RECACHE": "1"}, cwd=folder, timeout=TRIAL)
    if done.timed_out:
        return f"it took more than {TRIAL:g} s"
    if done.rc != 0:
        lines = done.stderr.decode(errors="replace").split("\n")
        return next((line.strip() for line in lines if line.strip()), f"it ended with exit code {done.rc}")
    report = stats.sccache_report(before, server.statistics())
    if report and report.away:
        return ""
    reason = given_back(_read(log))
    return "" if reason == BUSY else reason or "sccache compiled it here"


def _read(log: Path | None) -> str:
    try:
        return log.read_text("utf-8", "replace") if log else ""
    except OSError:
        return ""
