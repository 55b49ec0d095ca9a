"""The choice of the MSVC toolset, and the errors where none fits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.machines import ask, found, plan_of, settings, tree
from tests.support.windows import (
    ROOT,
    VS_2019,
    VS_2022,
    studio,
    toolset,
    windows,
    windows_facts,
    windows_python,
)
from torchbuild_tasks.model import Choice, EnvOp, Facts, Host, Toolset
from torchbuild_tasks.plan.cuda.toolkit import choose_toolkit, host_limits
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import INSTALL, choose_toolset
from torchbuild_tasks.values import replace

T16, T27, T29, T38, T44, T50 = (
    "14.16.27023",
    "14.27.29110",
    "14.29.30133",
    "14.38.33130",
    "14.44.35207",
    "14.50.35717",
)
SIDE_BY_SIDE = (toolset(T38), toolset(T50), toolset(T44), toolset(T29, VS_2019))


def machine(*toolsets: Toolset, cuda: str = "", version: str = "2.8.0a0", **changes: Any) -> Facts:
    """A Windows machine with these toolsets, building for this CUDA version."""
    environ = {"CUDA_PATH": rf"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v{cuda}"} if cuda else {}
    facts = windows(*toolsets, **changes)
    return windows_facts(windows=facts, environ=environ, tree=tree(root=ROOT, version=version))


def choice_of(question: Question) -> Choice | None:
    """The toolset for the toolkit that is planned."""
    return choose_toolset(question, host_limits(question, choose_toolkit(question))).choice


def chosen(facts: Facts, **flags: Any) -> str | None:
    choice = choice_of(ask(facts, **flags))
    return choice.value if choice else None


def test_without_cuda_the_newest() -> None:
    assert chosen(machine(*SIDE_BY_SIDE)) == T50


@pytest.mark.parametrize(
    ("cuda", "version"),
    [("13.2", T50), ("13.0", T44), ("12.6", T44), ("12.4", T44), ("12.3", T38), ("11.8", T38), ("11.5", T29)],
)
def test_the_newest_that_cuda_takes(cuda: str, version: str) -> None:
    """nvcc's header refuses later ones; README's own range [15,17) could pick none but 14.29."""
    assert chosen(machine(*SIDE_BY_SIDE, cuda=cuda), cuda=True) == version


def test_cuda_in_the_environment_does_not_limit_a_cpu_build() -> None:
    assert chosen(machine(*SIDE_BY_SIDE, cuda="11.8"), cpu=True) == T50


def test_the_reason_names_what_was_passed_over() -> None:
    choice = choice_of(ask(machine(*SIDE_BY_SIDE, cuda="12.3"), cuda=True))
    assert choice is not None
    assert "the newest that CUDA 12.3 takes" in choice.because
    assert f"{T44}: CUDA 12.3 does not take Visual Studio 2022 17.10 and later" in choice.because


@pytest.mark.parametrize(("asked", "version"), [("14.38", T38), (T44, T44), ("14.4", None), ("14.29", T29)])
def test_the_one_asked_for(asked: str, version: str | None) -> None:
    """By the first numbers, whole ones: 14.4 is not a short way to say 14.44."""
    assert chosen(machine(*SIDE_BY_SIDE), toolset=asked) == version


def test_the_variable_of_the_readme_counts_as_asking() -> None:
    said = settings(variables={"CMAKE_GENERATOR_TOOLSET_VERSION": "14.29"})
    choice = choice_of(ask(machine(*SIDE_BY_SIDE), said))
    assert choice is not None
    assert (choice.value, choice.source) == (T29, "torchbuild.toml")


def test_an_active_one_that_fits_is_kept() -> None:
    facts = machine(*SIDE_BY_SIDE, active=T38)
    choice = choice_of(ask(facts))
    assert choice is not None
    assert (choice.value, choice.source) == (T38, "environment")


def test_an_active_one_that_does_not_fit_is_reported() -> None:
    facts = machine(*SIDE_BY_SIDE, cuda="12.3", active=T44)
    assert chosen(facts, cuda=True) == T38
    assert f"MSVC {T44} is active in this shell" in found(plan_of(facts, cuda=True).findings, "toolset").text


@pytest.mark.parametrize(("release", "version"), [("16.7.3", T16), ("16.7.6", T27)])
def test_the_releases_that_miscompile_are_never_taken(release: str, version: str) -> None:
    facts = machine(toolset(T27, VS_2019), toolset(T16, VS_2019), visual_studios=(studio(VS_2019, release),))
    assert chosen(facts) == version


def test_torch_has_a_floor_of_its_own() -> None:
    assert chosen(machine(toolset(T16, VS_2019), version="2.13.0a0")) is None
    assert chosen(machine(toolset(T16, VS_2019), version="2.12.0")) == T16


def test_a_toolset_without_a_compiler_for_x64_or_without_vcvarsall_is_none() -> None:
    assert chosen(machine(toolset(T44, cl=None), toolset(T38))) == T38
    assert chosen(machine(toolset(T44), visual_studios=(studio(vcvarsall=None),))) is None


def refused(facts: Facts, **flags: Any) -> tuple[str, str]:
    plan = plan_of(facts, **flags)
    assert plan.verdict == "refuse"
    finding = found(plan.findings, "toolset")
    return finding.text, finding.fix


def test_none_installed_says_where_was_looked_and_what_to_install() -> None:
    text, fix = refused(machine(toolset(T44), visual_studios=(studio(vcvarsall=None),)))
    assert "vswhere.exe" in text
    assert "Microsoft.VisualStudio.Workload.VCTools" in fix


def test_one_for_other_processors_only_names_the_part_that_it_lacks() -> None:
    text, fix = refused(machine(toolset(T44, cl=None)))
    assert f"MSVC {T44}" in text and "x64" in text
    assert "Microsoft.VisualStudio.Component.VC.Tools.x86.x64" in fix


def test_none_that_fits_cuda_names_the_component_to_add() -> None:
    text, fix = refused(machine(toolset(T44), cuda="11.8"), cuda=True)
    assert "CUDA 11.8 does not take" in text
    assert "v14.38-17.8" in fix


def test_one_asked_for_that_is_missing_lists_those_there_are() -> None:
    text, _ = refused(machine(*SIDE_BY_SIDE), toolset="14.33")
    assert "14.33 is not installed" in text
    assert T38 in text


def test_one_asked_for_that_does_not_fit_names_one_that_is_here_and_does() -> None:
    """Without --toolset it would be taken; to install it again changes nothing."""
    facts = machine(toolset("14.50.35717", msc_ver=1950), toolset("14.44.35207", msc_ver=1944), cuda="12.8")
    text, fix = refused(facts, cuda=True, toolset="14.50")
    assert "14.50, does not fit: 14.50.35717: CUDA 12.8" in text
    assert (
        "--toolset 14.44; or leave out" in fix and chosen(facts, cuda=True, toolset="14.44") == "14.44.35207"
    )
    missing = refused(facts, cuda=True, toolset="14.29")
    assert "is not installed" in missing[0] and "--toolset 14.44, or add it" in missing[1]


@pytest.mark.parametrize(("product", "workload"), [("Community", "NativeDesktop"), ("BuildTools", "VCTools")])
def test_a_visual_studio_without_cpp_is_completed(product: str, workload: str) -> None:
    bare = studio(VS_2022.replace("Community", product), vcvarsall=None)
    text, fix = refused(windows_facts(windows=replace(windows(), visual_studios=(bare,), toolsets=())))
    assert f"Visual Studio {product} 17.14.5" in text and "Desktop development with C++" in text
    assert f"Workload.{workload} --includeRecommended" in fix and "winget" not in fix
    old = replace(bare, release="15.9.1")
    assert (
        INSTALL in refused(windows_facts(windows=replace(windows(), visual_studios=(old,), toolsets=())))[1]
    )


def test_another_compiler_does_without() -> None:
    facts = windows_facts(windows=windows(toolset(T44, cl=None)), environ={"CXX": "C:/cc/clang++.exe"})
    assert plan_of(facts).verdict == "warn"


def last(facts: Facts, **flags: Any) -> EnvOp:
    return plan_of(facts, **flags).env[-1]


def test_vcvarsall_is_loaded_last_for_the_chosen_toolset() -> None:
    op = last(machine(*SIDE_BY_SIDE), toolset="14.38")
    assert (op.op, op.value) == ("load", rf"{VS_2022}\VC\Auxiliary\Build\vcvarsall.bat")
    assert op.arguments == ("x64", f"-vcvars_ver={T38}")


def variables(facts: Facts, **flags: Any) -> dict[str, str]:
    return {op.name: op.value for op in plan_of(facts, **flags).env if op.op == "set"}


@pytest.mark.parametrize(("abi", "target"), [("cp312-win_arm64", "arm64"), ("cp312-win_amd64", "x64")])
def test_on_arm_it_is_loaded_for_the_processor_of_the_python(abi: str, target: str) -> None:
    host = Host(os="windows", arch="aarch64")
    plan = plan_of(windows_facts(host=host, pythons=(windows_python(version="3.12.10", abi=abi),)))
    (load,) = [op for op in plan.env if op.op == "load"]
    assert load.arguments[0] == target


def test_the_build_knows_that_a_toolset_is_active() -> None:
    assert variables(machine(*SIDE_BY_SIDE))["DISTUTILS_USE_SDK"] == "1"
    assert variables(machine(*SIDE_BY_SIDE), set=("DISTUTILS_USE_SDK=0",))["DISTUTILS_USE_SDK"] == "0"


def test_cl_is_named_so_that_ninja_takes_no_gcc() -> None:
    named = variables(machine(*SIDE_BY_SIDE))
    assert (named["CC"], named["CXX"], named["CMAKE_GENERATOR"]) == ("cl", "cl", "Ninja")


def test_nvcc_gets_the_host_compiler_of_the_same_toolset() -> None:
    named = variables(machine(*SIDE_BY_SIDE, cuda="12.3"), cuda=True)
    assert named["CUDAHOSTCXX"] == rf"{VS_2022}\VC\Tools\MSVC\{T38}\bin\Hostx64\x64\cl.exe"
    assert "CUDAHOSTCXX" not in variables(machine(*SIDE_BY_SIDE))


def test_the_toolset_version_is_set_only_where_it_is_read() -> None:
    name, generator = "CMAKE_GENERATOR_TOOLSET_VERSION", "CMAKE_GENERATOR=Visual Studio 16 2019"
    assert name not in variables(machine(*SIDE_BY_SIDE))
    assert variables(machine(*SIDE_BY_SIDE), set=(generator,), toolset="14.38")[name] == "14.38"


def test_another_toolset_needs_a_clean_tree() -> None:
    inputs = plan_of(machine(*SIDE_BY_SIDE)).inputs
    assert inputs["toolset"] == T50


def test_a_doubtful_release_of_visual_studio_is_chosen_with_a_warning() -> None:
    def said(release: str) -> tuple[str, str]:
        facts = machine(toolset("14.51.36000"), visual_studios=(studio(VS_2022, release),))
        finding = found(plan_of(facts).findings, "toolset")
        return finding.status, finding.text

    assert said("18.4.0")[0] == "ok"
    status, text = said("18.6.1")
    assert status == "warn" and "18.6.0" in text


def test_a_doubt_that_only_cuda_raises() -> None:
    """pytorch#54382: the C++ library of Visual Studio 2019 16.9, in what nvcc compiles."""

    def said(own: str, version: str, **flags: Any) -> str:
        here = toolset(own, VS_2019, msc_ver=1928)
        facts = machine(here, cuda="11.1", version=version, visual_studios=(studio(VS_2019, "16.11.40"),))
        return found(plan_of(facts, **flags).findings, "toolset").status

    assert said("14.28.29910", "1.8.0", cuda=True) == "warn"
    assert said("14.28.29333", "1.8.0", cuda=True) == "ok"
    assert said("14.28.29910", "1.10.0", cuda=True) == "ok"
    assert said("14.28.29910", "1.8.0") == "ok"


def test_toolsets_with_which_a_compiler_broke_off() -> None:
    """pytorch#115922: cl of 17.8 in vec_base.h, #79358; #15630: nvcc 10.0 in Caffe2's operators."""

    def said(full: str, toolkit: str, version: str, **flags: Any) -> str:
        facts = machine(toolset(full, VS_2019), cuda=toolkit, version=version)
        return found(plan_of(facts, **flags).findings, "toolset").status

    assert said("14.38.33130", "12.1", "2.2.0") == "warn"
    assert said("14.38.33130", "12.1", "2.3.0") == "ok"
    assert said("14.37.32822", "12.1", "2.2.0") == "ok"
    assert said("14.38.33130", "11.7", "1.13.1") == "warn"
    assert said("14.37.32822", "11.7", "1.13.1") == "ok"
    assert said("14.37.32822", "11.6", "1.12.1") == "warn"
    assert said("14.29.30133", "11.6", "1.12.1") == "ok"
    assert said("14.16.27023", "10.0", "1.0.0", cuda=True) == "warn"
    assert said("14.11.25503", "10.0", "1.0.0", cuda=True) == "ok"
    assert said("14.16.27023", "10.0", "1.1.0", cuda=True) == "ok"


def test_the_oldest_toolset_of_2017_compiles_no_later_torch() -> None:
    old = toolset("14.11.25503", VS_2019)
    assert found(plan_of(machine(old, version="1.6.0")).findings, "toolset").status == "ok"
    text, _ = refused(machine(old, version="1.7.0"))
    assert "14.13" in text


def test_an_installer_is_asked_for_no_toolset_that_it_has_not() -> None:
    """That of Visual Studio 2015 adds none at all, and that of 2019 none of 2022."""
    old = r"C:\Program Files (x86)\Microsoft Visual Studio 14.0"
    for path, release, has, wanted in (
        (old, "14.0", "14.00.24210", INSTALL),
        (VS_2019, "16.11.40", "14.11.25503", "MSVC v142 - VS 2019"),
    ):
        here = windows(toolset(has, path), visual_studios=(studio(path, release),))
        plan = plan_of(windows_facts(windows=here, tree=tree(version="2.6.0")))
        assert wanted in found(plan.findings, "toolset").fix


@pytest.mark.parametrize(
    ("torch", "cuda", "wanted", "never"),
    [
        ("1.7.1", "10.2", "MSVC v141 - VS 2017", "v142"),  # 14.29's <cmath> is doubted there
        ("2.1.0", "11.8", "MSVC v142 - VS 2019", "v14.38"),  # 14.38 stops in vec_base.h
        ("2.4.0", "11.8", "v14.38-17.8", "v142"),
    ],
)
def test_what_an_installer_is_asked_for_is_not_doubted(
    torch: str, cuda: str, wanted: str, never: str
) -> None:
    _, fix = refused(machine(toolset(T44), cuda=cuda, version=torch), cuda=True)
    assert wanted in fix and never not in fix


def test_a_cuda_that_no_installer_has_a_toolset_for_is_changed() -> None:
    _, fix = refused(machine(toolset(T44), cuda="9.0", version="2.6.0"), cuda=True)
    assert "Visual Studio" not in fix and "--cuda-toolkit" in fix


@pytest.mark.parametrize(
    ("full", "torch", "status"),
    [
        (T16, "2.0.0", "warn"),
        (T16, "2.0.1", "warn"),
        (T16, "2.12.0", "warn"),
        (T16, "1.13.1", "warn"),
        (T16, "1.8.1", "warn"),
        (T16, "1.7.1", "ok"),
        (T29, "1.8.1", "ok"),
        (T29, "2.0.0", "ok"),
        (T44, "1.7.1", "warn"),
        (T44, "1.8.1", "ok"),
        (T50, "2.5.1", "warn"),
        (T50, "2.6.0", "ok"),
        (T44, "2.5.1", "ok"),
    ],
)
def test_a_toolset_that_a_torch_does_not_know_is_doubted(full: str, torch: str, status: str) -> None:
    assert found(plan_of(machine(toolset(full), version=torch)).findings, "toolset").status == status


def test_one_that_is_not_doubted_is_taken_before_a_newer_one_that_is() -> None:
    choice = choice_of(ask(machine(*SIDE_BY_SIDE, version="2.5.1")))
    assert choice is not None and choice.value == T44 and "came out more than a year" in choice.because
    assert chosen(machine(*SIDE_BY_SIDE, version="2.5.1"), toolset="14.50") == T50
    assert chosen(machine(toolset(T50), version="2.5.1")) == T50


VS_2026 = r"C:\Program Files\Microsoft Visual Studio\18\Community"


@pytest.mark.parametrize(
    ("path", "release", "cuda", "wanted"),
    [
        (VS_2026, "18.0.0", "12.8", '"MSVC v143 - VS 2022 C++ x64/x86 build tools (v14.44-17.14)"'),
        (VS_2026, "18.0.0", "11.5", '"MSVC v142 - VS 2019 C++ x64/x86 build tools (v14.29-16.11)"'),
        (VS_2022, "17.14.0", "12.8", '"MSVC v143 - VS 2022 C++ x64/x86 build tools (Latest)"'),
        (VS_2022, "17.14.0", "11.5", '"MSVC v142 - VS 2019 C++ x64/x86 build tools (v14.29-16.11)"'),
    ],
)
def test_an_installer_calls_an_older_toolset_by_its_release(
    path: str, release: str, cuda: str, wanted: str
) -> None:
    facts = machine(toolset(T50, path), cuda=cuda, visual_studios=(studio(path, release),))
    assert wanted in refused(facts, cuda=True)[1]


def test_on_arm_the_installer_is_asked_for_arms_toolset() -> None:
    here = windows(toolset("14.00.24210"), visual_studios=(studio(VS_2022, "17.14.0"),))
    arm = (windows_python(version="3.12.10", abi="cp312-win_arm64"),)
    host = Host(os="windows", arch="aarch64")
    facts = windows_facts(windows=here, host=host, pythons=arm, tree=tree(version="2.13.0"))
    assert "C++ ARM64/ARM64EC build tools (Latest)" in found(plan_of(facts).findings, "toolset").fix
