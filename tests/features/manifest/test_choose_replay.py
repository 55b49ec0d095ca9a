"""What a recorded build is planned from again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.errors import NotBuilt
from torchbuild_tasks.features.builds.named_build import Named
from torchbuild_tasks.features.manifest.choose import not_carried, pin_facts, pins, request_again, settings_of
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.features.manifest.replay import load_named
from torchbuild_tasks.features.manifest.verb import ReplayRequest
from torchbuild_tasks.model import Cpu, EnvOp, Store
from torchbuild_tasks.model.history import PastPeak
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import check_settings
from torchbuild_tasks.values import replace

ONE = read_manifest(Path(__file__).with_name("schema-1.json").read_bytes(), "x.json")


def test_recorded_flags_are_repeated_and_present_ones_win() -> None:
    recorded = {"preset": "debug", "set": ["USE_A=1"], "jobs": 7, "yes": True, "source": "/x", "clean": True}
    asked = request_again(recorded, BuildRequest(jobs=2, set=("USE_B=1",)), "/here")
    assert asked == request_again(
        recorded, ReplayRequest(manifest="a.json", jobs=2, set=("USE_B=1",)), "/here"
    )
    wanted = BuildRequest(preset="debug", set=("USE_A=1", "USE_B=1"), jobs=2, source="/here")
    assert asked == wanted


def test_what_cannot_be_repeated_is_named() -> None:
    recorded = {"warp": 9, "cache": "redis://***@h", "set": ["A_TOKEN=***", "USE_A=1"]}
    manifest = replace(ONE, request=recorded, redacted=("A_TOKEN",))
    assert not_carried(manifest) == ("flag warp", "A_TOKEN")
    assert request_again(manifest.request, BuildRequest(), ".") == BuildRequest(set=("USE_A=1",), source=".")


def test_torchbuild_toml_of_then_is_read_as_if_it_were_here() -> None:
    values = {"cuda": True, "with_helper": ["mkl"]}
    recorded = {"path": "/t.toml", "values": values, "variables": {"USE_A": "1"}, "helpers": []}
    settings = settings_of(replace(ONE, settings=recorded))
    assert settings.path == "/t.toml"
    assert settings.values == {"cuda": True, "with_helper": ("mkl",)}
    assert settings.variables == {"USE_A": "1"}


def test_free_memory_of_then_is_taken_on_a_machine_of_that_size_only() -> None:
    facts = linux_facts(environ={"USE_B": "1", "MY_TOKEN": "mine"})
    peaks = (PastPeak(source="/s", build_type="Release", kind="C++", bytes=9, count=99),)
    less = replace(facts.memory, available=1 << 30)
    manifest = replace(
        ONE,
        facts=replace(
            ONE.facts,
            cpu=facts.cpu,
            memory=less,
            store=Store(folder="/s", peaks=peaks),
            environ={"USE_A": "1", "T_TOKEN": "***"},
        ),
    )
    same = pin_facts(facts, manifest)
    assert same.memory == less
    assert same.environ == {"USE_A": "1", "MY_TOKEN": "mine"}
    other = pin_facts(facts, replace(manifest, facts=replace(manifest.facts, cpu=Cpu(cores=3))))
    assert (other.memory, other.cpu) == (facts.memory, facts.cpu)


def test_values_that_would_come_out_otherwise_are_pinned_but_no_places_of_another_machine() -> None:
    facts, plan = linux_facts(), plan_of()
    compiler = next(tool.path for tool in facts.compilers if tool.path)
    env = (
        EnvOp(op="set", name="USE_KINETO", value="9"),
        EnvOp(op="set", name="CXX", value="/opt/gcc/bin/g++"),
        EnvOp(op="set", name="CC", value=str(compiler)),
        EnvOp(op="set", name="MAX_JOBS", value="64"),
        EnvOp(op="set", name="MKL_ROOT", value="/opt/mkl"),
        EnvOp(op="prepend", name="PATH", value="/opt/bin"),
    )
    wanted = {op.name: op.value for op in plan.env if op.op == "set"}
    expected = ["USE_KINETO=9"] + ([f"CC={compiler}"] if wanted.get("CC") != compiler else [])
    assert list(pins(replace(ONE, env=env), plan, facts)) == expected
    assert pins(replace(ONE, env=plan.env), plan, facts) == ()


def test_a_named_build_that_was_not_made_yet_has_no_manifest(tmp_path: Path) -> None:
    settings = check_settings(str(tmp_path / "torchbuild.toml"), {"builds": {"debug": {}}}, {})
    with pytest.raises(NotBuilt, match="debug was not built yet"):
        load_named("debug", Named(settings=settings, main=tmp_path / "src"))
