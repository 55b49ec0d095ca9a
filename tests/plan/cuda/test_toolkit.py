"""The choice of the toolkit: what is chosen, refused and reported."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ask, found, plan_of, settings, tree
from torchbuild_tasks.model import Facts, Toolkit
from torchbuild_tasks.plan.cuda.toolkit import choose_toolkit
from torchbuild_tasks.plan.cuda.values import ChosenToolkit
from torchbuild_tasks.values import replace


def chosen(*toolkits: Toolkit, said: Any = None, **flags: Any) -> ChosenToolkit:
    return choose_toolkit(ask(cuda_facts(*toolkits), said, cuda=True, **flags))


def refused(facts: Facts, **flags: Any) -> str:
    plan = plan_of(facts, cuda=True, **flags)
    assert plan.verdict == "refuse"
    (finding,) = [f for f in plan.findings if (f.id, f.status) == ("cuda-toolkit", "error")]
    assert finding.fix
    return finding.text


def test_a_cpu_build_has_none() -> None:
    assert choose_toolkit(ask(cuda_facts(toolkit()))) == ChosenToolkit()


@each_case("arch", ["auto", "all", "common", "native", "8.6", "12.0", "3.5+PTX", "9.0a"])
def test_one_of_unknown_version_is_called_so_in_every_sentence(arch: str) -> None:
    other = replace(toolkit("12.4"), version=None, path="/opt/other")
    facts = cuda_facts(replace(toolkit("12.8"), version=None), other, gpus=(gpu("8.6"),))
    facts = replace(facts, environ={"LD_LIBRARY_PATH": "/opt/other/lib64"})
    plan = plan_of(facts, cuda=True, arch=arch)
    said = [*(f"{f.text} {f.fix}" for f in plan.findings), *(choice.because for choice in plan.choices)]
    assert not [text for text in said if "None" in text]
    assert [text for text in said if "CUDA of unknown version" in text]


def test_the_first_that_was_found() -> None:
    first, second = toolkit("12.8"), toolkit("12.6")
    choice = chosen(first, second).choice
    assert choice is not None
    assert choice.value == first.path
    assert "found via /usr/local" in choice.because


def test_a_root_without_nvcc_is_never_chosen_silently() -> None:
    runtime = toolkit("12.8", nvcc=None, path="/opt/runtime")
    picked = chosen(runtime, toolkit("12.6"))
    assert picked.root == "/usr/local/cuda-12.6"
    assert picked.passed_over == ("/opt/runtime: there is no nvcc in it",)
    assert "/opt/runtime: there is no nvcc in it" in refused(cuda_facts(runtime))


def test_none_at_all_says_where_was_looked_and_how_to_get_one() -> None:
    plan = plan_of(cuda_facts(), cuda=True)
    finding = found(plan.findings, "cuda-toolkit")
    assert "looked in PATH; /usr/local" in finding.text
    assert "--cuda-toolkit pypi:" in finding.fix


def test_nvcc_that_crashes_is_reported() -> None:
    text = refused(cuda_facts(toolkit(problem="nvcc --version ended with exit code -11")))
    assert "nvcc --version ended with exit code -11" in text


@pytest.mark.parametrize(
    "wanted", ["12.6", "/usr/local/cuda-12.6", "/usr/local/cuda-12.6/", "/usr/local/cuda-12.6/bin/nvcc"]
)
def test_the_one_asked_for(wanted: str) -> None:
    picked = chosen(toolkit("13.0"), toolkit("12.6"), cuda_toolkit=wanted)
    assert picked.root == "/usr/local/cuda-12.6"
    assert picked.choice is not None
    assert picked.choice.source == "flag"


def test_by_an_alias() -> None:
    linked = toolkit("12.6", aliases=("/usr/local/cuda",))
    assert chosen(toolkit("13.0"), linked, cuda_toolkit="/usr/local/cuda").root == linked.path


def test_the_settings_file_names_one_too() -> None:
    picked = chosen(toolkit("13.0"), toolkit("12.6"), said=settings({"cuda_toolkit": "12.6"}))
    assert picked.choice is not None
    assert (picked.root, picked.choice.source) == ("/usr/local/cuda-12.6", "torchbuild.toml")


def test_the_environment_names_one() -> None:
    facts = cuda_facts(toolkit("13.0"), toolkit("12.6"), environ={"CUDA_HOME": "/usr/local/cuda-12.6"})
    picked = choose_toolkit(ask(facts, cuda=True))
    assert picked.choice is not None
    assert (picked.root, picked.choice.source) == ("/usr/local/cuda-12.6", "environment")


@each_case(
    ("flags", "said", "environ", "root", "source"),
    [
        ({}, {"cuda_toolkit": "12.8"}, {"CUDA_HOME": "12.6"}, "12.6", "environment"),
        ({}, {"cuda_toolkit": "pypi:12.8"}, {"CUDA_HOME": "12.6"}, "12.6", "environment"),
        ({}, {"cuda_toolkit": "12.8"}, {"CUDA_PATH": "12.6"}, "12.6", "environment"),
        ({}, {"cuda_toolkit": "12.8"}, {"CUDACXX": "12.6/bin/nvcc"}, "12.6", "environment"),
        ({"cuda_toolkit": "12.8"}, {}, {"CUDA_HOME": "12.6"}, "12.8", "flag"),
        ({"cuda_toolkit": "12.8"}, {"cuda_toolkit": "12.6"}, {"CUDACXX": "12.6/bin/nvcc"}, "12.8", "flag"),
        ({}, {"cuda_toolkit": "12.8"}, {"CUDA_HOME": ""}, "12.8", "torchbuild.toml"),
    ],
)
def test_a_variable_of_the_environment_counts_over_the_key_of_a_file(
    flags: dict[str, Any], said: dict[str, Any], environ: dict[str, str], root: str, source: str
) -> None:
    named = {name: value and f"/usr/local/cuda-{value}" for name, value in environ.items()}
    facts = cuda_facts(toolkit("12.8"), toolkit("12.6"), environ=named)
    picked = choose_toolkit(ask(facts, settings(said), cuda=True, **flags))
    assert picked.choice is not None
    assert (picked.root, picked.choice.source) == (f"/usr/local/cuda-{root}", source)
    if said and source == "environment":
        assert "counts before cuda-toolkit in /src/torchbuild.toml" in picked.choice.because


def test_the_variable_of_windows_installers_does_not() -> None:
    facts = cuda_facts(toolkit("12.8"), toolkit("12.6"), environ={"CUDA_PATH": "/usr/local/cuda-12.6"})
    facts = replace(facts, host=replace(facts.host, os="windows"))
    for said, root in (({"cuda_toolkit": "12.8"}, "12.8"), ({}, "12.6")):
        assert choose_toolkit(ask(facts, settings(said), cuda=True)).root == f"/usr/local/cuda-{root}"


def test_the_flag_beats_the_environment_in_every_variable() -> None:
    facts = cuda_facts(toolkit("13.0"), toolkit("12.6"), environ={"CUDA_HOME": "/usr/local/cuda-12.6"})
    values = {
        op.name: op.value for op in plan_of(facts, cuda=True, cuda_toolkit="13.0").env if op.op == "set"
    }
    names = ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT")
    assert {values[name] for name in names} == {"/usr/local/cuda-13.0"}
    assert values["CUDACXX"] == "/usr/local/cuda-13.0/bin/nvcc"


def test_a_variable_that_names_no_toolkit_is_refused() -> None:
    facts = cuda_facts(toolkit(), environ={"CUDA_HOME": "/opt/gone"})
    assert "/opt/gone (CUDA_HOME: CUDA_HOME in the environment) is not a CUDA toolkit" in refused(facts)


def test_two_of_one_version_are_not_guessed_between() -> None:
    other = toolkit("12.6", path="/opt/cuda")
    text = refused(cuda_facts(toolkit("12.6"), other), cuda_toolkit="12.6")
    assert "/usr/local/cuda-12.6 and /opt/cuda" in text
    assert chosen(toolkit("12.6"), other, cuda_toolkit="/opt/cuda").root == "/opt/cuda"


def test_a_version_that_is_not_here() -> None:
    text = refused(cuda_facts(toolkit("13.0")), cuda_toolkit="12.6")
    assert "no CUDA 12.6" in text
    assert "13.0 (/usr/local/cuda-13.0)" in text


def fix_of(facts: Facts, **flags: Any) -> str:
    return found(plan_of(facts, cuda=True, **flags).findings, "cuda-toolkit").fix


def test_where_another_is_asked_for_that_one_is_offered_first_and_then_what_is_here() -> None:
    broken = replace(toolkit("12.8"), problem="it has no nvcc")
    fix = fix_of(cuda_facts(toolkit("13.0"), broken), cuda_toolkit="12.6")
    assert fix.startswith("Take --cuda-toolkit pypi:12.6") and "13.0" not in fix  # this torch refuses 13.0
    fix = fix_of(cuda_facts(toolkit("12.4"), broken), cuda_toolkit="12.6")
    assert fix.startswith("Take --cuda-toolkit pypi:12.6")
    assert fix.count("12.4") == 1 and fix.endswith(" Or take what is here: --cuda-toolkit 12.4.")
    fix = fix_of(cuda_facts(toolkit("12.4")), cuda_toolkit="pypi:12.7")
    assert "pypi:12.4" in fix and "pypi:13" not in fix


@each_case(
    ("asked", "environ", "first"),
    [
        ("cu126", {}, "pypi:12.6"),
        ("v12.6", {}, "pypi:12.6"),
        ("/usr/local/cuda-12.6", {}, "pypi:12.6"),
        ("", {"CUDA_HOME": "/usr/local/cuda-12.6"}, "pypi:12.6"),
        ("/usr/local/cuda-99", {}, "12.4"),
        ("12.7", {}, "12.4"),
        ("", {"CUDA_HOME": "/opt/gone"}, "12.4"),
    ],
)
def test_a_toolkit_is_asked_for_in_several_spellings(asked: str, environ: dict[str, str], first: str) -> None:
    facts = cuda_facts(toolkit("12.4"), environ=environ, tree=tree(version="2.6.0"))
    fix = fix_of(facts, cuda_toolkit=asked or None)
    assert fix.startswith(f"Take --cuda-toolkit {first} (")
    assert fix.count("12.4") == 1


def test_one_that_nothing_puts_together_is_to_be_installed_if_it_is_wanted() -> None:
    fix = fix_of(cuda_facts(toolkit("12.4"), tree=tree(version="2.6.0")), cuda_toolkit="12.1")
    assert fix.startswith("Take --cuda-toolkit 12.4 (it is here)") and "Or install CUDA 12.1 (https" in fix


@pytest.mark.parametrize("asked", ["cu124", "v12.4", "CUDA 12.4", "cuda-12.4", "/usr/local/cuda-12.4"])
def test_one_that_is_here_is_taken_in_any_spelling(asked: str) -> None:
    assert chosen(toolkit("12.4"), toolkit("12.6"), cuda_toolkit=asked).root == "/usr/local/cuda-12.4"


@pytest.mark.parametrize("versions", list(itertools.permutations(("11.8", "12.4", "12.6"))), ids=str)
def test_of_several_side_by_side_the_order_decides_nothing(versions: tuple[str, ...]) -> None:
    """Upstream's binaries of 2.6 are built with 12.4; PATH and a folder without a number are a choice."""
    several = [toolkit(version, found_via="known folder") for version in versions]
    facts = cuda_facts(*several, tree=tree(version="2.6.0"))
    assert choose_toolkit(ask(facts, cuda=True)).root == "/usr/local/cuda-12.4"
    for named in ({"found_via": "PATH"}, {"aliases": ("/usr/local/cuda",)}):
        first = replace(several[0], **named)
        facts = cuda_facts(first, *several[1:], tree=tree(version="2.6.0"))
        assert choose_toolkit(ask(facts, cuda=True)).root == first.path


def test_a_path_that_is_a_file() -> None:
    """The facts look at it, because it was asked for, and say what it is."""
    file = Toolkit(path="/etc/hosts", found_via="--cuda-toolkit", problem="it is a file, not a folder")
    assert "/etc/hosts (--cuda-toolkit on the command line) cannot be used: it is a file" in refused(
        cuda_facts(file), cuda_toolkit="/etc/hosts"
    )


def test_flags_that_contradict() -> None:
    facts = cuda_facts(toolkit("12.8"), toolkit("12.6"))
    flags = {"cuda_toolkit": "12.8", "set": ("CUDA_HOME=/usr/local/cuda-12.6",)}
    assert "contradict" in refused(facts, **flags)


@pytest.mark.parametrize(
    ("torch", "version", "stops"),
    [
        ("2.6.0", "13.0", "does not compile"),
        ("1.13.1", "12.4", "CUSPARSE_COOMM_ALG1"),
        ("1.6.0", "11.8", "cusparseScsrmm2"),
    ],
)
def test_a_toolkit_that_cannot_compile_this_torch_is_refused_once(
    torch: str, version: str, stops: str
) -> None:
    facts = cuda_facts(toolkit(version), gpus=(gpu("8.0"),), tree=tree(version=torch))
    found = [f for f in plan_of(facts, cuda=True).findings if f.id == "cuda-toolkit"]
    assert {f.status for f in found} == {"error"}
    assert any(stops in f.text for f in found)


def test_its_folder_and_version_are_an_input_of_the_build() -> None:
    plan = plan_of(cuda_facts(toolkit("13.0")), cuda=True)
    assert plan.inputs["cuda toolkit"] == "/usr/local/cuda-13.0 13.0"
    assert "cuda toolkit" not in plan_of(cuda_facts(toolkit("13.0"))).inputs


def test_cudacxx_names_the_toolkit_of_its_nvcc() -> None:
    old, new = toolkit("12.4"), toolkit("12.8")
    for name in ("CUDACXX", "CMAKE_CUDA_COMPILER"):
        assert (
            choose_toolkit(ask(cuda_facts(new, old, environ={name: str(old.nvcc)}), cuda=True)).root
            == old.path
        )
    wrapped = cuda_facts(new, old, environ={"CUDACXX": "/opt/wrapper/nvcc"})
    assert choose_toolkit(ask(wrapped, cuda=True)).root == new.path


@pytest.mark.parametrize(
    ("value", "told"), [("clang++-19", True), ("ccache /usr/local/cuda-13.0/bin/nvcc", False), ("", False)]
)
def test_a_cuda_compiler_that_is_not_nvidias(value: str, told: bool) -> None:
    """pytorch#139065."""
    facts = cuda_facts(toolkit("13.0"), gpus=(gpu("8.6"),), environ={"CUDACXX": value})
    findings = [f for f in plan_of(facts, cuda=True).findings if f.id == "cuda-toolkit"]
    assert told is any(f.status == "warn" and "is not nvcc" in f.text for f in findings)


@pytest.mark.parametrize("layer", ["environ", "set"])
def test_an_nvcc_of_another_toolkit_than_the_one_named(layer: str) -> None:
    """CMake ends with "Found two conflicting CUDA versions"."""
    old, new = toolkit("12.4"), toolkit("12.8")
    environ = {"CUDA_HOME": new.path} | ({"CUDACXX": str(old.nvcc)} if layer == "environ" else {})
    assigned = (f"CUDACXX={old.nvcc}",) if layer == "set" else ()
    plan = plan_of(cuda_facts(new, old, gpus=(gpu("8.6"),), environ=environ), cuda=True, set=assigned)
    finding = found(plan.findings, "cuda-toolkit")
    assert finding.status == ("warn" if layer == "environ" else "error")
    assert f"CUDACXX={old.nvcc}" in finding.text
    assert {op.value for op in plan.env if op.name == "CUDACXX"} == {new.nvcc}


def test_of_a_version_that_is_not_here_the_nearest_is_advised() -> None:
    plan = plan_of(cuda_facts(toolkit("12.4"), gpus=(gpu("8.6"),)), cuda=True, cuda_toolkit="12.6")
    assert "pypi:12.6" in found(plan.findings, "cuda-toolkit").fix


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("CUDAToolkit_ROOT", "/opt/cuda", "error"),
        ("CMAKE_CUDA_COMPILER", "/opt/cuda/bin/nvcc", "error"),
        ("CUDACXX", "/usr/local/cuda-11.8/bin/nvcc", "error"),
        ("CUDAToolkit_ROOT", "/usr/local/cuda-12.4/", "ok"),
        ("CUDAToolkit_ROOT", "/usr/local/cuda", "ok"),  # a link to it
        ("CMAKE_CUDA_COMPILER", "/usr/local/cuda/bin/nvcc", "ok"),
        ("CUDACXX", "/home/u/bin/nvcc", "ok"),  # a script may call the toolkit's
        ("CUDACXX", "/usr/lib/ccache/nvcc", "ok"),
    ],
)
def test_what_names_another_cuda_than_the_toolkits_is_refused(name: str, value: str, status: str) -> None:
    here = toolkit("12.4", aliases=("/usr/local/cuda",))
    facts = cuda_facts(here, gpus=(gpu(),), tree=tree(version="2.6.0"))
    told = found(plan_of(facts, cuda=True, set=(f"{name}={value}",)).findings, "cuda-toolkit")
    assert told.status == status
    if status == "error":
        assert name in told.text and "no toolkit is there" in told.fix


def test_a_folder_in_the_environment_is_replaced_by_that_of_the_toolkit_that_is_named() -> None:
    facts = cuda_facts(toolkit("12.4"), gpus=(gpu(),), tree=tree(version="2.6.0"))
    facts = replace(facts, environ={"CUDAToolkit_ROOT": "/opt/cuda"})
    assert found(plan_of(facts, cuda=True).findings, "cuda-toolkit").status == "warn"
    named = plan_of(facts, cuda=True, cuda_toolkit="12.4")
    assert found(named.findings, "cuda-toolkit").status == "ok"
    assert {op.value for op in named.env if op.name == "CUDAToolkit_ROOT"} == {"/usr/local/cuda-12.4"}


def test_a_major_alone_asks_for_no_series() -> None:
    plan = plan_of(cuda_facts(toolkit("12.4")), cuda=True, cuda_toolkit="pypi:12")
    assert "install CUDA" not in found(plan.findings, "cuda-toolkit").fix
