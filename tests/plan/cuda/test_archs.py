"""The choice of architectures, and the errors before anything is compiled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ask, found, plan_of, settings, statuses, tree, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Facts
from torchbuild_tasks.plan.cuda.archs import arch_list, capability, choose_archs, read_archs, runs_on
from torchbuild_tasks.plan.cuda.devices import devices
from torchbuild_tasks.plan.cuda.toolkit import choose_toolkit
from torchbuild_tasks.plan.cuda.values import ChosenArchs
from torchbuild_tasks.values import replace

ID = "architectures"


def decided(facts: Facts, said: Any = None, **flags: Any) -> ChosenArchs:
    question = ask(facts, said, cuda=True, **flags)
    return choose_archs(question, choose_toolkit(question), devices(question))


def chosen(facts: Facts, said: Any = None, **flags: Any) -> str:
    choice = decided(facts, said, **flags).choice
    assert choice is not None
    return choice.value


def machine(*capabilities: str, cuda: str = "13.0", **changes: Any) -> Facts:
    """A workstation with one GPU of each capability."""
    gpus = tuple(
        gpu(each, bus=f"0000:0{number}:00.0", uuid=f"GPU-{number}")
        for number, each in enumerate(capabilities, 1)
    )
    return cuda_facts(toolkit(cuda), gpus=gpus, **changes)


def test_auto_is_the_devices_without_ptx() -> None:
    assert chosen(machine("8.6")) == "8.6"
    assert chosen(machine("9.0", "8.6", "8.6")) == "8.6;9.0"


def test_the_devices_are_named_as_the_reason() -> None:
    choice = decided(machine("8.6")).choice
    assert choice is not None
    assert "GPU of 8.6 (8.6)" in choice.because


@pytest.mark.parametrize(("device", "cuda", "list_"), [("12.0", "12.4", "9.0+PTX"), ("9.0", "11.8", "9.0")])
def test_a_device_that_exceeds_the_toolkit_gets_ptx(device: str, cuda: str, list_: str) -> None:
    assert chosen(machine(device, cuda=cuda)) == list_


def test_a_newer_device_of_a_major_gets_the_cubin_of_its_older_sibling() -> None:
    assert chosen(machine("12.1", cuda="12.8")) == "12.0+PTX"


def test_a_device_that_the_toolkit_no_longer_knows_is_refused_with_the_one_that_does() -> None:
    plan = plan_of(machine("6.1", cuda="13.0"), cuda=True)
    finding = found(plan.findings, ID)
    assert (plan.verdict, finding.status) == ("refuse", "error")
    assert "CUDA 13.0 does not compile for 6.1" in finding.text
    assert "--cuda-toolkit pypi:12.6" in finding.fix, "12.8 and 12.9 warn about it"


def test_a_capability_that_is_too_new_for_the_toolkit() -> None:
    finding = found(plan_of(machine("8.6", cuda="12.4"), cuda=True, arch="8.6;12.0").findings, ID)
    assert finding.status == "error"
    assert "CUDA 12.8 to" in finding.text
    assert "pypi:12.8" in finding.fix


def test_another_name_of_an_architecture_is_told() -> None:
    """Thor is 11.0 from CUDA 13.0 on; torch 2.9 knows that name alone, and 2.8 the other."""
    row = next(row for row in load_catalog().cuda if row.version == "12.9")
    facts = cuda_facts(toolkit("12.9", archs=row.archs), tree=tree(version="2.9.1"))
    plan = plan_of(facts, cuda=True, arch="11.0")
    (choice,) = [each for each in plan.choices if each.name == "TORCH_CUDA_ARCH_LIST"]
    assert choice.value == "10.1" and "11.0 is 10.1 in CUDA 12.9" in choice.because
    fix = found(plan.findings, "architectures").fix
    assert "Take torch 2.8: it fits with CUDA 12.9; or take --cuda-toolkit pypi:13" in fix


@pytest.mark.parametrize(("asked", "cuda", "list_"), [("10.1", "13.0", "11.0"), ("11.0", "12.8", "10.1")])
def test_thor_has_two_names(asked: str, cuda: str, list_: str) -> None:
    assert chosen(machine(cuda=cuda), arch=asked) == list_


def test_the_flag_beats_the_variable_beats_the_devices() -> None:
    facts = machine("8.6", environ={"TORCH_CUDA_ARCH_LIST": "8.0"})
    assert chosen(facts) == "8.0"
    assert chosen(facts, arch="9.0") == "9.0"
    assert chosen(machine("8.6"), settings(variables={"TORCH_CUDA_ARCH_LIST": "7.5"})) == "7.5"


def test_one_choice_of_the_name_stands_in_the_plan() -> None:
    facts = machine("8.6", environ={"TORCH_CUDA_ARCH_LIST": "8.0"})
    plan = plan_of(facts, cuda=True, arch="9.0")
    assert [c.value for c in plan.choices if c.name == "TORCH_CUDA_ARCH_LIST"] == ["9.0"]
    assert [op.value for op in plan.env if op.name == "TORCH_CUDA_ARCH_LIST"] == ["9.0"]


def test_without_a_gpu_the_common_ones_with_a_warning() -> None:
    made = decided(machine(cuda="12.8"))
    assert made.guessed
    assert chosen(machine(cuda="12.8")) == "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
    plan = plan_of(machine(cuda="12.8"), cuda=True)
    assert statuses(plan.findings, ID) == ["warn"]
    assert "--arch" in found(plan.findings, ID).fix


def test_native_needs_a_gpu() -> None:
    plan = plan_of(machine(), cuda=True, arch="native")
    assert statuses(plan.findings, ID) == ["error"]
    fix = found(plan.findings, "architectures").fix
    assert "common" in fix and "native" not in fix and "auto" not in fix
    assert chosen(machine("8.6"), arch="native") == "8.6"


@pytest.mark.parametrize(
    ("torch", "split", "cuda", "number"),
    [
        ("1.7.1", False, "11.1", 7),
        ("1.7.1", False, "11.0", 0),
        ("1.10.0", False, "11.3", 7),
        ("1.10.0", True, "11.3", 0),
        ("2.6.0", False, "12.6", 0),
    ],
)
def test_more_than_libtorch_cuda_can_be_linked_with(torch: str, split: bool, cuda: str, number: int) -> None:
    facts = replace(machine("8.6", cuda=cuda), tree=tree(version=torch))
    more = ("BUILD_SPLIT_CUDA=1",) if split else ()
    plan = plan_of(facts, cuda=True, arch="5.0;5.2;6.0;6.1;7.0;7.5;8.0", set=more)
    told = [each.text for each in plan.findings if "too large to be linked" in each.text]
    assert [text.partition(" ")[0] for text in told] == [str(number)] * bool(number)


@pytest.mark.parametrize(("number", "status"), [(9, []), (10, ["warn"])])
def test_nine_are_linked_since_torch_2(number: int, status: list[str]) -> None:
    archs = ["5.0", "5.2", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0"][:number]
    plan = plan_of(replace(machine(cuda="12.6"), tree=tree(version="2.6.0")), cuda=True, arch=";".join(archs))
    told = [each for each in plan.findings if "too large to be linked" in each.text]
    assert [each.status for each in told] == status
    assert all(f"alone: --arch {archs[-1]}" in each.fix for each in told)


def test_common_can_be_asked_for() -> None:
    facts = machine("8.6", cuda="13.0")
    assert chosen(facts, arch="common") == "7.5;8.0;8.6;9.0;10.0;12.0+PTX"
    arm = replace(facts, host=replace(facts.host, arch="aarch64"))
    assert chosen(arm, arch="common") == "8.0;9.0;10.0;12.0+PTX"


@pytest.mark.parametrize("arch", [None, "native"])
def test_what_is_hidden_from_programs_is_compiled_for_all_the_same(arch: str | None) -> None:
    """CUDA_VISIBLE_DEVICES is of run time: shells for tests on the CPU set it to nothing."""
    plan = plan_of(cuda_facts(toolkit(), gpus=(gpu(),), visible=""), cuda=True, arch=arch)
    choice = next(each for each in plan.choices if each.name == "TORCH_CUDA_ARCH_LIST")
    assert choice.value == "8.6" and "CUDA_VISIBLE_DEVICES= hides" in choice.because
    assert "error" not in statuses(plan.findings, ID)
    assert [each.status for each in plan.findings if "hides every GPU" in each.text] == ["warn"]


def test_an_unknown_word_is_refused_with_the_nearest() -> None:
    finding = found(plan_of(machine("8.6"), cuda=True, arch="Amper").findings, ID)
    assert finding.status == "error"
    assert "did you mean Ampere?" in finding.text


def test_a_deprecated_one_is_a_note_and_no_warning() -> None:
    """Upstream shipped such pairs, and nothing betters it (a K80 with 11.3, which 11.8 still compiles)."""
    finding = found(plan_of(machine("7.0", cuda="12.8"), cuda=True).findings, ID)
    assert (finding.status, finding.fix) == ("ok", "")
    assert "calls it deprecated" in finding.text


def test_a_weak_card_beside_a_good_one_can_be_left_out() -> None:
    cards = (gpu(), gpu("6.1", name="NVIDIA GeForce GT 1030", bus="0000:02:00.0", uuid="GPU-2"))
    facts = cuda_facts(toolkit(version="13.0"), gpus=cards, tree=tree(version="2.9.1"))
    finding = found(plan_of(facts, cuda=True).findings, ID)
    assert finding.status == "error" and finding.fix.endswith("Or leave it out: --arch 8.6.")
    left = plan_of(facts, cuda=True, arch="8.6")
    about = [each for each in left.findings if "GT 1030" in each.text and each.id != "gpu"]
    assert [each.status for each in about] == ["ok"] and "is left out by" in about[0].text


def test_one_that_the_build_of_this_torch_cannot_read() -> None:
    """Up to 2.5 its CMake reads one digit before the dot."""
    facts = machine("12.0", cuda="12.8", tree=tree(version="2.5.0"))
    assert chosen(facts) == "9.0+PTX"
    plan = plan_of(facts, cuda=True, arch="12.0")
    assert statuses(plan.findings, ID) == ["error"]
    assert "cannot read 12.0" in found(plan.findings, ID).text


@pytest.mark.parametrize(("torch", "arch", "ptx"), [("2.6.0", "12.0f", "9.0"), ("1.13.1", "9.0a", "8.6")])
def test_that_it_cannot_be_read_is_said_before_what_the_toolkit_lacks(
    torch: str, arch: str, ptx: str
) -> None:
    cuda = "12.4" if torch == "2.6.0" else "11.8"
    facts = machine("8.6", cuda=cuda, tree=tree(version=torch))
    errors = [
        each
        for each in plan_of(facts, cuda=True, arch=arch).findings
        if (each.id, each.status) == (ID, "error")
    ]
    assert [f"cannot read {arch}" in each.text for each in errors] == [True]
    assert errors[0].fix.endswith(f"--arch {ptx}+PTX")
    assert not [
        each for each in plan_of(facts, cuda=True, arch=f"{ptx}+PTX").findings if "does not know" in each.text
    ]


def test_one_that_only_its_extensions_do_not_know() -> None:
    facts = machine("12.0", cuda="12.8", tree=tree(version="2.6.0"))
    finding = found(plan_of(facts, cuda=True).findings, ID)
    assert finding.status == "warn"
    assert "does not know 12.0" in finding.text


def test_a_device_without_code_is_reported() -> None:
    texts = [f.text for f in plan_of(machine("8.6"), cuda=True, arch="9.0").findings if f.id == ID]
    assert any("no kernel image" in text for text in texts)


def test_so_many_that_the_link_overflows() -> None:
    many = "5.0;5.2;6.0;6.1;7.0;7.5;8.0;8.6;8.9;9.0"
    plan = plan_of(machine("8.6", cuda="12.4"), cuda=True, arch=many)
    assert any("relocation" in f.text for f in plan.findings if f.id == ID)


def test_the_cost_of_more_is_shown() -> None:
    choice = decided(machine("8.6"), arch="8.0;8.6;9.0").choice
    assert choice is not None
    assert "about 1.8 times one" in choice.because


@each_case(
    ("list_", "device", "runs"),
    [
        ("8.0", "8.6", True),
        ("8.6", "8.0", False),
        ("8.6", "9.0", False),
        ("8.6+PTX", "9.0", True),
        ("9.0+PTX", "8.6", False),
        ("9.0a", "9.0", True),
        ("9.0a", "10.0", False),
        ("10.0f", "10.3", True),
        ("10.0f", "12.0", False),
        ("9.0", "12.0", False),
        ("8.6", "8.7", False),
        ("8.6+PTX", "8.7", True),
        ("8.7", "8.7", True),
        ("8.7", "8.9", False),
    ],
)
def test_what_runs_where(list_: str, device: str, runs: bool) -> None:
    """Cubins run on later minors of their major, PTX on everything later, `a` code on one alone."""
    assert runs_on(ask(), read_archs(ask(), list_), capability(device)) is runs


def test_a_letter_may_be_large() -> None:
    assert arch_list(read_archs(ask(), "9.0A+ptx")) == "9.0a+PTX"
    assert capability("9.0A") == capability("9.0a")


@pytest.mark.parametrize(
    ("code", "cuda", "first"),
    [
        ("9.0a", "11.8", "12.0"),
        ("10.0f", "12.8", "12.9"),
        ("10.0a", "12.6", "12.8"),
        ("12.0f", "12.8", "12.9"),
    ],
)
def test_code_for_one_gpu_needs_the_first_toolkit_that_has_it(code: str, cuda: str, first: str) -> None:
    def with_cuda(version: str) -> Facts:
        listed = next(row.archs for row in load_catalog().cuda if row.version == version)
        return cuda_facts(toolkit(version, archs=listed), gpus=(gpu("8.6"),), tree=tree(version="2.9.0"))

    plan = plan_of(with_cuda(cuda), cuda=True, arch=code)
    finding = next(each for each in plan.findings if each.id == ID and each.status == "error")
    assert f"does not compile for {code}" in finding.text and f"CUDA {first} to " in finding.text
    after = plan_of(with_cuda(first), cuda=True, arch=code)
    assert not [each for each in after.findings if each.id == ID and each.status == "error"]


def test_code_for_a_family_is_read_by_the_build_and_not_by_extensions() -> None:
    facts = with_tree(cuda_facts(toolkit("13.0")), version="2.11.0")
    for word, warned in (("12.0f", True), ("12.0", False), ("12.0a", False)):
        plan = plan_of(facts, cuda=True, arch=word)
        found = [each for each in plan.findings if each.id == "architectures" and each.status == "warn"]
        assert len(found) == warned and all("--arch 12.0" in each.fix for each in found)


@pytest.mark.parametrize(
    ("arch", "cuda", "refused"),
    [("9.0f", "13.0", True), ("8.9a", "13.0", True), ("9.0a", "13.0", False), ("10.0f", "13.0", False)],
)
def test_a_letter_that_no_toolkit_has_behind_that_number(arch: str, cuda: str, refused: bool) -> None:
    """Of 9.0 there is an a alone; f is there from 10.0 on, with CUDA 12.9."""
    facts = cuda_facts(toolkit(cuda), gpus=(gpu("9.0"),), tree=tree(version="2.9.1"))
    plan = plan_of(facts, cuda=True, arch=arch)
    errors = [each for each in plan.findings if each.id == "architectures" and each.status == "error"]
    assert bool(errors) is refused
    assert all(each.fix == f"Without the letter: --arch {arch[:-1]}" for each in errors)
