"""`plan --what-if`: the conditions, the simulated steps, and the notes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.for_each import each_case
from tests.support.machines import ROOT, ask, linux_facts
from torchbuild_tasks.catalog import GIB, load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.whatif.choose import (
    Answer,
    Scenario,
    Tree,
    answer,
    choose_hits,
    parse_scenario,
    scenario_here,
    step_seconds,
    targets,
)
from torchbuild_tasks.features.whatif.verb import answer_text
from torchbuild_tasks.model import Cluster, Cpu, Memory
from torchbuild_tasks.model.history import History, PastBuild
from torchbuild_tasks.ninja.build_file import BuildFile, Edge
from torchbuild_tasks.values import replace, to_json

HERE = Scenario(cores=4, memory=16.0, server_cores=4)
OBJECT = "caffe2/CMakeFiles/torch_cpu.dir/__/"


def compiled(source: str, *more: str) -> Edge:
    return Edge(outputs=(f"{OBJECT}{source}.o",), inputs=(f"{ROOT}/{source}", *more), explicit=1)


def graph() -> BuildFile:
    """Sixteen compiles of torch's own, two of its distributed part, two of CUDA, and the links of each."""
    own = [compiled(f"aten/src/ATen/native/f{at}.cpp") for at in range(16)]
    away = [compiled(f"torch/csrc/distributed/c10d/f{at}.cpp", "gen/ops.h") for at in range(2)]
    cuda = [compiled(f"aten/src/ATen/native/cuda/f{at}.cu") for at in range(2)]
    objects = {"lib/libtorch_cpu.so": own, "lib/libc10d.so": away, "lib/libtorch_cuda.so": cuda}
    links = [
        Edge(outputs=(name,), inputs=tuple(edge.outputs[0] for edge in edges), explicit=len(edges))
        for name, edges in objects.items()
    ]
    ends = (
        Edge(outputs=("gen/ops.h",)),
        Edge(outputs=("install",), inputs=tuple(objects), phony=True),
        Edge(outputs=("c10.o",)),
    )
    return BuildFile(edges=(*own, *away, *cuda, *links, *ends))


def history(seconds: float = 10.0, *builds: PastBuild) -> History:
    outputs = [edge.outputs[0] for edge in graph().edges if not edge.phony]
    return History(steps=dict.fromkeys(outputs, (seconds,)), builds=builds)


def asked(text: str, tree: Tree | None = None, choices: dict[str, str] | None = None, **facts: Any) -> Answer:
    given = {"cpu": Cpu(cores=4), "memory": Memory(total=64 * GIB, available=64 * GIB), **facts}
    known = tree or Tree(file=graph(), history=history())
    return answer(ask(linux_facts(**given)), known, choices or {}, text)


# ---------------- what may be asked


def test_what_is_named_takes_the_place_of_what_is_here() -> None:
    found = parse_scenario("cores=64, cache=0.9,servers=8,USE_FLASH_ATTENTION=OFF,USE_NCCL=1", HERE)
    assert (found.cores, found.cache, found.servers) == (64, 0.9, 8)
    assert (found.memory, found.server_cores) == (16.0, 4)
    assert found.switches == {"USE_FLASH_ATTENTION": "0", "USE_NCCL": "1"}


@each_case(
    ("text", "said"),
    [
        ("cores=0", "cores=0: how many cores this machine has is a whole number from 1 to 1,000,000"),
        ("cores=2.5", "cores=2.5: how many cores"),
        ("cores=many", "cores=many: how many cores"),
        (
            "cache=1.5",
            "cache=1.5: the share of compiles that a compiler cache answers is a number from 0 to 1",
        ),
        ("cache=nan", "cache=nan: the share"),
        ("memory=0", "memory=0: GiB that its jobs may take"),
        ("servers=-1", "servers=-1: how many machines"),
        ("server_cores=8", "server_cores are those of servers, and none are named"),
        ("core=3", "core is not one of cores, memory, cache, servers, server_cores; did you mean cores?"),
        ("cores=2,cache=0.5,cores=3", "cores is named twice"),
        ("USE_CUDA=0,USE_CUDA=1", "USE_CUDA is named twice"),
        ("cores", "'cores' names no value"),
        ("cores=2,", "nothing before or behind one of its commas"),
        ("cores=64,,memory=1", "nothing before or behind one of its commas"),
        ("", "it is empty"),
        ("=2", "'=2' names no value"),
        ("USE_CUDA=maybe", "USE_CUDA=maybe: only what is switched on or off can be foreseen"),
        ("BLAS=MKL", "BLAS=MKL: only what is switched on or off"),
    ],
)
def test_what_is_outside_its_kind_is_refused_with_an_example(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_scenario(text, HERE)
    assert said in caught.value.what
    example = caught.value.next_step.partition("--what-if ")[2]
    assert parse_scenario(example, HERE).cores == 64  # the printed example is one


def test_this_machine_is_what_the_plan_reckons_with() -> None:
    memory = Memory(total=32 * GIB, available=20 * GIB)
    cluster = Cluster(url="http://h:10600", conf="c", servers=2, cpus=12)
    here = scenario_here(ask(linux_facts(cpu=Cpu(cores=16, affinity=6), memory=memory, cluster=cluster)))
    assert here == Scenario(cores=6, memory=20.0, server_cores=6)


# ---------------- what is simulated


def test_cores_divide_the_work_until_the_longest_chain() -> None:
    found = asked("cores=1000")
    assert (found.now.wall_seconds, found.now.limited_by) == (70.0, "cores")
    assert (found.then.wall_seconds, found.then.limited_by) == (30.0, "critical path")
    assert found.then.chain[0] == "gen/ops.h" and found.then.chain[-1] == "lib/libc10d.so"
    assert found.now.steps == 24 and found.now.work_seconds == 240.0


def test_memory_holds_jobs_back() -> None:
    """Each compile counts with the table's 2 GiB, and one GiB is left to the system."""
    found = asked("cores=16,memory=9")
    assert found.then.limited_by == "memory" and found.then.memory_peak_bytes == 8 * GIB
    assert asked("cores=16,memory=128").then.limited_by != "memory"


def test_a_cache_answers_always_the_same_files_and_with_a_larger_share_these_and_more() -> None:
    edges = graph().edges
    shares = [choose_hits(range(20), edges, share) for share in (0.0, 0.25, 0.5, 0.9, 1.0)]
    assert [len(each) for each in shares] == [0, 5, 10, 18, 20]
    assert all(less <= more for less, more in zip(shares, shares[1:], strict=False))
    found = asked("cores=1,cache=0.5").then
    warm = next(row.warm for row in load_catalog().cache if (row.tool, row.language) == ("ccache", "c++"))
    assert found.hits == 10 and found.work_seconds == pytest.approx(140 + 100 * warm, abs=1)


def test_a_hit_takes_what_it_took_here_where_that_is_known() -> None:
    steps = {name: (0.5, 10.0) if name.endswith(("cpp.o", "cu.o")) else (10.0,) for name in history().steps}
    known = Tree(file=graph(), history=History(steps=steps))
    assert asked("cores=1,cache=1", known).then.work_seconds == 20 * 0.5 + 40


def test_servers_compile_and_links_stay() -> None:
    found = asked("servers=2,server_cores=8").then
    assert (found.sent, found.jobs, found.steps) == (20, 18, 24)
    assert found.work_seconds == pytest.approx(200 * 1.05 + 40)
    assert asked("servers=0").then.sent == 0
    assert asked("servers=2,cache=1").then.sent == 0


def test_a_thousand_jobs_need_open_files() -> None:
    assert not asked("cores=64,servers=99,server_cores=64").notes
    (note,) = asked("cores=1280").notes
    assert "ulimit -n" in note and "1,280" in note


def test_a_switch_takes_away_what_rows_know_and_what_is_made_of_it_alone() -> None:
    found = asked("USE_DISTRIBUTED=0")
    assert found.then.steps == 21 and found.notes[0].startswith("USE_DISTRIBUTED=0: 3 steps that rows know")
    assert asked("USE_CUDA=0").then.steps == 21


def test_a_submodule_leaves_with_its_switch() -> None:
    file = graph()
    own = Edge(
        outputs=("confu-deps/XNNPACK/CMakeFiles/x.dir/a.c.o",),
        inputs=(f"{ROOT}/third_party/XNNPACK/a.c",),
        explicit=1,
    )
    install = replace(file.edges[-2], inputs=(*file.edges[-2].inputs, own.outputs[0]))
    tree = Tree(file=replace(file, edges=(*file.edges[:-2], own, install)), history=history())
    assert asked("USE_XNNPACK=0", tree).notes[0].startswith("USE_XNNPACK=0: 1 steps")


def test_a_switch_without_rows_is_reported_and_all_is_kept() -> None:
    found = asked("USE_DISTRIBUTD=0,USE_NCCL=1")
    assert found.then == found.now
    assert "all are kept; did you mean USE_DISTRIBUTED?" in found.notes[0]
    assert "what it would add is not in this graph" in found.notes[1]


def test_seconds_are_from_here_then_from_the_log_then_from_rows() -> None:
    edges = [compiled(f"aten/src/ATen/native/f{at}.cpp") for at in range(3)]
    first, second, _ = (edge.outputs[0] for edge in edges)
    tree = Tree(file=graph(), history=History(steps={first: (26.0,)}), logged={first: 1.0, second: 26.0})
    found, known = step_seconds(edges, tree, load_catalog().step_cost, 4)
    assert known == {"history": 1, "log": 1, "rows": 1}
    row = next(row for row in load_catalog().step_cost if row.path == "aten/src/ATen/native/")
    assert list(found) == pytest.approx([26.0, 26.0, 26.0]) and row.seconds != 26.0


def test_steps_that_shared_cores_count_for_their_share() -> None:
    """Three jobs at once on two cores, as `jobs = 3` has them; with servers they did not share any."""
    crowded = history(30.0, PastBuild(finished="", seconds=100.0, steps=10, work=300.0))
    tree, two = Tree(file=graph(), history=crowded), Cpu(cores=2)
    assert asked("cores=1", tree, cpu=two).then.wall_seconds == pytest.approx(24 * 20)
    away = {"distributed compiles": "http://h:10600: 2 servers"}
    assert asked("cores=1", tree, away, cpu=two).then.wall_seconds == pytest.approx(24 * 30)


def test_the_full_build_is_what_is_installed_or_else_the_default() -> None:
    file = graph()
    assert targets(file, None) == ("install",) and targets(file, "c10.o") == ("c10.o",)
    without = replace(file, edges=file.edges[:-2])
    assert targets(replace(without, default=("lib/libc10d.so",)), None) == ("lib/libc10d.so",)
    assert set(targets(without, None)) == {
        f"lib/lib{name}.so" for name in ("torch_cpu", "c10d", "torch_cuda")
    }
    with pytest.raises(UsageError, match="did you mean c10.o"):
        targets(file, "c11.o")


def test_a_circle_which_ninja_refuses_is_not_followed() -> None:
    edges = (
        Edge(outputs=("a.o",), inputs=("b.o",), explicit=1),
        Edge(outputs=("b.o",), inputs=("a.o",), explicit=1),
    )
    file = BuildFile(edges=(*edges, Edge(outputs=("install",), inputs=("a.o",), phony=True)))
    assert asked("cores=2", Tree(file=file, history=History())).then.steps == 2


# ---------------- what is said


def test_both_builds_stand_side_by_side() -> None:
    text = answer_text(asked("cores=64,cache=0.9,servers=8,USE_DISTRIBUTED=0"))
    assert "as it is" in text and "what if" in text and "8 of 4 cores" in text
    assert "Longest chain: " in text and "24 as builds here took" in text
    assert "configuring, packaging and verifying come on top" in text and "USE_DISTRIBUTED=0: 3 steps" in text
    for figure in ("wall time", "critical path", "memory, at most", "limited by"):
        assert figure in text


def test_json_carries_the_figures_with_their_units() -> None:
    figures = to_json(asked("cores=64"))["then"]
    assert {"wall_seconds", "critical_path_seconds", "memory_peak_bytes", "limited_by"} <= set(figures)
    assert set(figures["bounds_seconds"]) == {"critical path", "cores", "memory"}
