"""The decision about --distribute: the number of jobs, and one line for each obstacle."""

from __future__ import annotations

from typing import Any

from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, modern_tree, settings
from tests.support.windows import windows_facts
from torchbuild_tasks.features.cluster.choose import ChosenDistribution, choose_distribution
from torchbuild_tasks.model import Choice, Cluster, Cpu, Facts
from torchbuild_tasks.values import replace

URL = "http://big:10600"
ALIVE = Cluster(url=URL, conf="/conf", servers=2, cpus=64, busy=12)
LOCAL = Choice(name="jobs", value="7", because="free memory")


def facts(cluster: Cluster | None = ALIVE, **changes: Any) -> Facts:
    return replace(linux_facts(**changes), cluster=cluster)


def chosen(
    here: Facts | None = None,
    *,
    launcher: str = "sccache",
    generator: str = "Ninja",
    jobs: Choice = LOCAL,
    **flags: Any,
) -> ChosenDistribution:
    question = ask(here or facts(), **{"distribute": URL, **flags})
    return choose_distribution(
        question, launcher=launcher, compiler="/usr/bin/g++", generator=generator, jobs=jobs
    )


def test_nothing_without_the_flag() -> None:
    assert chosen(distribute=None) == ChosenDistribution()


def test_jobs_for_every_core_of_the_servers() -> None:
    made = chosen()
    assert made.plan and made.choice and not made.problems
    assert (made.plan.url, made.plan.conf, made.plan.compiler) == (URL, "/conf", "/usr/bin/g++")
    assert made.plan.jobs == 66
    assert made.choice.value == "http://big:10600: 2 servers, 64 cores"
    assert "66 jobs once a first compile has come back" in made.choice.because
    assert made.choice.source == "flag"


def test_one_of_each_is_written_in_the_singular() -> None:
    made = chosen(facts(replace(ALIVE, servers=1, cpus=1)))
    assert made.choice and made.choice.value == "http://big:10600: 1 server, 1 core"


@each_case(
    ("cores", "cpus", "local", "jobs"),
    [
        (1, 64, "1", 20),  # one core feeds no more
        (8, 2, "7", 7),  # never fewer than without a cluster
        (8, 1000, "7", 160),
    ],
)
def test_no_more_than_can_be_fed_and_no_fewer_than_here(cores: int, cpus: int, local: str, jobs: int) -> None:
    here = facts(replace(ALIVE, cpus=cpus), cpu=Cpu(cores=cores))
    made = chosen(here, jobs=replace(LOCAL, value=local))
    assert made.plan and made.plan.jobs == jobs


def test_the_user_s_own_number_is_obeyed() -> None:
    made = chosen(jobs=Choice(name="jobs", value="30", because="--jobs", source="flag"))
    assert made.plan and made.plan.jobs == 30


def test_no_more_jobs_than_ninja_has_pipes_for() -> None:
    here = linux_facts(cluster=replace(ALIVE, servers=40, cpus=8000))
    made = chosen(replace(here, cpu=replace(here.cpu, cores=128, affinity=None, quota=None)))
    assert made.plan and made.plan.jobs == 1000
    assert made.choice and "Ninja opens a pipe for each" in made.choice.because


def test_from_the_settings_file() -> None:
    question = ask(facts(), settings({"distribute": URL}))
    made = choose_distribution(question, launcher="sccache", compiler="c", generator="Ninja", jobs=LOCAL)
    assert made.choice and made.choice.source == "torchbuild.toml"


@each_case(
    ("cluster", "says", "fix"),
    [
        (None, "the facts come from a dump", ""),
        (replace(ALIVE, conf=""), "this machine has not joined", "cluster join http://big:10600"),
        (
            replace(ALIVE, problem="Connection refused"),
            "http://big:10600 cannot be used now: Connection refused",
            "cluster status",
        ),
        (replace(ALIVE, servers=0, cpus=0), "has no server", "cluster server http://big:10600"),
    ],
)
def test_what_stands_in_the_way_today_changes_nothing_that_stands_in_the_tree(
    cluster: Cluster | None, says: str, fix: str
) -> None:
    made = chosen(facts(cluster))
    (problem,) = made.problems
    assert made.plan is None and problem.status == "warn"
    assert says in problem.text and problem.text.startswith("everything is compiled here")
    assert fix in problem.fix
    assert made.choices == chosen().choices != ()


def test_another_cache_cannot_distribute() -> None:
    made = chosen(launcher="ccache")
    assert made.plan is None and made.choices == ()
    assert "only sccache can send compiles there" in made.problems[0].text


def test_a_remote_execution_api_needs_no_scheduler_and_keeps_the_jobs() -> None:
    made = chosen(facts(None), launcher="recc", distribute="reapi://big:8980")
    assert made.choice and made.choice.value == "reapi://big:8980" and not made.problems
    assert made.plan is None
    assert made.choices == chosen().choices != ()  # links stay here
    missing = chosen(facts(None), launcher="ccache", distribute="reapi://big:8980")
    assert "only recc can send compiles there" in missing.problems[0].text


def test_windows_cannot() -> None:
    made = chosen(replace(windows_facts(), cluster=ALIVE))
    assert made.plan is None and made.choices == ()
    assert "cannot run cl.exe" in made.problems[0].text


# ---------------------------------------------------------------- links


def pools(**changes: Any) -> dict[str, str]:
    return {choice.name: choice.value for choice in chosen(**changes).choices}


def test_links_run_as_many_at_once_as_there_are_cores() -> None:
    wanted = {"CMAKE_JOB_POOLS": "torchbuild_link=8", "CMAKE_JOB_POOL_LINK": "torchbuild_link"}
    assert pools() == wanted
    assert pools(here=facts(tree=modern_tree())) == wanted


def test_only_ninja_has_pools() -> None:
    assert pools(generator="Unix Makefiles") == {}


@each_case("name", ["CMAKE_JOB_POOLS", "CMAKE_JOB_POOL_LINK"])
def test_the_user_s_own_pool_stays(name: str) -> None:
    assert pools(set=(f"{name}=x",)) == {}


def test_where_pytorch_has_a_pool_of_its_own_cmake_would_not_make_ours() -> None:
    modern = facts(tree=modern_tree())
    assert pools(here=modern, cuda=True) == {}
    assert pools(here=facts(), cuda=True) != {}
