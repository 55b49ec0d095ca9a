"""Build variables: the layer that decides each one, and names that are refused or have no effect."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.cuda import cuda_facts, toolkit
from tests.support.for_each import each_case
from tests.support.machines import (
    ask,
    found,
    linux_facts,
    modern_tree,
    plan_of,
    settings,
    statuses,
    tree,
    with_tree,
)
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Choice, Facts, TreeReads
from torchbuild_tasks.plan.idle import check_idle
from torchbuild_tasks.plan.names import unread
from torchbuild_tasks.plan.variables import (
    check_variables,
    decide,
    decide_all,
    is_cuda,
    is_off,
    unset_refused,
)
from torchbuild_tasks.values import replace

NAME = "USE_KINETO"  # the preset dev sets it to 0


def value_of(choices: tuple[Choice, ...], name: str) -> Choice:
    (choice,) = [choice for choice in choices if choice.name == name]
    return choice


def modern(**changes: Any) -> Facts:
    return linux_facts(tree=modern_tree(), **changes)


# Every combination of layers: the first of them that names the variable decides.
LAYERS = ("flag", "environment", "torchbuild.toml", "preset")


@each_case("present", list(itertools.product((True, False), repeat=4)), ids=str)
def test_the_first_layer_that_names_a_variable_decides(present: tuple[bool, ...]) -> None:
    flag, environment, file, preset = present
    question = ask(
        linux_facts(environ={NAME: "environment"} if environment else {}),
        settings(variables={NAME: "file"} if file else {}),
        set=(f"{NAME}=flag",) if flag else (),
        preset="dev" if preset else "full",
    )
    choice = decide(question, NAME)
    first = next((layer for layer, there in zip(LAYERS, present, strict=True) if there), None)
    assert (choice.source if choice else None) == first
    if choice:
        wanted = {"flag": "flag", "environment": "environment", "torchbuild.toml": "file", "preset": "0"}
        assert choice.value == wanted[choice.source]
        assert choice.because
        assert choice in decide_all(question)


def test_the_default_decides_last() -> None:
    choice = value_of(decide_all(ask()), "USE_CUDA")
    assert (choice.value, choice.source) == ("0", "default")


def test_the_last_set_wins() -> None:
    question = ask(set=("USE_MKLDNN=0", "BLAS=OpenBLAS", "USE_MKLDNN=1"))
    assert value_of(decide_all(question), "USE_MKLDNN").value == "1"


@pytest.mark.parametrize(
    ("flags", "environ", "value", "source"),
    [
        ({"cpu": True}, {"USE_CUDA": "1"}, "0", "flag"),
        ({}, {"USE_CUDA": "1"}, "1", "environment"),
        ({"set": ("USE_CUDA=0",), "cpu": True}, {}, "0", "flag"),
        ({}, {}, "0", "default"),
    ],
)
def test_the_device_follows_the_same_precedence(
    flags: dict[str, Any], environ: dict[str, str], value: str, source: str
) -> None:
    choice = decide(ask(linux_facts(environ=environ), **flags), "USE_CUDA")
    assert choice is not None
    assert (choice.value, choice.source) == (value, source)


def test_cpu_in_the_settings_file_decides_the_device() -> None:
    choice = decide(ask(said=settings({"cpu": True})), "USE_CUDA")
    assert choice is not None
    assert (choice.value, choice.source) == ("0", "torchbuild.toml")


@pytest.mark.parametrize("preset", ["dev", "minimal", "full", "debug", "old-gpu"])
def test_a_preset_brings_its_variables_and_says_so(preset: str) -> None:
    question = ask(linux_facts(tree=tree(version="2.0.1")), preset=preset)
    rows = [row for row in question.catalog.preset if row.name == preset and row.os in ("", "linux")]
    wanted = {name: value for row in rows for name, value in row.variables.items()}
    decided = {choice.name: choice for choice in decide_all(question)}
    assert {name: decided[name].value for name in wanted} == wanted
    assert all(decided[name].because.startswith(f"preset {preset}") for name in wanted)
    assert set(decided) - set(wanted) == {"USE_CUDA"}


@pytest.mark.parametrize(
    ("version", "name", "sets"),
    [
        ("2.6.0", "USE_QNNPACK", False),
        ("2.0.1", "USE_QNNPACK", True),
        ("1.4.1", "USE_XNNPACK", False),
        ("1.7.1", "USE_KINETO", False),
        ("2.6.0", "USE_KINETO", True),
        ("1.10.0", "USE_PER_OPERATOR_HEADERS", False),
        ("1.2.0", "USE_PYTORCH_QNNPACK", False),
    ],
)
def test_a_preset_sets_only_what_this_release_reads(version: str, name: str, sets: bool) -> None:
    decided = {choice.name for choice in decide_all(ask(linux_facts(tree=tree(version=version))))}
    assert (name in decided) == sets


def test_what_the_checkout_reads_comes_before_rows() -> None:
    own = tree(version="2.0.1", reads=TreeReads(names=("USE_KINETO",)))
    decided = {choice.name for choice in decide_all(ask(linux_facts(tree=own)))}
    assert decided == {"USE_KINETO", "USE_CUDA"}


def test_no_preset_sets_what_nothing_reads() -> None:
    for row in load_catalog().torch:
        for preset in load_catalog().preset:
            question = ask(linux_facts(tree=tree(version=row.version)), preset=preset.name)
            set_by = [choice.name for choice in decide_all(question) if choice.source == "preset"]
            assert not [name for name in set_by if unread(question, name)], (row.version, preset.name)


def test_a_switch_of_a_preset_says_what_it_saves() -> None:
    question = ask(preset="minimal")
    because = {choice.name: choice.because for choice in decide_all(question)}
    assert "3,455 of 6,135 compiles" in because["USE_XNNPACK"]
    assert because["USE_MKLDNN"].endswith("in a CPU build of 1.13.1")
    assert ": saves " in because["USE_MKLDNN"]
    assert because["USE_PER_OPERATOR_HEADERS"].endswith("an edited operator recompiles fewer")


@pytest.mark.parametrize("flags", [{"set": ("USE_CUDA=1",)}, {"set": ("USE_CUDA=ON",)}, {"cuda": True}])
def test_cpu_contradicts_what_asks_for_cuda(flags: dict[str, Any]) -> None:
    finding = found(check_variables(ask(cpu=True, **flags)), "device")
    assert finding.status == "error"
    assert "contradict" in finding.text
    assert finding.fix


@pytest.mark.parametrize("value", ["0", "OFF", "no", "False", "n"])
def test_cpu_agrees_with_cuda_switched_off(value: str) -> None:
    assert statuses(check_variables(ask(cpu=True, set=(f"USE_CUDA={value}",))), "device") == []


@pytest.mark.parametrize(
    ("value", "off"), [("0", True), ("off", True), ("N", True), ("1", False), ("", False), (None, False)]
)
def test_the_spellings_of_no(value: str | None, off: bool) -> None:
    assert is_off(value) is off


@pytest.mark.parametrize(
    ("flags", "environ"),
    [
        ({"set": ("PYTORCH_BUILD_VERSION=2.8.0",)}, {}),
        ({"set": ("PYTORCH_BUILD_NUMBER=1",)}, {}),
        ({}, {"PYTORCH_BUILD_VERSION": "2.8.0"}),
    ],
)
def test_half_of_the_version_pair_is_refused(flags: dict[str, Any], environ: dict[str, str]) -> None:
    plan = plan_of(linux_facts(environ=environ), **flags)
    finding = found(plan.findings, "version-pair")
    assert plan.verdict == "refuse"
    assert "PYTORCH_BUILD_VERSION" in finding.text
    assert "PYTORCH_BUILD_NUMBER" in finding.text


def test_both_halves_may_come_from_two_layers() -> None:
    facts = linux_facts(environ={"PYTORCH_BUILD_NUMBER": "1"})
    question = ask(facts, set=("PYTORCH_BUILD_VERSION=2.8.0",))
    assert statuses(check_variables(question), "version-pair") == []


@pytest.mark.parametrize(
    ("name", "near"), [("MAX_JBOS", "MAX_JOBS"), ("ONNX_NAMESPAC", "ONNX_NAMESPACE"), ("BLASS", "BLAS")]
)
def test_a_name_that_nothing_reads_names_the_nearest(name: str, near: str) -> None:
    finding = found(check_variables(ask(set=(f"{name}=1",))), "variable")
    assert finding.status == "warn"
    assert name in finding.text
    assert finding.fix == f"Did you mean {near}?"


def test_a_name_that_resembles_nothing_is_set_all_the_same() -> None:
    question = ask(said=settings(variables={"QQQQ": "1"}))
    assert "has no effect" in found(check_variables(question), "variable").fix
    assert value_of(decide_all(question), "QQQQ").source == "torchbuild.toml"


def test_a_name_may_be_read_in_one_era_only() -> None:
    asked = ("JAVA_HOME=/opt/java",)
    assert statuses(check_variables(ask(set=asked)), "variable") == []
    assert statuses(check_variables(ask(modern(), set=asked)), "variable") == ["warn"]


def test_a_name_may_be_read_by_some_versions_only() -> None:
    asked = ("USE_TENSORRT=0",)
    old = with_tree(linux_facts(), version="2.0.1")
    assert statuses(check_variables(ask(old, set=asked)), "variable") == []
    assert statuses(check_variables(ask(set=asked)), "variable") == ["warn"]


REFUSED_IN_2_14 = ("CMAKE_INSTALL_PREFIX", "USE_NIGHTLY", "CMAKE_FRESH", "CMAKE_ONLY", "USE_NINJA")


@pytest.mark.parametrize("name", REFUSED_IN_2_14)
def test_a_refused_name_from_the_user_is_an_error(name: str) -> None:
    for flags, said in (({"set": (f"{name}=1",)}, None), ({}, settings(variables={name: "1"}))):
        plan = plan_of(modern(), said, **flags)
        finding = found(plan.findings, "variable")
        assert (finding.status, plan.verdict) == ("error", "refuse")
        assert name in finding.text
        assert name not in {choice.name for choice in plan.choices}
        assert not [op for op in plan.env if op.name == name and op.op == "set"]


@pytest.mark.parametrize("name", REFUSED_IN_2_14)
def test_a_refused_name_in_the_environment_is_taken_out(name: str) -> None:
    plan = plan_of(modern(environ={name: "1"}))
    finding = found(plan.findings, "variable")
    assert (finding.status, plan.verdict) == ("warn", "warn")
    ops = [op for op in plan.env if op.name == name]
    assert [op.op for op in ops] == ["unset"]
    assert ops[0].because


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("USE_NIGHTLY", "1", "python tools/nightly.py checkout"),
        ("CMAKE_C_COMPILER", "/opt/my gcc", "--set CC='/opt/my gcc'"),
        ("CMAKE_CUDA_ARCHITECTURES", "86", "--arch '8.6;9.0'"),
    ],
)
def test_what_is_refused_has_another_way(name: str, value: str, instead: str) -> None:
    asked = found(plan_of(modern(), set=(f"{name}={value}",)).findings, "variable")
    assert asked.fix.startswith(f"Drop {name}. ") and instead in asked.fix
    there = found(plan_of(modern(environ={name: value})).findings, "variable")
    assert there.fix.startswith(f"Unset {name}. ") and instead in there.fix


@pytest.mark.parametrize(
    ("facts", "name", "status"),
    [
        (linux_facts(), "PATH", "error"),
        (linux_facts(), "Path", "warn"),
        (linux_facts(), "SystemRoot", None),
        (linux_facts(), "LD_LIBRARY_PATH", None),
        (windows_facts(), "Path", "error"),
        (windows_facts(), "SYSTEMROOT", "error"),
    ],
)
def test_a_build_does_not_replace_what_programs_are_found_by(
    facts: Facts, name: str, status: str | None
) -> None:
    for flags, said in (({"set": (f"{name}=/x",)}, None), ({}, settings(variables={name: "/x"}))):
        states = [each.status for each in plan_of(facts, said, **flags).findings if each.id == "variable"]
        assert states == ([status] if status else [])


@pytest.mark.parametrize("name", ["USE_NIGHTLY", "USE_NINJA", "CMAKE_FRESH"])
def test_the_older_era_takes_what_the_newer_refuses(name: str) -> None:
    question = ask(linux_facts(environ={name: "1"}))
    assert unset_refused(question) == ()
    assert value_of(decide_all(question), name).value == "1"


@pytest.mark.parametrize("name", ["CC", "CXX", "CMAKE_BUILD_TYPE", "CMAKE_GENERATOR", "DEBUG", "MAX_JOBS"])
def test_what_is_a_field_of_the_plan_is_listed_once(name: str) -> None:
    plan = plan_of(linux_facts(environ={name: "1" if name in ("DEBUG", "MAX_JOBS") else "x"}))
    assert len([op for op in plan.env if op.name == name]) <= 1
    assert len([choice for choice in plan.choices if choice.name == name]) <= 1


def test_variables_are_listed_by_name() -> None:
    names = [choice.name for choice in decide_all(ask(set=("BLAS=MKL", "WERROR=0", "ATEN_THREADING=OMP")))]
    assert names == sorted(names)
    assert len(names) == len(set(names))


def test_an_invalid_use_cuda_is_reported_once_and_needs_no_toolkit() -> None:
    """CMake's if() takes a word that it does not know for false."""
    plan = plan_of(linux_facts(environ={"USE_CUDA": "maybe"}))
    told = [finding for finding in plan.findings if finding.status in ("warn", "error")]
    assert [(finding.id, finding.status) for finding in told] == [("variable", "warn")]
    assert "USE_CUDA=maybe" in told[0].text


def test_cuda_contradicts_cuda_switched_off() -> None:
    finding = found(check_variables(ask(cuda=True, set=("USE_CUDA=0",))), "device")
    assert finding.status == "error"
    assert "--cuda and --set USE_CUDA=0" in finding.text


@pytest.mark.parametrize("flags", [{"arch": "8.6"}, {"cuda_toolkit": "12.6"}, {"toolset": "14.38"}])
def test_a_flag_without_effect_in_this_build_is_reported(flags: dict[str, Any]) -> None:
    """In torchbuild.toml the same needs no word: it serves builds of every kind."""
    ((name, value),) = flags.items()
    finding = found(tuple(check_idle(ask(**flags))), "device" if name != "toolset" else "flags")
    assert finding.status == "warn"
    where = "on Windows" if name == "toolset" else "with --cuda"
    assert finding.text == f"--{name.replace('_', '-')} {value} has an effect only {where}"
    assert not tuple(check_idle(ask(said=settings(flags))))


@pytest.mark.parametrize(
    "flags",
    [
        {"cuda": True, "arch": "8.0", "set": ("TORCH_CUDA_ARCH_LIST=9.0",)},
        {"jobs": 4, "set": ("MAX_JOBS=8",)},
        {"toolset": "14.38", "set": ("CMAKE_GENERATOR_TOOLSET_VERSION=14.29",)},
    ],
)
def test_a_flag_and_a_set_that_say_different_things_are_refused(flags: dict[str, Any]) -> None:
    findings = [f for f in plan_of(**flags).findings if "contradict each other" in f.text]
    assert [f.status for f in findings] == ["error"]
    name, _, _ = flags["set"][0].partition("=")
    same = next(value for field, value in flags.items() if field not in ("set", "cuda"))
    alike = plan_of(**{**flags, "set": (f"{name}={same}",)})
    assert not [f for f in alike.findings if "contradict" in f.text]


@each_case(
    ("version", "flags", "refused"),
    [
        ("2.6.0", ("USE_LIGHTWEIGHT_DISPATCH=1",), "--set STATIC_DISPATCH_BACKEND=CPU"),
        ("2.6.0", ("USE_LIGHTWEIGHT_DISPATCH=1", "STATIC_DISPATCH_BACKEND=CPU"), ""),
        ("2.6.0", ("USE_LIGHTWEIGHT_DISPATCH=0",), ""),
        ("2.6.0", ("MKL_THREADING=TBB",), "take OMP"),
        ("2.6.0", ("MKLDNN_CPU_RUNTIME=TBB",), "take OMP"),
        ("2.6.0", ("MKL_THREADING=SEQ",), ""),
        ("2.0.1", ("MKL_THREADING=TBB",), "--set USE_TBB=1"),
        ("2.0.1", ("MKL_THREADING=TBB", "USE_TBB=1"), ""),
        ("1.10.0", ("ATEN_THREADING=TBB",), "--set USE_TBB=1"),
        ("1.10.0", ("ATEN_THREADING=TBB", "USE_TBB=1"), ""),
        ("1.10.0", ("ATEN_THREADING=OMP",), ""),
    ],
)
def test_a_variable_with_which_the_build_stops_for_want_of_another(
    version: str, flags: tuple[str, ...], refused: str
) -> None:
    plan = plan_of(with_tree(linux_facts(), version=version), set=flags)
    fixes = [each.fix for each in plan.findings if each.id == "variable" and each.status == "error"]
    assert len(fixes) == bool(refused) and all(refused in fix for fix in fixes)


def test_an_empty_build_type_is_none() -> None:
    assert plan_of(set=("CMAKE_BUILD_TYPE=",)).choices == plan_of().choices


def test_two_build_types_on_the_command_line_contradict() -> None:
    plan = plan_of(build_type="Release", set=("CMAKE_BUILD_TYPE=Debug",))
    assert (found(plan.findings, "variable").status, plan.verdict) == ("error", "refuse")


def test_two_switches_with_which_the_build_stops() -> None:
    both = ("BUILD_LIBTORCH_WHL=1", "BUILD_PYTHON_ONLY=ON")
    finding = next(each for each in plan_of(modern(), set=both).findings if "Conflict" in each.text)
    assert finding.status == "error" and all(each.partition("=")[0] in finding.text for each in both)
    one = plan_of(modern(), set=("BUILD_LIBTORCH_WHL=1", "BUILD_PYTHON_ONLY=0"))
    assert not [each for each in one.findings if "Conflict" in each.text]


@each_case(
    ("flags", "says"),
    [
        ({"cache": "none", "cache_size": "10G"}, "--cache-size 10G has an effect only with a compiler cache"),
        ({"cache": "none", "cache_dir": "/c"}, "--cache-dir /c has an effect only with a compiler cache"),
        ({"cache": "ccache", "cache_read_only": True}, "--cache-read-only has an effect only with a shared"),
        ({"offline": True, "mirror": "https://m"}, "only where something may be downloaded"),
        ({"require_hashes": True, "allow_http": True}, "--allow-http has an effect only without"),
        ({"no_patches": True, "patch_dir": "/p"}, "--patch-dir /p has an effect only without --no-patches"),
        ({"preset": "old-gpu"}, "--preset old-gpu has an effect only with --cuda"),
        ({"from_wheel": "auto", "linker": "lld"}, "--from-wheel compiles nothing"),
        ({"from_wheel": "auto", "build_type": "Debug"}, "--from-wheel compiles nothing"),
        ({"from_wheel": "auto", "cuda": True, "arch": "8.6"}, "--from-wheel compiles nothing"),
        (
            {"set": ("TORCH_CUDA_ARCH_LIST=8.6",)},
            "--set TORCH_CUDA_ARCH_LIST=8.6 has an effect only with --cuda",
        ),
        ({"from_wheel": "auto", "preset": "minimal"}, "--from-wheel compiles nothing"),
        ({"from_wheel": "auto", "jobs": 4}, "--from-wheel compiles nothing"),
        ({"target": "c10", "with_": ("torchvision",)}, "--target installs nothing"),
        ({"set": ("CUDA_HOME=/opt/cuda",)}, "--set CUDA_HOME=/opt/cuda has an effect only with --cuda"),
    ],
)
def test_a_flag_that_another_one_makes_void_is_reported(flags: dict[str, Any], says: str) -> None:
    told = list(check_idle(ask(**flags)))
    assert len(told) == 1 and told[0].status == "warn"
    assert says in told[0].text


@each_case(
    "flags",
    [
        {"cache": "redis://h", "cache_read_only": True},
        {"cache_size": "10G"},
        {"offline": True, "mirror": "file:///m"},
        {"preset": "old-gpu", "cuda": True},
        {"preset": "minimal"},
        {"from_wheel": "auto"},
        {"from_wheel": "auto", "jobs": 4, "with_extension": ("xformers",)},
        {"from_wheel": "auto", "auto": True, "jobs": 4, "cache": "ccache", "linker": "lld"},
    ],
)
def test_a_flag_that_does_something_is_not(flags: dict[str, Any]) -> None:
    assert not list(check_idle(ask(**flags)))


@each_case(
    ("flags", "instead"),
    [
        ({"cpu": True, "arch": "8.9"}, "put --cuda in the place of --cpu."),
        ({"set": ("USE_CUDA=0",), "arch": "8.9"}, "put --cuda in the place of --set USE_CUDA=0."),
        ({"arch": "8.9"}, "add --cuda."),
    ],
)
def test_a_fix_does_not_contradict_the_command_line(flags: dict[str, Any], instead: str) -> None:
    (finding,) = check_idle(ask(**flags))
    assert finding.fix == f"Drop it, or {instead}"


def test_where_no_toolkit_is_here_the_way_to_cuda_names_one() -> None:
    flags: dict[str, Any] = {"set": ("TORCH_CUDA_ARCH_LIST=8.6",)}
    (finding,) = check_idle(ask(cuda_facts(tree=tree(version="2.9.1")), **flags))
    assert finding.fix == "Drop it, or add --cuda --cuda-toolkit pypi:12.8."
    (finding,) = check_idle(ask(cuda_facts(toolkit("12.8"), tree=tree(version="2.9.1")), **flags))
    assert finding.fix == "Drop it, or add --cuda."


@each_case(
    ("values", "variables", "counts"),
    [
        ({"arch": "8.6"}, {"TORCH_CUDA_ARCH_LIST": "8.9"}, "arch"),
        ({"arch": "8.6"}, {"TORCH_CUDA_ARCH_LIST": "8.6"}, ""),
        ({"jobs": 3}, {"MAX_JOBS": "4"}, "jobs"),
        ({"cuda_toolkit": "12.8"}, {"CUDA_HOME": "/usr/local/cuda-12.4"}, "cuda-toolkit"),
        ({"cuda_toolkit": "12.8"}, {"CUDA_HOME": "/usr/local/cuda-12.8"}, ""),
        ({"cuda": True}, {"USE_CUDA": "0"}, "cuda"),
        ({"cpu": True}, {"USE_CUDA": "ON"}, "cpu"),
        ({"cpu": True}, {"USE_CUDA": "0"}, ""),
    ],
)
def test_a_settings_file_that_contradicts_itself_is_told_what_counts(
    values: dict[str, Any], variables: dict[str, str], counts: str
) -> None:
    said = settings(values, variables)
    told = [each.text for each in check_variables(ask(said=said)) if "contradicts itself" in each.text]
    assert len(told) == bool(counts) and all(text.endswith(f"; {counts} counts") for text in told)
    if "jobs" in values:
        assert not [f for f in check_variables(ask(said=said, jobs=2)) if "contradicts itself" in f.text]
        assert [c.value for c in plan_of(said=said).choices if c.name == "jobs"] == ["3"]
    if {"cuda", "cpu"} & values.keys():
        assert is_cuda(ask(said=said)) == ("cuda" in values)


@each_case(
    ("values", "variables", "places", "cuda"),
    [
        ({"cuda": True}, {"USE_CUDA": "0"}, {"cuda": "/home/me/wide.toml"}, False),
        ({"cpu": True}, {"USE_CUDA": "1"}, {"cpu": "/home/me/wide.toml"}, True),
        ({"cuda": True}, {"USE_CUDA": "0"}, {"set.USE_CUDA": "/home/me/wide.toml"}, True),
        ({"cuda": True}, {"USE_CUDA": "0"}, {}, True),
    ],
)
def test_what_the_user_wide_file_says_is_weaker_by_whatever_name(
    values: dict[str, Any], variables: dict[str, str], places: dict[str, str], cuda: bool
) -> None:
    assert is_cuda(ask(said=replace(settings(values, variables), places=places))) == cuda


def test_threads_by_openmp_need_openmp() -> None:
    for words, told in ((("USE_OPENMP=0", "ATEN_THREADING=OMP"), 1), (("ATEN_THREADING=OMP",), 0)):
        found = [each for each in plan_of(set=words).findings if "one thread" in each.text]
        assert [each.status for each in found] == ["warn"] * told
