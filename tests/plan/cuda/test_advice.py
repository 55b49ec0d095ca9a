"""Advised toolkits work: with one the finding is gone; where none would do, the fix says so."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from tests.support.cuda import cuda_facts, driver, gpu, toolkit
from tests.support.examples import examples
from tests.support.jetsons import thor, tx2
from tests.support.machines import ask, found, modern_tree, plan_of, python, tool, tree
from tests.support.windows import toolset, windows, windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.model import BuildPlan, Cuda, Facts, Finding, Host, Tool, Toolkit
from torchbuild_tasks.plan.cuda.advice import (
    _TOLD,
    _torch_that_fits,
    advise,
)
from torchbuild_tasks.plan.cuda.best import choose_best
from torchbuild_tasks.plan.cuda.candidates import candidates_for
from torchbuild_tasks.plan.cuda.values import ARCHIVE, OTHER_TORCH
from torchbuild_tasks.values import replace

ROWS = load_catalog()
RELEASES = [row.version for row in ROWS.cuda]
TORCHES = [row.latest for row in ROWS.torch if Version(row.version) >= Version("1.8")]
CAPABILITIES = ["3.7", "5.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0", "12.1"]
DRIVERS = ["470.256.02", "535.183.01", "550.54.14", "580.65.06", "620.10"]
WORD = re.compile(r"[Tt]ake --cuda-toolkit (\"[^\"]+\"|'[^']+'|\S+)")


def machine(torch: str, *versions: str, capability: str = "8.6", **changes: object) -> Facts:
    """A workstation with these toolkits, as their rows say they are, and one GPU."""
    return cuda_facts(*map(of_row, versions), gpus=(gpu(capability),), tree=tree(version=torch), **changes)


def of_row(version: str) -> Toolkit:
    row = next(row for row in ROWS.cuda if row.version == version)
    return toolkit(version, archs=row.archs, gcc=row.gcc, clang=row.clang)


def advised(finding: Finding) -> str | None:
    match = WORD.search(finding.fix)
    return match[1].strip("\"'") if match else None


def named_torch(fix: str) -> TorchRow:
    match = re.search(r"[Tt]ake torch (\d+\.\d+): it fits with CUDA", fix)
    assert match, fix
    return next(row for row in ROWS.torch if row.version == match[1])


def toolkit_findings(plan: BuildPlan) -> list[Finding]:
    ids = {
        "cuda-toolkit",
        "architectures",
        "gpu-code",
        "cuda-libc",
        "driver",
        "host-compiler",
        "toolset",
        "cudnn",
    }
    return [finding for finding in plan.findings if finding.id in ids and finding.status in ("warn", "error")]


def follow(facts: Facts, **flags: Any) -> list[str]:
    """Hold every advice of a plan against the plan that it leads to; return what was advised."""
    words = []
    for finding in toolkit_findings(plan_of(facts, cuda=True, **flags)):
        assert "{" not in finding.fix, finding
        word = advised(finding)
        if word is None:
            continue
        words.append(word)
        after = toolkit_findings(plan_of(facts, cuda=True, **{**flags, "cuda_toolkit": word}))
        assert not [each for each in after if each.id == finding.id and each.status == finding.status], (
            finding
        )
        common = {f.text for f in toolkit_findings(plan_of(facts, cuda=True, **flags))}
        assert not [each for each in after if each.status == "error" and each.text not in common], finding
        follow_on(facts, word, flags)
    return words


def follow_on(facts: Facts, word: str | None, flags: dict[str, Any]) -> None:
    """Follow one advice after the other: none leads back to what was left."""
    followed: list[str] = []
    while word is not None:
        assert word not in followed, followed
        followed.append(word)
        findings = toolkit_findings(plan_of(facts, cuda=True, **{**flags, "cuda_toolkit": word}))
        word = next(filter(None, map(advised, findings)), None)


def test_no_advice_leads_back() -> None:
    """CUDA 12.8 is newer than what this torch was built with, and 12.4 has no code for the GPU."""
    facts = machine("2.6.0", "12.8", capability="12.0")
    finding = found(plan_of(facts, cuda=True).findings, "cuda-toolkit")
    assert (finding.status, advised(finding)) == ("warn", None)
    assert set(follow(facts)) == {"pypi:12.8"}  # for its cuDNN


@pytest.mark.parametrize(
    ("torch", "here", "gpu_of_it", "advice"),
    [
        ("2.6.0", "12.4", "12.0", "pypi:12.8"),
        ("2.6.0", "12.6", "10.0", "pypi:12.8"),
        ("1.13.1", "11.7", "9.0", "torch 2."),  # 11.8 is not what 1.13 was built with
    ],
)
def test_a_toolkit_with_code_for_the_gpu_counts_more_than_a_usual_one(
    torch: str, here: str, gpu_of_it: str, advice: str
) -> None:
    facts = machine(
        torch, here, capability=gpu_of_it, compilers=(tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    )
    finding = found(plan_of(facts, cuda=True).findings, "gpu-code")
    assert finding.status == "warn" and advice in finding.fix
    follow(facts)


def test_a_gpu_that_runs_the_code_of_its_major_needs_no_other_toolkit() -> None:
    finding = found(plan_of(machine("2.0.1", "11.7", capability="8.9"), cuda=True).findings, "gpu-code")
    assert (finding.status, finding.fix) == ("ok", "")
    assert "it runs that of 8.6" in finding.text and "CUDA 11.8 is the first" in finding.text


@pytest.mark.parametrize(
    ("torch", "capability", "series"),
    [
        ("2.0.1", "8.9", "11.8"),
        ("2.0.1", "9.0", "11.8"),
        ("2.0.1", "8.6", "11.7"),
        ("1.13.1", "8.9", "11.7"),  # neither of upstream's two has code for it
    ],
)
def test_of_upstreams_toolkits_the_one_with_code_for_the_gpu_is_advised(
    torch: str, capability: str, series: str
) -> None:
    """Of two without it the nearest to upstream's own is."""
    compilers = (tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    plan = plan_of(machine(torch, "12.1", capability=capability, compilers=compilers), cuda=True)
    assert f"nstall CUDA {series} " in found(plan.findings, "cuda-toolkit").fix


@pytest.mark.parametrize("torch", ["2.0.1", "2.1.2", "2.2.2"])
def test_a_torch_that_12_4_does_not_compile_is_never_sent_there(torch: str) -> None:
    for here in ("12.4", "12.6", "12.8"):
        finding = found(plan_of(machine(torch, here), cuda=True).findings, "cuda-toolkit")
        assert finding.status == "error" and "thrust::swap" in finding.text
        assert "Install CUDA 1" in finding.fix and "pypi:" not in finding.fix
        assert "with a cuDNN >=8" in finding.fix, "the next plan would ask for it"


def test_where_no_toolkit_fits_the_nearest_torch_is_named() -> None:
    host = Host(os="linux", arch="x86_64", libc="glibc 2.42")
    facts = machine("1.10.2", "13.0", capability="12.0", host=host)
    fix = found(plan_of(facts, cuda=True).findings, "cuda-toolkit").fix
    assert "No CUDA toolkit puts this right here." in fix
    assert "it fits with CUDA 13." in fix
    after = plan_of(replace(facts, tree=tree(version=named_torch(fix).latest)), cuda=True).findings
    assert found(after, "cuda-toolkit").status == "ok"


@pytest.mark.parametrize(
    ("torch", "here", "capability", "advice"),
    [
        ("1.13.1", "11.7", "9.0", f"torch 2.0: it fits with CUDA 11.8 ({ARCHIVE}"),  # and not 2.3 with 12.4
        ("2.5.1", "12.8", "12.0", "torch 2.7: it fits with CUDA 12.8"),  # the toolkit stays
        ("2.5.1", "12.4", "12.0", "torch 2.7: it fits with CUDA 12.8 (--cuda-toolkit pypi:12.8)"),
    ],
)
def test_the_nearest_torch_is_the_one_that_changes_least(
    torch: str, here: str, capability: str, advice: str
) -> None:
    compilers = (tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    question = ask(machine(torch, here, capability=capability, compilers=compilers), cuda=True)
    other = _torch_that_fits(question, tuple(candidates_for(question)))
    assert other and other.words.startswith(advice)


@pytest.mark.slow
@settings(max_examples=examples(2, 100))
@given(
    torch=st.sampled_from(TORCHES),
    here=st.sampled_from(RELEASES),
    capability=st.sampled_from(CAPABILITIES),
)
def test_no_nearer_torch_fits_with_the_toolkit_that_is_here(torch: str, here: str, capability: str) -> None:
    """And none at all where another toolkit is named."""
    facts = machine(torch, here, capability=capability)
    question = ask(facts, cuda=True)
    other = _torch_that_fits(question, tuple(candidates_for(question)))
    words = other.words if other else ""
    known = list(ROWS.torch)
    away = {row.version: abs(known.index(row) - known.index(question.row)) for row in known}
    stays = words.endswith(f"it fits with CUDA {here}")
    most = away[named_torch(f"take {words}").version] if stays else len(known)
    for row in (row for row in known if 0 < away[row.version] < most):
        findings = plan_of(replace(facts, tree=tree(version=row.latest)), cuda=True).findings
        told = {each.id for each in findings if each.status == "warn"} & {*_TOLD}
        wrong = told | {each.id for each in findings if each.status == "error"}
        assert wrong - {"host-compiler"}, (words, row.version)


@pytest.mark.parametrize(
    ("version", "gcc", "python_too"),
    [
        ("3.10.12", "9.4.0", False),
        ("3.12.3", "12.2.0", False),
        ("3.14.0", "9.4.0", False),
        ("3.15.0", "9.4.0", True),
    ],
)
def test_a_torch_that_is_named_is_built_by_the_python_and_the_compiler_of_the_machine(
    version: str, gcc: str, python_too: bool
) -> None:
    """GCC 9 compiles none of those that Python 3.15 builds: there the fix names another Python, too."""
    facts = machine(
        "1.10.2",
        "12.8",
        capability="12.0",
        pythons=(python(version=version),),
        compilers=(tool("g++", gcc), tool("gcc", gcc)),
    )
    fix = found(plan_of(facts, cuda=True).findings, "gpu-code").fix
    row = named_torch(fix)
    assert (f"and Python {row.python} (--python)" in fix) is python_too
    able = facts if not python_too else replace(facts, pythons=(python(version="3.12.3"),))
    after = plan_of(replace(able, tree=tree(version=row.latest)), cuda=True)
    assert after.verdict != "refuse", [each for each in after.findings if each.status == "error"]


def test_where_no_torch_is_built_here_none_is_named() -> None:
    """GCC 7 compiles no torch that knows the GPU."""
    old = (tool("g++", "7.5.0"), tool("gcc", "7.5.0"))
    facts = machine("1.10.2", "12.8", capability="12.0", compilers=old)
    fix = found(plan_of(facts, cuda=True).findings, "gpu-code").fix
    assert fix == "Take a newer torch, and what builds it (torchbuild versions)"


@settings(max_examples=examples(8, 300))
@given(
    torch=st.sampled_from(TORCHES),
    versions=st.lists(st.sampled_from(RELEASES), max_size=2, unique=True),
    capability=st.sampled_from(CAPABILITIES),
    loaded=st.sampled_from(DRIVERS),
    gcc=st.sampled_from(["9.4.0", "11.4.0", "13.2.0", "15.1.0"]),
    glibc=st.sampled_from(["2.31", "2.36", "2.41", "2.42"]),
    arch=st.sampled_from(["x86_64", "aarch64"]),
)
def test_what_is_advised_puts_it_right(
    torch: str, versions: list[str], capability: str, loaded: str, gcc: str, glibc: str, arch: str
) -> None:
    facts = machine(
        torch,
        *versions,
        capability=capability,
        driver=driver(loaded),
        compilers=(tool("g++", gcc), tool("gcc", gcc)),
        host=Host(os="linux", arch=arch, libc=f"glibc {glibc}"),
    )
    follow(facts)


@settings(max_examples=examples(8, 300))
@given(
    torch=st.sampled_from(TORCHES),
    versions=st.lists(st.sampled_from(RELEASES), max_size=2, unique=True),
    capability=st.sampled_from(CAPABILITIES),
    msvc=st.sampled_from(["14.29.30133", "14.38.33130", "14.44.35207", "14.50.35717"]),
)
def test_and_on_windows(torch: str, versions: list[str], capability: str, msvc: str) -> None:
    root = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v"
    here = tuple(
        replace(of_row(version), path=root + version, nvcc=rf"{root}{version}\bin\nvcc.exe")
        for version in versions
    )
    facts = windows_facts(
        cuda=Cuda(toolkits=here, gpus=(gpu(capability),), driver=driver("581.10")),
        windows=windows(toolset(msvc)),
    )
    follow(replace(facts, tree=replace(facts.tree, version=torch)))


def test_an_old_torch_is_not_sent_to_the_newest() -> None:
    assert set(follow(machine("2.3.1", "13.0"))) == {"pypi:12.4"}


def test_what_is_here_comes_first() -> None:
    words = follow(machine("2.8.0", "13.0", "12.8"), cuda_toolkit="13.0")
    assert words[0] == "12.8"


def test_a_cudnn_is_had_without_another_major_of_cuda() -> None:
    """Upstream's own is 13.2; who has 12.6 keeps it."""
    facts = machine("2.14.1", "12.6", capability="8.0", driver=driver("580.65.06"))
    facts = replace(facts, cuda=replace(facts.cuda, toolkits=(replace(of_row("12.6"), cudnn="8.9.7"),)))
    fix = found(plan_of(facts, cuda=True).findings, "cudnn").fix
    assert "--cuda-toolkit pypi:12.6" in fix and fix.count(">=9") == 1


def test_of_two_findings_neither_sends_away_from_the_fix_of_the_other() -> None:
    """Another torch settles both: with its own toolkit, torch 2.4 still makes no code for that GPU."""
    findings = toolkit_findings(plan_of(machine("2.4.0", "12.8", capability="12.0"), cuda=True))
    told = [each.fix for each in findings if each.id in ("cuda-toolkit", "gpu-code")]
    assert len(told) == 2 and all("torch 2.7: it fits with CUDA 12.8" in fix for fix in told)


def test_a_driver_that_is_old_whatever_is_built_hides_no_other_torch() -> None:
    facts = machine("2.4.0", "12.4", capability="12.0", driver=driver("535.183.01"))
    findings = toolkit_findings(plan_of(facts, cuda=True))
    assert "Install driver 5" in next(each.fix for each in findings if each.id == "driver")
    assert "torch 2.7" in next(each.fix for each in findings if each.id == "gpu-code")


def test_the_nearest_is_none_of_which_the_same_is_said() -> None:
    for torch, here in (("1.13.1", "11.7"), ("2.3.1", "11.8")):
        for finding in toolkit_findings(plan_of(machine(torch, here, capability="12.1"), cuda=True)):
            assert f": {finding.text.split(':')[0]}: CUDA" not in finding.fix


def test_kepler_is_sent_to_no_parts_that_there_are_not() -> None:
    gxx = (tool("g++", "10.2.1"), tool("gcc", "10.2.1"))
    plan = plan_of(machine("2.0.1", "12.4", capability="3.7", compilers=gxx), cuda=True)
    fix = found(plan.findings, "architectures").fix
    assert f"Install CUDA 11.7 ({ARCHIVE})" in fix
    assert "pypi:" not in fix


def test_a_series_that_is_here_is_not_one_to_install() -> None:
    """Its header says what it takes: the same series from NVIDIA's archive is no other one."""
    here = toolkit("11.1", gcc=9, archs=of_row("11.1").archs)
    facts = cuda_facts(
        here, gpus=(gpu("8.6"),), compilers=(tool("g++", "10.3.0"),), tree=tree(version="1.9.1")
    )
    fix = found(plan_of(facts, cuda=True).findings, "host-compiler").fix
    assert "gxx_linux-64=9" in fix
    assert "CUDA" not in fix  # nor another series, with which upstream never built this torch


def test_where_nothing_fits_the_fix_says_why() -> None:
    plan = plan_of(machine("2.14.0", "12.8", capability="3.7"), cuda=True)
    fix = found(plan.findings, "architectures").fix
    assert "No CUDA toolkit puts this right here." in fix
    assert "torch 2.14 builds with CUDA >=12.6" in fix


def test_the_nearest_is_the_one_that_fewest_findings_speak_against() -> None:
    """A check that found nothing wrong does not count as one of them."""
    host = Host(os="linux", arch="x86_64", libc="glibc 2.41")
    compilers = (tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    here = machine(
        "2.7.1", "12.9", capability="10.0", driver=driver("580.65.06"), compilers=compilers, host=host
    )
    fixes = [finding.fix for finding in toolkit_findings(plan_of(here, cuda=True))]
    assert any(
        "The nearest is 12.8, of which a plan would say: CUDA 12.8 does not compile with this system's glibc"
        in fix
        for fix in fixes
    )


def test_a_board_has_jetpacks() -> None:
    plan = plan_of(replace(tx2(), cuda=replace(tx2().cuda, toolkits=())), cuda=True)
    assert "nvidia-jetpack" in found(plan.findings, "cuda-toolkit").fix


@pytest.mark.parametrize(("glibc", "versions"), [("2.41", ["12.9"]), ("2.42", ["12.9", "13.0", "13.1"])])
def test_headers_of_cuda_and_of_the_c_library(glibc: str, versions: list[str]) -> None:
    host = Host(os="linux", arch="x86_64", libc=f"glibc {glibc}")
    for version in versions:
        plan = plan_of(machine("2.14.0", version, host=host), cuda=True)
        finding = found(plan.findings, "cuda-libc")
        assert (plan.verdict, advised(finding)) == ("refuse", "pypi:13.2")
    assert not [
        f for f in plan_of(machine("2.14.0", "13.2", host=host), cuda=True).findings if f.id == "cuda-libc"
    ]


def test_corrected_headers_are_taken() -> None:
    host = Host(os="linux", arch="x86_64", libc="glibc 2.41")
    facts = cuda_facts(toolkit("12.8", noexcept=("cospi",)), gpus=(gpu(),), host=host)
    assert not [f for f in plan_of(facts, cuda=True).findings if f.id == "cuda-libc"]


@pytest.mark.parametrize(
    ("own", "says"), [("glibc 2.17", None), ("glibc 2.41", "its"), (None, "this system's")]
)
def test_the_headers_of_the_host_compiler_count(own: str | None, says: str | None) -> None:
    gxx = "/opt/gxx/bin/x86_64-conda-linux-gnu-g++"
    compilers = (tool("g++", "14.2.0"), Tool(name="g++", path=gxx, version="13.3.0", found_via="x", libc=own))
    host = Host(os="linux", arch="x86_64", libc="glibc 2.42" if own else "glibc 2.41")
    facts = machine("2.4.1", "12.4", host=host, compilers=compilers)
    told = [f for f in plan_of(facts, cuda=True, set=(f"CXX={gxx}",)).findings if f.id == "cuda-libc"]
    assert [bool(says and says in f.text) for f in told] == ([True] if says else [])
    assert all(
        "gxx_linux-64=13 && conda activate gxx, " in f.fix
        and "--set CXX=$CONDA_PREFIX/bin/x86_64-conda" in f.fix
        for f in told
    )


def test_a_gpu_with_ptx_alone_is_reported_with_the_toolkit_that_compiles_for_it() -> None:
    finding = found(plan_of(machine("2.8.0", "12.6", capability="12.0"), cuda=True).findings, "gpu-code")
    assert (finding.status, advised(finding)) == ("warn", "pypi:12.8")
    assert "PTX" in finding.text


def test_a_torch_that_cannot_read_a_capability_is_reported() -> None:
    """And with the torch that is named the GPU gets code of its own, from the same toolkit."""
    facts = machine("2.5.1", "12.8", capability="12.0")
    fix = found(plan_of(facts, cuda=True).findings, "gpu-code").fix
    assert fix.endswith("it fits with CUDA 12.8")
    after = plan_of(replace(facts, tree=tree(version=named_torch(fix).latest)), cuda=True).findings
    assert "gpu-code" not in {each.id for each in after if each.status != "ok"}


def test_of_several_that_are_here_the_one_that_fits_the_gpu() -> None:
    facts = cuda_facts(toolkit("12.4"), toolkit("12.8"), gpus=(gpu("12.0"),), tree=modern_tree())
    chosen = choose_best(ask(facts, cuda=True))
    assert chosen.root == "/usr/local/cuda-12.8"
    assert chosen.choice is not None
    assert "passed over /usr/local/cuda-12.4" in chosen.choice.because


@pytest.mark.parametrize(
    ("torch", "here", "capability", "taken", "why"),
    [
        ("2.0.1", ("11.7", "11.8"), "8.9", "11.8", "11.7 makes no code of its own for each GPU"),
        ("2.0.1", ("11.7", "11.8"), "8.6", "11.7", ""),
        ("2.9.1", ("12.8", "12.6"), "7.0", "12.6", "CUDA 12.8 calls a GPU that is here deprecated"),
        ("2.6.0", ("12.5", "12.6"), "9.0", "12.6", "upstream did not build this torch with CUDA 12.5"),
    ],
)
def test_of_several_that_fit_the_one_with_least_against_it_is_taken(
    torch: str, here: tuple[str, ...], capability: str, taken: str, why: str
) -> None:
    compilers = (tool("g++", "11.4.0"), tool("gcc", "11.4.0"))
    facts = machine(torch, *here, capability=capability, compilers=compilers)
    chosen = choose_best(ask(facts, cuda=True))
    assert chosen.choice and chosen.root.endswith(taken)
    assert why in chosen.choice.because and bool(why) is ("passed over" in chosen.choice.because)


def test_a_toolkit_that_is_on_path_stays_where_another_fits_as_well() -> None:
    """The plan says that it runs the code of 8.6, and which CUDA is the first with its own."""
    facts = machine("2.0.1", "11.7", "11.8", capability="8.9", compilers=(tool("g++", "11.4.0"),))
    assert facts.cuda
    first, other = facts.cuda.toolkits
    kits = (replace(first, found_via="PATH"), other)
    assert (
        choose_best(ask(replace(facts, cuda=replace(facts.cuda, toolkits=kits)), cuda=True)).toolkit
        == kits[0]
    )


def test_a_variable_of_a_toolkit_that_went_makes_no_other_one_strange() -> None:
    environ = {"CUDA_HOME": "/usr/local/cuda-12.4", "CUDACXX": "/usr/local/cuda-12.4/bin/nvcc"}
    facts = replace(machine("2.9.1", "12.8"), environ=environ)
    assert fixes(facts)["cuda-toolkit"].startswith("Take --cuda-toolkit 12.8 (it is here).")


@pytest.mark.parametrize("torch", ["2.9.1", "2.15.0"])
def test_a_toolkit_that_is_here_comes_before_another_torch(torch: str) -> None:
    facts = replace(thor(), tree=tree(version=torch))
    fix = found(plan_of(facts, cuda=True, cuda_toolkit="pypi:12.8").findings, "architectures").fix
    assert fix.startswith("Take --cuda-toolkit 13.0 (it is here); or PTX") and "torch" not in fix


@pytest.mark.parametrize(
    ("torch", "capability", "said"),
    [("2.15.0", "6.1", True), ("2.15.0", "7.5", False), ("2.14.1", "6.1", False)],
)
def test_gpus_that_upstreams_binaries_leave_out(torch: str, capability: str, said: bool) -> None:
    plan = plan_of(machine(torch, "12.6", capability=capability), cuda=True)
    finding = found(plan.findings, "gpu")
    assert (finding.status, "it must be built" in finding.text) == ("ok", said)


def fixes(facts: Facts, **flags: Any) -> dict[str, str]:
    findings = toolkit_findings(plan_of(facts, cuda=True, **flags))
    return {finding.id: finding.fix for finding in findings}


def test_a_toolkit_that_needs_a_newer_driver_is_advised_with_it() -> None:
    """Glibc 2.41 leaves CUDA 13 only."""
    facts = machine(
        "2.9.1",
        "12.8",
        driver=driver("570.86.16"),
        compilers=(tool("g++", "15.1.1"), tool("gcc", "15.1.1")),
        host=Host(os="linux", arch="x86_64", libc="glibc 2.41"),
    )
    told = fixes(facts)
    assert "--cuda-toolkit pypi:13.0" in told["cuda-libc"]
    assert all("and install driver 580 or later" in told[each] for each in ("cuda-libc", "host-compiler"))


def test_no_driver_is_advised_that_leaves_out_the_gpu() -> None:
    facts = machine("2.6.0", "12.4", capability="3.7", driver=driver("470.256.02"))
    told = fixes(facts)
    assert "Install driver" not in told["driver"]
    assert "CUDA 11.8" in told["driver"]


def test_the_findings_of_one_plan_name_one_toolkit() -> None:
    here = replace(of_row("13.0"), path="/usr/local/cuda-13.0")
    facts = cuda_facts(
        here,
        gpus=(gpu("12.1"),),
        tree=tree(version="2.6.0"),
        host=Host(os="linux", arch="aarch64", libc="glibc 2.39"),
    )
    told = " ".join(fixes(facts).values())
    assert set(re.findall(r"--cuda-toolkit (\S+)", told)) == {"pypi:12.8"}


def test_the_nearest_is_not_the_one_in_use() -> None:
    gxx = (tool("g++", "16.1.1"), tool("gcc", "16.1.1"))
    facts = machine("2.15.0", "13.4", driver=driver("615.10"), compilers=gxx)
    host = Host(
        os="linux", arch="x86_64", distribution="Fedora Linux 44", libc="glibc 2.43", like=("fedora",)
    )
    fix = fixes(replace(facts, host=host))["cuda-toolkit"]
    assert "The nearest is 13.4" not in fix
    assert "gcc15-c++" in fix


def test_where_musl_rules_cuda_out_nothing_else_is_advised() -> None:
    host = Host(os="linux", arch="x86_64", distribution="Alpine Linux v3.21", libc="musl 1.2.5")
    told = fixes(machine("2.6.0", "12.6", compilers=(tool("g++", "14.2.0"),), host=host))
    assert "--cpu" in told["host-compiler"]
    assert "Install" not in told["host-compiler"]


def test_a_gpu_newer_than_the_torch_is_not_sent_to_a_toolkit_that_torch_was_never_built_with() -> None:
    """Followed, CUDA 11.8 with torch 1.13 would be answered with 11.7 again."""
    facts = machine("1.13.1", "11.7", capability="9.0", driver=driver("535.183.01"))
    fix = found(plan_of(facts, cuda=True).findings, "gpu-code").fix
    assert named_torch(fix).version != "1.13"
    assert "Install CUDA 11.8" not in fix


def test_a_toolkit_that_is_no_better_than_the_planned_one_is_not_near() -> None:
    facts = machine("2.15.0", "13.2", capability="15.0", driver=driver("620.10"))
    assert fixes(facts)["gpu-code"] == "No CUDA toolkit puts this right here."


def test_what_an_error_needs_is_the_one_fix_of_the_warnings_that_it_ends() -> None:
    """To do without cuDNN alone would leave the error."""
    old = replace(of_row("13.0"), cudnn="9.14.0")
    facts = cuda_facts(old, gpus=(gpu("6.1"),), tree=tree(version="2.9.1"))
    told = fixes(facts)
    assert told["cudnn"] == told["architectures"].removesuffix(" Or name another --arch.")


def test_what_is_advised_is_one_that_the_sentence_lists() -> None:
    """Upstream built 2.11 with 12.6, 12.8 and 13.0; 12.9 is nearer to 13.0 by number only."""
    facts = cuda_facts(toolkit(version="12.1"), gpus=(gpu("8.6"),), driver=driver("550.90.07"))
    finding = found(plan_of(replace(facts, tree=tree(version="2.11.0")), cuda=True).findings, "cuda-toolkit")
    assert "CUDA 12.6, 12.8 and 13.0" in finding.text
    assert "pypi:12.6" in finding.fix or "pypi:12.8" in finding.fix


def test_what_is_so_of_four_equal_cards_is_said_once() -> None:
    cards = tuple(
        gpu("10.3", name="NVIDIA GB300", bus=f"0000:0{n}:00.0", uuid=f"GPU-{n}") for n in range(1, 5)
    )
    facts = cuda_facts(toolkit(version="12.8"), gpus=cards, driver=driver("570.124.06"))
    said = [each.text for each in plan_of(facts, cuda=True).findings]
    assert len(said) == len(set(said)) and sum("does not know it" in text for text in said) == 1


def test_two_findings_name_the_one_change_that_settles_both() -> None:
    """GB10 with CUDA 13.0 and 2.6: the toolkit alone leaves the warning, torch 2.9 neither."""
    facts = cuda_facts(of_row("13.0"), gpus=(gpu("12.1"),), tree=tree(version="2.6.0"))
    told = [each.fix for each in plan_of(facts, cuda=True).findings if "Take torch" in each.fix]
    assert len(told) == 2 and len({named_torch(fix).version for fix in told}) == 1
    assert "; or, with this torch, take --cuda-toolkit" in told[0]


def test_a_python_that_the_advised_torch_takes_may_stay() -> None:
    """Where another torch is advised anyway, it may be one that the Python of here builds."""
    wrong = Finding.error("python", "CPython 3.8.10 does not fit", "--python 3.14")
    asks = Finding.error("cuda-toolkit", "", OTHER_TORCH)
    for version, stays in (("3.8.10", True), ("3.7.1", False)):
        facts = cuda_facts(of_row("11.8"), tree=tree(version="2.9.1"), gpus=(gpu("8.6"),))
        question = ask(replace(facts, pythons=(python(version=version),)), cuda=True)
        told, torch_too = advise(question, (wrong, asks))
        assert torch_too.fix.startswith("Take torch")
        assert told.fix.startswith("Take torch") is stays
        assert told.fix.endswith("--python 3.14")


def test_a_warning_is_not_sent_against_its_own_words_by_an_error() -> None:
    """GCC 11 and CUDA 11.5 for torch 1.10: 11.7 ends the error, and is said not to be built with, too."""
    facts = machine("1.10.0", "11.5", compilers=(tool("g++", "11.4.0"), tool("gcc", "11.4.0")))
    host = replace(facts.host, distribution="Ubuntu 22.04.5 LTS")
    plan = plan_of(replace(facts, host=host), cuda=True)
    warning = found(plan.findings, "cuda-toolkit")
    error = found(plan.findings, "host-compiler")
    assert "<11.5" in warning.text and "CUDA 11.3" in warning.fix and "g++-10" in warning.fix
    assert "11.7" not in warning.fix + error.fix and error.fix.count("g++-10") == 1


def test_no_sentence_of_advice_hangs_at_the_end_of_a_command() -> None:
    for place, torch in enumerate(TORCHES):
        for here in RELEASES[place % 9 :: 9]:
            facts = machine(torch, here, compilers=(tool("g++", "11.4.0"), tool("gcc", "11.4.0")))
            said = [each.fix for each in plan_of(facts, cuda=True).findings]
            assert not [fix for fix in said if "{" in fix or fix.endswith(", first.")], (torch, here)


def test_what_upstream_never_built_with_is_not_the_only_way_of_an_error() -> None:
    facts = machine("2.10.0", "13.0", capability="8.6")
    facts = replace(facts, host=replace(facts.host, libc="glibc 2.42"))
    fix = found(plan_of(facts, cuda=True).findings, "cuda-libc").fix
    assert "upstream did not build this torch with it" in fix and "or take torch 2.1" in fix


@pytest.mark.parametrize(
    ("here", "capability", "arch", "words"),
    [
        ("13.0", "6.1", "7.5", "code and PTX of newer GPUs do not run on it"),
        ("12.4", "12.0", "9.0+PTX", "so it runs PTX, compiled again at start"),
        ("12.4", "12.0", "8.6", "has no PTX for it either"),
        ("12.8", "3.7", "8.6", "code and PTX of newer GPUs do not run on it"),
    ],
)
def test_ptx_runs_on_newer_gpus_only(here: str, capability: str, arch: str, words: str) -> None:
    plan = plan_of(machine("2.9.1", here, capability=capability), cuda=True, arch=arch)
    (finding,) = [each for each in plan.findings if each.id == "gpu-code"]
    assert words in finding.text
    code = [each for each in plan.findings if each.id == "architectures" and "no kernel image" in each.text]
    assert all(each.fix.startswith("Unless") is ("newer GPUs" in words) for each in code)


def test_another_architecture_is_no_way_out_for_the_one_gpu_that_is_here() -> None:
    facts = machine("2.9.1", "13.0", capability="6.1")
    said = [each for each in plan_of(facts, cuda=True).findings if "does not compile for" in each.text]
    assert said and "another --arch" not in said[0].fix
    named = [each for each in plan_of(facts, cuda=True, arch="6.1").findings if "does not comp" in each.text]
    assert "Or name another --arch." in named[0].fix


def test_a_misspelt_architecture_is_said_beside_a_toolkit_that_is_not_here() -> None:
    for asked in (None, "12.7"):
        plan = plan_of(cuda_facts(), cuda=True, arch="Amperre", cuda_toolkit=asked)
        assert "did you mean Ampere?" in found(plan.findings, "architectures").text
        assert plan_of(cuda_facts(), cuda=True, arch="Ampere", cuda_toolkit=asked).verdict == "refuse"
