"""What the doctor does beside looking: it asks the hosts that the plan needs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from torchbuild_tasks.build.work import Reporter, run_shown
from torchbuild_tasks.core.doctor.hosts import needed_addresses, proxy_problems
from torchbuild_tasks.core.doctor.repairs import Repair
from torchbuild_tasks.effects.reach import reach
from torchbuild_tasks.errors import DownloadFailed, UsageError
from torchbuild_tasks.features.cache import server as ccache
from torchbuild_tasks.features.cache import server as sccache
from torchbuild_tasks.features.cache.act import cache_environ
from torchbuild_tasks.model import BuildPlan, Facts, Reached
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.system.net.pip import DEFAULT_INDEX, read_settings


def written_places(plan: BuildPlan, facts: Facts, temporary: str) -> dict[str, str]:
    """Where this build writes, by purpose."""
    places = {"source": facts.tree.root, "build": plan.build_dir}
    if facts.store is not None:
        places["store"] = facts.store.folder
    if folder := _cache_folder(plan):
        places["cache"] = folder
    return {**places, "tmp": temporary}


def _cache_folder(plan: BuildPlan) -> str:
    """The folder of the plan's first compiler cache; the program is asked where the plan names none."""
    if plan.cache is None or not plan.cache.tools:
        return ""
    tool = plan.cache.tools[0]
    if tool.folder:
        return tool.folder
    homes = {"ccache": ccache.ccache_home, "sccache": sccache.sccache_home}
    folder, _ = homes[tool.name](tool.program, cache_environ(plan, os.environ))
    return str(folder) if folder else ""


def ask_hosts(plan: BuildPlan, facts: Facts, net: Net) -> tuple[Reached, ...] | None:
    """How the hosts that the plan needs answer; None with --offline."""
    if net.offline:
        return None
    if not needed_addresses(plan, facts, (DEFAULT_INDEX,)):
        return ()
    try:
        indexes = read_settings(os.environ).index_urls
    except (UsageError, DownloadFailed):  # pip itself says so when it is needed
        indexes = (DEFAULT_INDEX,)
    addresses = needed_addresses(plan, facts, indexes)
    return reach([(address.url, address.why) for address in addresses], net)


def proxies() -> tuple[str, ...]:
    """What is wrong with this environment's variables of proxies."""
    return proxy_problems(os.environ)


def repair(todo: Sequence[Repair], report: Reporter, *, yes: bool) -> bool:
    """Do each of them that the user agrees to, and say what was done; whether anything was."""
    done = False
    for each in todo:
        line = shlex.join(each.command.argv)
        if not (yes or report.confirm(f"{each.id}: run {line} ({each.command.because})?")):
            report.note(f"{each.id}: left as it is; it would have been: {line}")
            continue
        rc, said = run_shown(each.command, report)
        report.note(f"{each.id}: failed ({rc}): {' | '.join(said[-3:])}" if rc else f"{each.id}: done")
        done = done or rc == 0
    return done
