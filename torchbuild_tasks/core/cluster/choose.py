"""Whether a build spreads its compiles over other machines, and with how many jobs.

Nothing here fails a build: what cannot be had is one line, and everything is compiled here. The launcher
and the pool for links do not depend on whether the scheduler answers today, for they stand in the build
tree: if they came and went with it, all of it would be compiled anew.
"""

from __future__ import annotations

from typing import Final

import msgspec

from torchbuild_tasks.catalog.match import variable_row
from torchbuild_tasks.model import Choice, Cluster, Distribution, Finding
from torchbuild_tasks.plan.jobs import POOL, usable_cores
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda

NAME: Final = "distributed compiles"
LINKS: Final = "torchbuild_link"
# What a compile costs the machine that sends it away is 0.05 of what it costs to compile it there
# (measured: preprocessing, packing, waiting), so one core feeds some 20.
FED: Final = 20
_POOLS: Final = ("CMAKE_JOB_POOLS", "CMAKE_JOB_POOL_LINK")


class ChosenDistribution(msgspec.Struct, frozen=True, kw_only=True):
    """The decision; nothing at all for a build that was not asked to distribute.

    `choices` are build variables, below every layer of the user's.
    """

    choice: Choice | None = None
    plan: Distribution | None = None
    choices: tuple[Choice, ...] = ()
    problems: tuple[Finding, ...] = ()


def choose_distribution(
    question: Question, *, sccache: bool, compiler: str, generator: str, jobs: Choice
) -> ChosenDistribution:
    """Decide what --distribute comes to.

    Args:
        question: its facts hold the scheduler's answer.
        sccache: whether it is the launcher of C++.
        compiler: the C++ compiler's path.
        generator: CMake's.
        jobs: as decided for this machine alone.
    """
    given = question.given("distribute")
    if given is None:
        return ChosenDistribution()
    if reason := _impossible(question, sccache):
        return _without(question, reason[0], reason[1])
    pools = _link_pool(question, generator)
    cluster = question.facts.cluster
    if reason := _unusable(cluster):
        return _without(question, *reason, pools)
    assert cluster is not None
    number, why = _jobs(question, cluster, jobs)
    because = f"{given[2]}; {number} jobs once a first compile has come back: {why}"
    return ChosenDistribution(
        choice=Choice(name=NAME, value=_shown(cluster), because=because, source=given[1]),
        plan=Distribution(url=cluster.url, conf=cluster.conf, compiler=compiler, jobs=number),
        choices=pools,
    )


def _impossible(question: Question, sccache: bool) -> tuple[str, str] | None:
    """What asking another scheduler would not change."""
    if question.facts.host.os == "windows":
        text = "servers of sccache-dist run Linux and cannot run cl.exe, so nothing is sent from Windows"
        return text, "Leave --distribute out here; a shared cache (--cache redis://…) works on Windows."
    if not sccache:
        text = "only sccache can send compiles away, and it is not the launcher of C++ here"
        return text, "Leave out what chooses another (--cache, CMAKE_CXX_COMPILER_LAUNCHER, CC and CXX)."
    return None


def _unusable(cluster: Cluster | None) -> tuple[str, str] | None:
    if cluster is None:
        return "no scheduler was asked, because the facts come from a dump", ""
    if not cluster.conf:
        join = f"torchbuild cluster join {cluster.url} --token-file FILE"
        return f"this machine has not joined {cluster.url}", f"Get its client.token, then: {join}"
    if cluster.problem:
        return f"{cluster.url} is no use now: {cluster.problem}", "torchbuild cluster status asks it again."
    if not cluster.servers:
        how = f"torchbuild cluster server {cluster.url} --token-file FILE"
        return f"{cluster.url} has no server", f"Start one on another machine: {how}"
    return None


def _without(question: Question, text: str, fix: str, choices: tuple[Choice, ...] = ()) -> ChosenDistribution:
    given = question.given("distribute")
    source = given[1] if given else "default"
    finding = Finding(id="distribute", status="warn", text=f"everything is compiled here: {text}", fix=fix)
    return ChosenDistribution(
        choice=Choice(name=NAME, value="none", because=text, source=source),
        choices=choices,
        problems=(finding,),
    )


def _jobs(question: Question, cluster: Cluster, jobs: Choice) -> tuple[int, str]:
    """As many as the servers take, and as this machine can feed."""
    if jobs.source != "default" and jobs.value.isdecimal():
        return int(jobs.value), jobs.because
    taken = cluster.cpus + cluster.servers
    cores, _ = usable_cores(question.facts.cpu)
    fed = cores * FED
    local = int(jobs.value) if jobs.value.isdecimal() else 1
    number = max(local, min(taken, fed))
    sums = f"the smaller of {cluster.cpus} cores and one waiting on each of {cluster.servers} = {taken}"
    return number, f"{sums}, and {cores} cores here x {FED} that each can feed = {fed}"


def _shown(cluster: Cluster) -> str:
    servers = "1 server" if cluster.servers == 1 else f"{cluster.servers} servers"
    cores = "1 core" if cluster.cpus == 1 else f"{cluster.cpus} cores"
    return f"{cluster.url}: {servers}, {cores}"


def _link_pool(question: Question, generator: str) -> tuple[Choice, ...]:
    """Links are not sent away, so no more of them run at once than this machine has cores.

    Not where PyTorch makes a pool of its own (CUDA from 2.14 on): CMake then ignores
    CMAKE_JOB_POOLS, and Ninja would refuse a link in a pool that does not exist.
    """
    own = is_cuda(question) and variable_row(question.catalog, POOL, question.era, question.version)
    if generator != "Ninja" or own or any(decide(question, name) for name in _POOLS):
        return ()
    depth = usable_cores(question.facts.cpu)[0]
    because = f"links stay here, {depth} at once however many compiles are away"
    return (
        Choice(name="CMAKE_JOB_POOLS", value=f"{LINKS}={depth}", because=because),
        Choice(name="CMAKE_JOB_POOL_LINK", value=LINKS, because=because),
    )
