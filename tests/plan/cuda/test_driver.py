"""Findings about drivers that cannot run the result."""

from __future__ import annotations

import re
from typing import Any

import pytest
from packaging.version import Version

from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, modern_tree, plan_of, tool, tree
from tests.support.windows import windows_facts
from torchbuild_tasks.model import Cuda, Driver, Finding, GpuSeen, Tegra
from torchbuild_tasks.plan.cuda.devices import devices, visible_devices
from torchbuild_tasks.plan.cuda.driver import check_driver
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

RTX_3090 = GpuSeen(probe="nvml", bus="0000:01:00.0", pci_id="10de:2204", name="GeForce RTX 3090")
A100 = GpuSeen(probe="pci", bus="0000:01:00.0", pci_id="10de:20b0", name="A100-SXM4-40GB")
T4 = GpuSeen(probe="nvml", bus="0000:01:00.0", pci_id="10de:1eb8", name="Tesla T4")
RTX_5090 = GpuSeen(probe="nvml", bus="0000:01:00.0", pci_id="10de:2b85", name="GeForce RTX 5090")


def driver_of(question: Question, cuda: Version | None) -> tuple[Finding, ...]:
    return check_driver(question, cuda, devices(question))


def findings(
    driver: Driver | None, cuda: str | None, *gpus: GpuSeen, windows: bool = False, **changes: Any
) -> tuple[Finding, ...]:
    facts = windows_facts if windows else linux_facts
    seen = facts(cuda=Cuda(driver=driver, gpus=gpus, **changes))
    return driver_of(ask(seen, cuda=True), Version(cuda) if cuda else None)


def only(driver: Driver | None, cuda: str | None, *gpus: GpuSeen, **changes: Any) -> Finding:
    (finding,) = findings(driver, cuda, *gpus, **changes)
    return finding


def of(version: str, **changes: Any) -> Driver:
    return Driver(version=version, found_via="nvml", **changes)


@pytest.mark.parametrize(
    ("cuda", "needed"), [("11.8", "450.80.02"), ("12.4.1", "525.60.13"), ("13.5", "580"), ("10.2", "440.33")]
)
def test_without_a_driver_the_build_works(cuda: str, needed: str) -> None:
    finding = only(None, cuda)
    assert finding.status == "unknown"
    assert "the build works without one" in finding.text
    assert f"needs {needed} or later" in finding.text


def test_versions_are_shown_as_nvidia_writes_them() -> None:
    assert "driver 535.054.03 is older" in only(of("535.054.03"), "12.4").text
    assert "450.80.02 or later" in only(of("440.33.01"), "11.8").fix


def test_nothing_known_at_all() -> None:
    assert only(None, None).status == "unknown"
    (finding,) = driver_of(ask(linux_facts(), cuda=True), Version("12.4"))
    assert finding.status == "unknown"
    assert "no NVIDIA driver" in only(Driver(), "12.4").text


@each_case(
    ("version", "cuda", "windows", "status", "says"),
    [
        ("550.54.14", "12.4", False, "ok", "runs all of CUDA 12.4"),
        ("535.183.01", "12.4", False, "ok", "minor-version compatibility"),
        ("525.60.13", "12.9.1", False, "ok", "minor-version compatibility"),
        ("525.60.11", "12.4", False, "warn", "too old"),
        ("580.65.06", "13.0", False, "ok", "runs all of"),
        ("580.65.06", "13.5", False, "ok", "minor-version compatibility"),
        ("575.57.08", "13.0", False, "warn", "too old"),
        ("450.80.02", "11.8", False, "ok", "minor-version compatibility"),
        ("450.51.05", "11.8", False, "warn", "too old"),
        ("440.33.01", "10.2", False, "ok", "runs all of"),
        ("418.39", "10.2", False, "warn", "440.33"),
        ("551.61", "12.4", True, "ok", "runs all of"),
        ("528.33", "12.4", True, "ok", "minor-version compatibility"),
        ("528.02", "12.4", True, "warn", "528.33"),
        ("452.39", "11.8", True, "ok", "minor-version compatibility"),
        ("451.82", "11.8", True, "warn", "452.39"),
    ],
)
def test_versions(version: str, cuda: str, windows: bool, status: str, says: str) -> None:
    """Linux' and Windows' numbers differ: 528.33 is old on one and too old for nothing on the other."""
    finding = only(of(version), cuda, T4, windows=windows)
    assert finding.status == status
    assert says in finding.text


def test_wsl_has_the_driver_of_windows() -> None:
    """Its 527.41 would do by Linux' numbers."""
    assert only(of("527.41"), "12.4", RTX_3090).status == "ok"
    assert only(of("527.41"), "12.4", RTX_3090, wsl=True).status == "warn"


def test_what_the_driver_says_it_runs_counts() -> None:
    """For a release whose own driver no row has."""
    assert "runs all of CUDA 13.5" in only(of("615.20", cuda="13.5"), "13.5", RTX_3090).text


def test_only_ptx_is_left_for_a_card_that_is_newer_than_the_toolkit() -> None:
    older, finding = findings(of("535.183.01"), "12.4", RTX_5090)
    assert (older.status, finding.status) == ("warn", "warn")
    assert "GeForce RTX 5090 (12.0)" in finding.text
    assert "unsupported toolchain" in finding.text
    assert "driver 570" in finding.fix
    assert findings(of("550.54.14"), "12.4", RTX_5090)[1].status == "ok"


def test_too_old_names_what_would_do() -> None:
    finding = only(of("535.183.01", cuda="12.2"), "13.0", RTX_3090)
    assert "driver version is insufficient" in finding.text
    assert "580" in finding.fix


def test_ptx_would_not_help_a_card_that_is_older_than_the_toolkit() -> None:
    card = GpuSeen(probe="pci", bus="0000:01:00.0", pci_id="10de:1381", name="GeForce GTX 750")
    assert only(of("580.54.01"), "13.0", card).status == "ok"


def test_a_toolkit_that_torch_refuses_is_not_suggested() -> None:
    """Driver 470 runs CUDA 11, which torch 2.8 still takes and 2.14 does not."""
    gxx = (tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    fixes = [
        found(
            plan_of(
                cuda_facts(
                    toolkit("12.8"), gpus=(RTX_3090,), driver=of("470.256.02"), tree=checkout, compilers=gxx
                ),
                cuda=True,
            ).findings,
            "driver",
        ).fix
        for checkout in (tree(), modern_tree())
    ]
    assert "or install CUDA 11.8" in fixes[0]
    assert "cuda-toolkit" not in fixes[1]


def test_error_804_is_explained_before_it_happens() -> None:
    text = only(of("535.183.01"), "13.0", RTX_3090).text
    assert "Error 804" in text
    assert "GeForce RTX 3090 is none" in text


def test_forward_compatibility_on_a_card_for_data_centres() -> None:
    text = only(of("535.183.01"), "13.0", A100).text
    assert "cuda-compat-13-0 would let it run" in text
    assert "804" not in text


def test_forward_compatibility_where_no_card_is_known() -> None:
    unknown = GpuSeen(probe="nvidia-smi", name="NVIDIA Something", capability="9.0")
    for gpus in ((), (unknown,)):
        assert "on others it ends with Error 804" in only(of("535.183.01"), "13.0", *gpus).text


def test_windows_has_no_forward_compatibility() -> None:
    assert "cuda-compat" not in only(of("528.33"), "13.0", A100, windows=True).text


@pytest.mark.parametrize(("version", "needed"), [("550.144.03", "570"), ("570.86.15", "")])
def test_a_card_may_be_newer_than_the_driver(version: str, needed: str) -> None:
    for card in (RTX_5090, replace(RTX_5090, probe="pci")):
        *unknown, _ = findings(of(version), "12.8", card)
        assert [(each.status, needed in each.fix) for each in unknown] == [("warn", True)] * bool(needed)


@pytest.mark.parametrize(("probe", "said"), [("nvml", 0), ("pci", 1)])
def test_a_card_that_the_driver_names_may_be_as_old_as_its_branch(probe: str, said: int) -> None:
    """570.10 would be a release before that of CUDA 12.8."""
    *older, _ = findings(of("570.10"), "12.8", replace(RTX_5090, probe=probe))
    assert len(older) == said


@pytest.mark.parametrize("cuda", ["12.8", "13.0"])
def test_the_driver_that_is_advised_runs_the_toolkit_and_knows_the_card(cuda: str) -> None:
    facts = cuda_facts(toolkit(cuda), gpus=(gpu("12.0"),), driver=driver("472.12"))
    fixes = {f.fix for f in plan_of(facts, cuda=True).findings if f.id == "driver" and f.status == "warn"}
    (version,) = {match[1] for fix in fixes if (match := re.search(r"driver ([\d.]+)", fix))}
    after = plan_of(replace(facts, cuda=replace(facts.cuda, driver=driver(version))), cuda=True)
    assert found(after.findings, "driver").status == "ok"


def test_a_card_without_a_driver_is_reported() -> None:
    finding = only(None, "12.4", replace(RTX_3090, probe="pci"))
    assert finding.status == "warn"
    assert "GeForce RTX 3090 is here" in finding.text
    assert "525.60.13" in finding.fix


def test_a_library_that_does_not_fit_its_module_hinders_no_build() -> None:
    """The state of every Linux desktop after an update without a reboot."""
    driver = Driver(version="535.183.01", module="535.171.04", library="535.183.01")
    finding = only(driver, "12.4", replace(RTX_3090, probe="pci"))
    assert finding.status == "warn"
    assert "535.171.04" in finding.text
    assert "Error 803" in finding.text
    assert "Reboot" in finding.fix
    assert "rmmod nvidia_uvm" in finding.fix


def test_the_driver_itself_may_say_so_without_numbers() -> None:
    driver = Driver(problem="Driver/library version mismatch")
    finding = only(driver, None)
    assert finding.status == "warn"
    assert "The driver itself says: Driver/library version mismatch" in finding.text


@each_case(
    ("said", "fix"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "Reboot"),
        ("Insufficient Permissions", "ls -l /dev/nvidia*"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the driver", "modprobe nvidia"),
        ("Driver Not Loaded", "modprobe nvidia"),
        ("GPU is lost", "Restart the machine"),
        ("Unknown Error", "Restart the container"),
        ("no answer within 5 s", "Look at nvidia-smi"),
    ],
)
def test_an_error_of_the_driver_is_no_missing_driver(said: str, fix: str) -> None:
    for known in (Driver(problem=said), replace(of("550.90.07"), problem=said)):
        told = findings(known, "12.4", replace(RTX_3090, probe="pci"))
        assert any(each.status == "warn" and fix in each.fix for each in told)
        assert not any("no NVIDIA driver was found" in each.text for each in told)


def test_versions_are_compared_as_numbers() -> None:
    assert only(of("550.54.14", module="550.54.14", library="550.54.014"), "12.4").status == "ok"


def compat(*gpus: GpuSeen) -> tuple[Finding, ...]:
    """A container with cuda-compat: NVML answers, and libcuda is another one than the module's."""
    driver = of("535.183.01", module="535.183.01", library="580.65.06", cuda="13.0")
    return findings(driver, "13.0", *gpus)


def test_cuda_compat_in_use_is_no_mismatch() -> None:
    answer = GpuSeen(probe="nvml", bus="0000:01:00.0", name="A100-SXM4-40GB", capability="8.0")
    assert [finding.status for finding in compat(answer, A100)] == ["ok", "ok"]


def test_cuda_compat_in_use_where_it_cannot_work() -> None:
    answer = GpuSeen(probe="nvml", bus="0000:01:00.0", name="RTX 3090", capability="8.6")
    first, _ = compat(answer, RTX_3090)
    assert first.status == "warn"
    assert "Error 804" in first.text
    assert "LD_LIBRARY_PATH" in first.fix


def test_what_the_driver_complains_of_is_shown() -> None:
    first, second = findings(of("550.54.14", problem="GPU is lost"), "12.4", RTX_3090)
    assert (first.status, second.status) == ("warn", "ok")
    assert "GPU is lost" in first.text
    assert only(Driver(problem="NVML gave no answer within 5 s"), "12.4").status == "warn"


def test_a_jetson_has_numbers_of_its_own() -> None:
    tegra = Tegra(model="Jetson Orin Nano", l4t="36.4.0")
    assert "L4T 36.4.0" in only(of("540.4.0"), "12.6", tegra=tegra).text
    assert only(None, "12.6", tegra=tegra).status == "ok"


def test_without_a_toolkit_the_driver_is_only_named() -> None:
    finding = only(of("550.54.14", cuda="12.4"), None)
    assert (finding.status, finding.text) == ("ok", "driver 550.54.14, which runs CUDA up to 12.4")


# ---------------- an old card beside one that the driver serves


def two_cards(first: str, second: str, version: str, **request: Any) -> tuple[str, list[Finding]]:
    """Return the architectures, and what is said of the driver."""
    cards = (gpu(first), gpu(second, probe="pci", bus="0000:02:00.0", uuid=None))
    plan = plan_of(cuda_facts(toolkit("11.8"), gpus=cards, driver=driver(version)), cuda=True, **request)
    archs = next(each.value for each in plan.choices if each.name == "TORCH_CUDA_ARCH_LIST")
    return archs, [each for each in plan.findings if each.id == "driver" and "leaves out" in each.text]


def test_nothing_is_compiled_for_a_card_that_the_driver_leaves_out() -> None:
    archs, (said,) = two_cards("8.9", "3.5", "560.35.03")
    assert (archs, said.status) == ("8.9", "ok")
    assert two_cards("8.9", "3.5", "470.256.02") == ("3.5;8.9", [])  # which serves both: nothing is left out


@pytest.mark.parametrize(
    ("newer", "fix"),
    [
        ("8.9", "No driver serves it and GPU of 8.9: leave 3.5 out of --arch."),
        ("8.6", "Install a driver of the branch 470."),
    ],
)
def test_one_that_is_asked_for_is_not_run_here(newer: str, fix: str) -> None:
    _, (said,) = two_cards(newer, "3.5", "560.35.03", arch=f"3.5;{newer}")
    assert (said.status, said.fix) == ("warn", fix)


def test_cards_that_are_hidden_are_counted_as_the_driver_counts_them() -> None:
    cards = (
        gpu("3.5", probe="pci", bus="0000:00:00.0", uuid=None),
        gpu("8.6"),
        gpu("8.9", bus="0000:03:00.0", uuid="GPU-3"),
    )
    facts = cuda_facts(toolkit("11.8"), gpus=cards, driver=driver("560.35.03"), visible="0")
    question = ask(facts, cuda=True)
    assert [each.capability for each in visible_devices(question, devices(question))] == ["8.6"]


@pytest.mark.parametrize(("archs", "status"), [("8.0+PTX", "warn"), ("8.0+PTX;9.0", "ok"), ("9.0", "ok")])
def test_a_list_with_ptx_alone_for_a_gpu_needs_the_driver_of_its_toolkit(archs: str, status: str) -> None:
    """Machine code of 8.0 does not run on 9.0, and a driver of 12.2 takes no PTX of 12.8."""
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu("9.0"),), driver=driver("535.216.01"))
    finding = found(plan_of(facts, cuda=True, arch=archs).findings, "driver")
    assert finding.status == status
    if status == "warn":
        assert "has no code of its own in 8.0+PTX" in finding.text and "--arch auto" in finding.fix
        assert "warn" not in {
            f.status for f in plan_of(facts, cuda=True, arch="auto").findings if f.id == "driver"
        }


def test_of_two_gpus_that_are_too_new_one_driver_is_named_for_both() -> None:
    cards = (gpu("9.0"), gpu("12.1", bus="0000:02:00.0", uuid="GPU-2"))
    facts = cuda_facts(toolkit("13.0"), gpus=cards, driver=driver("470.256.02"))
    told = [each.fix for each in plan_of(facts, cuda=True).findings if "does not know it" in each.text]
    assert len(told) == 2 and len(set(told)) == 1 and "580" in told[0]


@pytest.mark.parametrize(
    ("loaded", "archs", "named"),
    [("470.256.02", "8.0+PTX", "570.26"), ("470.256.02", "9.0", "525.60.13"), (None, "8.0+PTX", "570.26")],
)
def test_where_only_ptx_runs_the_driver_of_the_toolkit_is_named_at_once(
    loaded: str | None, archs: str, named: str
) -> None:
    """The oldest of the major release would lead to a second warning."""
    facts = cuda_facts(toolkit("12.8"), gpus=(gpu("9.0"),), driver=driver(loaded) if loaded else None)
    fixes = {each.fix for each in plan_of(facts, cuda=True, arch=archs).findings if each.id == "driver"}
    assert fixes and all(f"river {named} or later" in each for each in fixes), fixes
