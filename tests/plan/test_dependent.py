"""Switches that depend on others: refused, switched off, and left out of the verification."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ask, linux_facts, plan_of, settings, tree, with_tree
from tests.support.windows import windows_facts
from torchbuild_tasks.model import BuildPlan, Finding, Host, Switch, TreeReads
from torchbuild_tasks.plan.dependent import State
from torchbuild_tasks.values import replace

SWITCHES = {
    "USE_CUDA": ("ON", ""),
    "USE_CUDNN": ("ON", "USE_CUDA"),
    "USE_DISTRIBUTED": ("ON", ""),
    "USE_GLOO": ("ON", "USE_DISTRIBUTED"),
    "USE_NCCL": ("ON", "USE_CUDA OR USE_ROCM;UNIX;NOT APPLE"),
    "USE_C10D_NCCL": ("ON", "USE_DISTRIBUTED;USE_NCCL"),
    "USE_ROCM": ("ON", "LINUX"),
}
READS = TreeReads(
    names=tuple(SWITCHES),
    switches=tuple(
        Switch(name=name, default=default, needs=needs, place=f"CMakeLists.txt:{number}")
        for number, (name, (default, needs)) in enumerate(SWITCHES.items(), 1)
    ),
)


def told(plan: BuildPlan) -> list[Finding]:
    return [finding for finding in plan.findings if finding.id == "switches"]


def test_what_this_checkout_does_not_read_needs_nothing() -> None:
    """That nothing reads it is said already; a row of other releases makes no error of it."""
    facts = linux_facts(tree=tree(version="2.6.0", reads=READS))
    plan = plan_of(facts, cpu=True, set=("USE_FBGEMM_GENAI=1",))
    assert not told(plan)
    assert [f.status for f in plan.findings if "USE_FBGEMM_GENAI" in f.text] == ["warn"]


@pytest.mark.parametrize("reads", [READS, None], ids=["the checkout's own", "rows"])
@pytest.mark.parametrize(
    ("flags", "needs", "advice"),
    [
        ({"cpu": True, "set": ("USE_NCCL=1",)}, "USE_CUDA", {"cuda": True, "set": ("USE_NCCL=1",)}),
        ({"set": ("USE_CUDNN=1",)}, "USE_CUDA", {}),
        (
            {"set": ("USE_GLOO=1", "USE_DISTRIBUTED=0")},
            "USE_DISTRIBUTED",
            {"set": ("USE_GLOO=1", "USE_DISTRIBUTED=1")},
        ),
    ],
)
def test_a_flag_that_cannot_be_is_refused_and_the_advice_works(
    reads: TreeReads | None, flags: dict[str, Any], needs: str, advice: dict[str, Any]
) -> None:
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu(),), tree=tree(reads=reads))
    plan = plan_of(facts, **flags)
    (finding,) = told(plan)
    assert finding.status == "error"
    assert needs in finding.text
    assert "--cuda" in finding.fix or f"--set {needs}=1" in finding.fix
    assert told(plan_of(facts, **advice)) == []
    name = flags["set"][0].partition("=")[0]
    assert not [each for each in plan.expectations if each.key == name and each.wanted == "1"]


@pytest.mark.parametrize(
    ("flags", "end"),
    [
        ({"set": ("USE_GLOO=1", "USE_DISTRIBUTED=0")}, ", and USE_DISTRIBUTED is off"),
        ({"cpu": True, "set": ("USE_NCCL=1",)}, ", and USE_CUDA, USE_ROCM are off"),
    ],
)
def test_what_is_off_is_named(flags: dict[str, Any], end: str) -> None:
    (finding,) = told(plan_of(with_tree(linux_facts(), reads=READS), **flags))
    assert finding.text.endswith(end)


@pytest.mark.parametrize("reads", [READS, None], ids=["the checkout's own", "rows"])
def test_the_advice_leads_to_what_is_off_at_the_root(reads: TreeReads | None) -> None:
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu(),), tree=tree(reads=reads))
    (finding,) = told(plan_of(facts, set=("USE_C10D_NCCL=1",)))
    assert finding.fix.endswith("or build with --cuda.")
    assert not told(plan_of(facts, cuda=True, set=("USE_C10D_NCCL=1",)))


@pytest.mark.parametrize("name", ["USE_PYTORCH_METAL", "USE_COREML_DELEGATE"])
def test_what_is_for_apple_alone_is_refused(name: str) -> None:
    (finding,) = told(plan_of(set=(f"{name}=1",)))
    assert finding.status == "error" and finding.fix == f"Drop {name}."
    assert not told(plan_of(set=(f"{name}=0",)))


def test_one_of_a_file_is_switched_off_with_a_word_and_takes_others_along() -> None:
    """The same torchbuild.toml serves CPU and CUDA builds."""
    facts = with_tree(linux_facts(), reads=READS)
    plan = plan_of(facts, settings(variables={"USE_NCCL": "1", "USE_C10D_NCCL": "ON"}))
    assert [finding.status for finding in told(plan)] == ["warn", "warn"]
    values = {choice.name: choice for choice in plan.choices}
    assert values["USE_NCCL"].value == values["USE_C10D_NCCL"].value == "0"
    assert "CMakeLists.txt:5" in values["USE_NCCL"].because
    (promise,) = [each for each in plan.expectations if each.key == "USE_NCCL"]
    assert promise.wanted == "0"


def test_what_is_not_known_is_left_alone() -> None:
    switch = Switch(name="USE_X", default="ON", place="CMakeLists.txt:1", needs="SOME_FOUND AND NOT APPLE")
    facts = with_tree(linux_facts(), reads=TreeReads(switches=(switch,), names=("USE_X",)))
    assert told(plan_of(facts, set=("USE_X=1",))) == []


@each_case(
    ("condition", "holds"),
    [
        ("LINUX", True),
        ("NOT LINUX", False),
        ("WIN32 OR UNIX", True),
        ("WIN32 OR UNIX AND APPLE", False),
        ("(WIN32 OR UNIX) AND NOT APPLE", True),
        ("NOT (LINUX AND CPU_INTEL)", False),
        ("X_FOUND", None),
        ("X_FOUND AND WIN32", False),
        ("X_FOUND OR LINUX", True),
        ('CMAKE_VERSION VERSION_LESS "3.16"', None),
        ("NOT CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 11.6 AND WIN32", False),
        ("", None),
    ],
)
def test_a_condition_of_cmake(condition: str, holds: bool | None) -> None:
    facts = linux_facts(host=Host(os="linux", arch="x86_64"))
    assert State(ask(facts), {}).holds(condition) is holds


@pytest.mark.parametrize("reads", [READS, None], ids=["the checkout's own", "rows"])
def test_cuda_and_rocm_exclude_each_other(reads: TreeReads | None) -> None:
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu("8.6"),), tree=tree(reads=reads))
    (finding,) = told(plan_of(facts, cuda=True, set=("USE_ROCM=1",)))
    assert finding.status == "error"
    assert "USE_CUDA off" in finding.text
    plan = plan_of(replace(facts, environ={"USE_ROCM": "1"}), cuda=True)
    assert [each.status for each in told(plan)] == ["warn"]
    assert {op.value for op in plan.env if op.name == "USE_ROCM"} == {"0"}


@pytest.mark.parametrize("name", ["USE_ROCM", "USE_XPU"])
def test_a_device_without_a_plan_is_reported(name: str) -> None:
    (finding,) = told(plan_of(linux_facts(environ={name: "1"})))
    assert finding.status == "warn"
    assert f"{name}=1" in finding.text
    assert not told(plan_of(linux_facts(environ={name: "0"})))


@pytest.mark.parametrize("needs", ["USE_DISTRIBUTED", ""])
def test_what_cmake_switches_off_on_windows_is_off_whatever_its_own_condition_says(needs: str) -> None:
    """CMakeLists.txt itself sets USE_TENSORPIPE to off there, behind its option."""
    switches = (*READS.switches, Switch(name="USE_TENSORPIPE", default="ON", needs=needs, place="x"))
    reads = replace(READS, names=(*READS.names, "USE_TENSORPIPE"), switches=switches)
    facts = with_tree(windows_facts(), reads=reads)
    (finding,) = told(plan_of(facts, set=("USE_TENSORPIPE=1",)))
    assert (finding.status, "needs Linux" in finding.text) == ("error", True)
    assert told(plan_of(with_tree(linux_facts(), reads=reads), set=("USE_TENSORPIPE=1",))) == []
    assert told(plan_of(facts)) == []


@pytest.mark.parametrize(("name", "processor"), [("USE_FBGEMM", "aarch64"), ("USE_TENSORPIPE", "x86_64")])
def test_what_cmake_finds_out_by_itself_is_no_switch_to_set(name: str, processor: str) -> None:
    facts = with_tree(windows_facts(host=Host(os="windows", arch=processor)), version="2.9.1", reads=None)
    (finding,) = told(plan_of(facts, set=(f"{name}=1",)))
    assert (finding.status, finding.fix) == ("error", f"Drop {name}.")
