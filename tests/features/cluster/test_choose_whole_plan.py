"""A whole plan with --distribute: the variables of the tree, of the env file and of the build."""

from __future__ import annotations

import json
from typing import Any

from tests.support.caches import CCACHE, SCCACHE
from tests.support.machines import built, found, linux_facts, plan_of, tool
from torchbuild_tasks.features.cache.stats import add_reports, report_lines, sccache_report
from torchbuild_tasks.model import BuildPlan, CacheReport, Cluster, Facts, Tool
from torchbuild_tasks.values import replace

URL = "http://big:10600"
ALIVE = Cluster(url=URL, conf="/home/me/client.conf", servers=2, cpus=64)
LAUNCHERS = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER")


def facts(*tools: Tool, cluster: Cluster = ALIVE) -> Facts:
    here = linux_facts()
    return replace(here, tools=(*here.tools, *tools), cluster=cluster)


def variables(plan: BuildPlan) -> dict[str, str]:
    return {op.name: op.value for op in plan.env if op.op == "set"}


def plan(here: Facts, **flags: Any) -> BuildPlan:
    return plan_of(here, **{"distribute": URL, **flags})


def test_sccache_is_the_launcher_though_ccache_is_cheaper() -> None:
    made = plan(facts(CCACHE, SCCACHE))
    assert {variables(made)[name] for name in LAUNCHERS} == {"/usr/bin/sccache"}
    assert made.cache and made.cache.distribution
    assert made.cache.distribution.jobs == 66


def test_the_env_file_has_the_jobs_of_this_machine() -> None:
    """A build by hand from it has no server of sccache that sends anything away."""
    alone = plan_of(facts(CCACHE, SCCACHE))
    assert variables(plan(facts(CCACHE, SCCACHE)))["MAX_JOBS"] == variables(alone)["MAX_JOBS"]


def test_the_jobserver_does_not_hold_the_jobs_down_to_this_machine() -> None:
    here = facts(CCACHE, SCCACHE)
    new = [tool("ninja", "1.13.2") if one.name == "ninja" else one for one in here.tools]
    here = replace(here, tools=tuple(new))
    assert plan_of(here).jobserver is not None
    assert plan(here).jobserver is None


def test_an_sccache_is_fetched_where_there_is_none() -> None:
    made = plan(facts(CCACHE))
    assert [artifact.name for artifact in made.artifacts] == ["sccache"]
    assert variables(made)[LAUNCHERS[1]].endswith("/sccache")
    assert plan_of(facts(CCACHE)).artifacts == ()


def test_another_cache_is_obeyed_and_nothing_is_sent() -> None:
    made = plan(facts(CCACHE, SCCACHE), cache="ccache")
    assert variables(made)[LAUNCHERS[1]] == "/usr/bin/ccache"
    assert made.cache and made.cache.distribution is None
    assert found(made.findings, "distribute").status == "warn"
    assert "CMAKE_JOB_POOLS" not in variables(made)


def test_a_scheduler_that_is_down_today_costs_no_recompile() -> None:
    up = facts(CCACHE, SCCACHE)
    done = built(up, distribute=URL)
    down = replace(done, cluster=replace(ALIVE, problem="Connection refused"))
    made = plan(down)
    assert made.freshness.needs == "nothing", made.freshness
    assert made.verdict == "warn"
    assert "Connection refused" in found(made.findings, "distribute").text


# ---------------------------------------------------------------- what is said of it afterwards


def stats(**changes: Any) -> str:
    none: dict[str, Any] = {"counts": {}}
    parts = {"cache_hits": none, "cache_misses": none, "cache_errors": none, "not_cached": {}, **changes}
    return json.dumps({"stats": parts})


def test_who_compiled_how_much() -> None:
    before = stats(dist_compiles={"10.0.0.2:10501": 1}, dist_errors=1)
    after = stats(dist_compiles={"10.0.0.2:10501": 5, "10.0.0.3:10501": 2}, dist_errors=4)
    report = sccache_report(before, after)
    assert report and report.away == {"10.0.0.2:10501": 4, "10.0.0.3:10501": 2}
    assert report.given_back == 3
    both = add_reports(report, CacheReport(tool="sccache", away={"10.0.0.3:10501": 1}, given_back=1))
    line = "compiled on other machines: 7 (4 by 10.0.0.2, 3 by 10.0.0.3); 4 more were compiled here instead"
    assert line in report_lines(replace(both, misses={"C/C++": 11}))


def test_an_older_sccache_tells_nothing_of_it() -> None:
    report = sccache_report(stats(), stats())
    assert report and (report.away, report.given_back) == ({}, 0)
