"""The helpers of a plan, their variables, and the findings."""

from __future__ import annotations

from typing import Any

from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, plan_of, settings, statuses, tree
from tests.support.windows import ROOT, windows_facts
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.features.helpers.choose import (
    artifact_id,
    check_helpers,
    choose_helpers,
    helper_lines,
    part_lines,
)
from torchbuild_tasks.model import BuildPlan, Facts, Store, Tool
from torchbuild_tasks.plan.cuda.toolkit import choose_toolkit
from torchbuild_tasks.values import replace

STORE = r"C:\Users\Ada\AppData\Local\torchbuild-tasks\Cache"


def machine(cuda: str = "", version: str = "2.3.0", sample: bool = False, **environ: str) -> Facts:
    """A Windows machine that builds this torch, with this CUDA in its environment."""
    if cuda:
        environ["CUDA_PATH"] = rf"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v{cuda}"
    return windows_facts(environ=environ, tree=tree(root=ROOT, version=version, sample=sample))


def ids(facts: Facts, build_type: str = "Release", **flags: Any) -> list[str]:
    question = ask(facts, **flags)
    chosen = choose_helpers(question, build_type, choose_toolkit(question).version)
    return [helper.artifact.id for helper in chosen.chosen]


def magma(facts: Facts, build_type: str = "Release", **flags: Any) -> list[str]:
    return [name for name in ids(facts, build_type, cuda=True, **flags) if name.startswith("magma")]


def test_an_old_torch_takes_the_classic_mkl() -> None:
    assert "mkl-2020.2.254" in ids(machine(version="2.3.0"))


def test_a_newer_torch_takes_mkl_from_the_package_index() -> None:
    names = ids(machine(version="2.8.0"))
    assert [name for name in names if name.startswith(("mkl-static-", "mkl-include-"))]
    assert "mkl-2020.2.254" not in names


def test_magma_comes_with_cuda_only() -> None:
    assert magma(machine("12.4")) == ["magma-2.5.4-cuda124-release"]
    assert not [name for name in ids(machine("12.4"), cpu=True) if name.startswith("magma")]


@each_case(
    ("build_type", "configuration"),
    [("Release", "release"), ("Debug", "debug"), ("RelWithDebInfo", "release"), ("MinSizeRel", "release")],
)
def test_magma_is_of_the_configuration_that_links(build_type: str, configuration: str) -> None:
    """A release MAGMA in a Debug torch ends in LNK2038."""
    assert magma(machine("12.1"), build_type) == [f"magma-2.5.4-cuda121-{configuration}"]


def test_the_newest_magma_of_a_cuda_version() -> None:
    assert magma(machine("10.0")) == ["magma-2.5.2-cuda100-release"]
    assert magma(machine("10.2")) == ["magma-2.5.4-cuda102-release"]


def test_without_a_magma_for_it_torch_is_built_without() -> None:
    plan = plan_of(machine("12.5"), cuda=True)
    choice = next(choice for choice in plan.choices if choice.name == "USE_MAGMA")
    assert (choice.value, choice.source) == ("0", "helper")
    assert "no MAGMA archive exists for CUDA 12.5" in choice.because
    assert "12.6" in choice.because


@each_case("flags", [(), ("USE_MAGMA=1",)])
def test_from_2_12_on_magma_is_there_only_for_who_asks(flags: tuple[str, ...]) -> None:
    facts = machine("13.0")
    plan = plan_of(replace(facts, tree=replace(facts.tree, version="2.14.1")), cuda=True, set=flags)
    (choice,) = [choice for choice in plan.choices if choice.name == "USE_MAGMA"]
    assert choice.value == ("1" if flags else "0")
    assert [each.id for each in plan.artifacts if each.name == "magma"] == (
        ["magma-2.5.4-cuda130-release"] if flags else []
    )


def test_a_variable_of_the_users_stands_for_the_helper() -> None:
    facts = machine("12.4", MAGMA_HOME=r"D:\magma")
    assert magma(facts) == []
    plan = plan_of(facts, cuda=True)
    assert [c.value for c in plan.choices if c.name in ("MAGMA_HOME", "USE_MAGMA")] == [r"D:\magma"]


def test_none_declines_all_but_those_named() -> None:
    assert ids(machine(), with_helper=("none",)) == []
    assert ids(machine(), with_helper=("none", "mkl")) == ["mkl-2020.2.254"]


def test_the_sample_downloads_nothing_unrequested() -> None:
    assert ids(machine(sample=True)) == []
    assert ids(machine(sample=True), with_helper=("mkl",)) == ["mkl-2020.2.254"]


def test_on_linux_a_helper_comes_only_on_request() -> None:
    assert ids(linux_facts()) == []
    assert [name.split("-")[0] for name in ids(linux_facts(), with_helper=("sccache",))] == ["sccache"]


def test_a_name_that_is_none_is_refused_with_those_there_are() -> None:
    plan = plan_of(machine(), with_helper=("mlk",))
    finding = found(tuple(f for f in plan.findings if f.status == "error"), "helper")
    assert finding.text == "there is no helper mlk for windows x86_64; did you mean mkl?"
    assert "mkl" in finding.fix


def test_one_that_is_not_published_here_is_made() -> None:
    plan = plan_of(linux_facts(), with_helper=("magma",))
    finding = found(tuple(f for f in plan.findings if f.status == "error"), "helper")
    assert finding.fix.startswith("Make it: torchbuild helpers build magma --cuda")


def test_exports_stand_in_the_environment_with_the_machines_separators() -> None:
    plan = plan_of(machine("12.4"), cuda=True)
    ops = {op.name: op for op in plan.env}
    assert ops["MAGMA_HOME"].value == rf"{STORE}\unpacked\magma-2.5.4-cuda124-release"
    assert ops["LIB"].op == "prepend"
    assert ops["LIB"].value == rf"{STORE}\unpacked\mkl-2020.2.254\lib"


def test_a_flag_beats_what_a_helper_exports() -> None:
    plan = plan_of(machine("12.4"), cuda=True, set=(r"MAGMA_HOME=D:\magma",))
    assert [op.value for op in plan.env if op.name == "MAGMA_HOME"] == [r"D:\magma"]


def test_the_hash_is_the_rows_else_that_of_the_lock_file() -> None:
    pins = {"mkl-2020.2.254": "ab" * 32}
    facts = windows_facts(store=Store(folder=STORE, pins=pins), tree=tree(root=ROOT, version="2.3.0"))
    (artifact,) = [a for a in plan_of(facts).artifacts if a.name == "mkl"]
    assert artifact.sha256 == "ab" * 32


def test_hashes_can_be_required() -> None:
    assert "error" in statuses(plan_of(machine(), require_hashes=True).findings, "helper")
    pins = {a.id: "ab" * 32 for a in plan_of(machine()).artifacts}
    pinned = windows_facts(store=Store(folder=STORE, pins=pins), tree=tree(root=ROOT, version="2.3.0"))
    assert "error" not in statuses(plan_of(pinned, require_hashes=True).findings, "helper")


def test_what_is_still_to_come_is_reported() -> None:
    assert "to be downloaded: mkl-2020.2.254" in found(plan_of(machine()).findings, "helper").text
    unpacked = {artifact.id: "ab" * 32 for artifact in plan_of(machine()).artifacts}
    here = windows_facts(store=Store(folder=STORE, unpacked=unpacked), tree=tree(root=ROOT, version="2.3.0"))
    assert statuses(plan_of(here).findings, "helper") == []


def own_row(**changes: Any) -> HelperRow:
    values: dict[str, Any] = {
        "name": "mkl",
        "version": "2019.4.245",
        "os": "windows",
        "needed": "build",
        "unpack": "7z",
        "urls": ("https://example.org/mkl.7z",),
        "source": "a test",
    }
    return HelperRow(**{**values, **changes})


def test_a_row_of_the_users_beats_a_newer_one_of_ours() -> None:

    said = replace(settings(), helpers=(own_row(),))
    chosen = choose_helpers(ask(machine(), said), "Release").chosen
    assert [h.artifact.id for h in chosen if h.artifact.name == "mkl"] == ["mkl-2019.4.245"]


def test_an_id_tells_a_row_from_its_siblings() -> None:
    row = own_row(name="magma", version="2.5.4", cuda="124", configuration="debug")
    assert artifact_id(row) == "magma-2.5.4-cuda124-debug"
    assert (
        artifact_id(own_row(name="sccache", version="0.16.0", tag="win_amd64")) == "sccache-0.16.0-win_amd64"
    )


def test_lines_mark_what_is_wanted() -> None:
    question = ask(machine())
    lines = helper_lines(question, choose_helpers(question, "Release"))
    assert {line.id for line in lines if line.wanted} == set(ids(machine()))
    assert len(lines) > 20


@each_case(
    ("environ", "wanted"),
    [
        ({"BLAS": "MKL"}, True),
        ({"BLAS": "OpenBLAS"}, False),
        ({"BLAS": ""}, True),
        ({"MKLROOT": r"C:\oneAPI\mkl"}, False),
    ],
)
def test_a_variable_may_ask_for_a_helper_as_well_as_decline_it(environ: dict[str, Any], wanted: bool) -> None:
    assert ("mkl-2020.2.254" in ids(machine(**environ))) is wanted


@each_case(("value", "count"), [("1", 1), ("0", 0)])
def test_use_magma_says_whether(value: str, count: int) -> None:
    assert len(magma(machine("12.4", USE_MAGMA=value))) == count


def test_what_torch_imports_of_a_helper_goes_into_its_python() -> None:
    """libiomp5md.dll on PATH alone would make a torch that imports only inside the env file."""
    install = plan_of(machine(version="2.8.0")).environment.install
    assert install is not None
    assert "intel-openmp==2024.2.0" in install.argv
    without = plan_of(machine(version="2.8.0"), with_helper=("none",)).environment.install
    assert without is None or "intel-openmp==2024.2.0" not in without.argv


def test_a_blank_in_the_caches_path_is_reported_where_it_breaks_something() -> None:
    store = Store(folder=r"C:\Users\Ada Lovelace\Cache")
    old = windows_facts(store=store, tree=tree(root=ROOT, version="2.3.0"))
    assert statuses(plan_of(old).findings, "helper-blank") == ["warn"]
    new = windows_facts(store=store, tree=tree(root=ROOT, version="2.8.0"))
    assert statuses(plan_of(new).findings, "helper-blank") == []


def test_a_helper_is_a_choice_with_its_reason_and_source() -> None:
    def sources(**flags: Any) -> dict[str, tuple[str, str]]:
        plan = plan_of(machine(), **flags)
        return {c.name: (c.value, c.source) for c in plan.choices if c.name.startswith("helper ")}

    assert sources()["helper mkl"] == ("mkl-2020.2.254", "default")
    assert sources(with_helper=("mkl",))["helper mkl"] == ("mkl-2020.2.254", "flag")
    assert sources(with_helper=("none",)) == {}


def test_the_parts_of_a_toolkit_are_listed_as_wanted() -> None:
    facts = windows_facts(store=Store(folder=STORE), tree=tree(root=ROOT, sample=True))
    question = ask(facts, cuda=True, cuda_toolkit="pypi:13.0")
    lines = part_lines(question, choose_toolkit(question).artifacts)
    assert any(line.id.startswith("nvidia-cuda-nvcc-13.0") for line in lines)
    assert all(line.wanted and not line.here for line in lines)
    assert lines[0].folder == rf"{STORE}\unpacked\{lines[0].id}"


# ---------------------------------------------------------------- a folder of its own for a checkout's own


def asked_row(url: str, **changes: Any) -> HelperRow:
    about = {"needed": "asked", "unpack": "zip", "source": "t", **changes}
    return HelperRow(name="tool", version="1", os="linux", urls=(url,), **about)


def place_of(row: HelperRow, **flags: Any) -> str:
    question = ask(linux_facts(), replace(settings(), helpers=(row,)), with_helper=("tool",), **flags)
    (helper,) = choose_helpers(question, "Release").chosen
    assert helper.artifact.id == "tool-1"
    assert helper.folder.endswith(helper.artifact.stored_as)
    return helper.artifact.stored_as


def test_rows_of_two_checkouts_share_a_folder_only_with_the_same_address_or_hash() -> None:
    here, there = asked_row("https://a/x.zip"), asked_row("https://b/x.zip")
    assert place_of(here) == place_of(asked_row("https://a/x.zip")) != place_of(there)
    assert place_of(here).startswith("tool-1-")
    assert place_of(here) != place_of(here, mirror="https://mirror/")
    known = {"sha256": "ab" * 32}
    assert place_of(asked_row("https://a/x.zip", **known)) == place_of(asked_row("https://b/x.zip", **known))
    assert place_of(asked_row("https://a/x.zip", **known)) != place_of(
        asked_row("https://a/x.zip", sha256="cd" * 32)
    )


def test_our_own_rows_are_called_by_their_id_unless_a_mirror_gives_them() -> None:
    facts = machine(version="2.3.0")
    plain = choose_helpers(ask(facts), "Release").artifacts
    assert all(artifact.stored_as == artifact.id for artifact in plain)
    mirrored = choose_helpers(ask(facts, mirror="https://mirror/"), "Release").artifacts
    assert all((artifact.place == "") == bool(artifact.sha256) for artifact in mirrored)


def test_plain_http_without_a_hash_refuses_the_plan() -> None:
    def found_of(**changes: Any) -> list[str]:
        flags = {name: changes.pop(name) for name in ("allow_http",) if name in changes}
        row = asked_row("http://h/x.zip", **changes)
        question = ask(linux_facts(), replace(settings(), helpers=(row,)), with_helper=("tool",), **flags)
        return [one.text for one in check_helpers(question, choose_helpers(question, "Release")) if one.fix]

    assert "plain http: h" in found_of()[0]
    assert found_of(sha256="ab" * 32) == found_of(allow_http=True) == []


def test_randomtemp_starts_nvcc_before_a_compiler_cache_does() -> None:
    facts = machine("12.4", "2.6.0")
    alone = variables(plan_of(facts, cuda=True, arch="8.6", with_helper=("randomtemp",), cache="none"))
    assert alone["CMAKE_CUDA_COMPILER_LAUNCHER"].endswith("/randomtemp.exe")
    cache = Tool(name="sccache", path=r"C:\bin\sccache.exe", version="0.10.0", found_via="PATH")
    both = replace(facts, tools=(*facts.tools, cache))
    made = variables(plan_of(both, cuda=True, arch="8.6", with_helper=("randomtemp",), cache="sccache"))
    first, second = made["CMAKE_CUDA_COMPILER_LAUNCHER"].split(";")
    assert (first, second) == (alone["CMAKE_CUDA_COMPILER_LAUNCHER"], "C:/bin/sccache.exe")
    assert made["CMAKE_CXX_COMPILER_LAUNCHER"] == "C:/bin/sccache.exe"
    assert "CMAKE_CUDA_COMPILER_LAUNCHER" not in variables(
        plan_of(facts, cuda=True, arch="8.6", cache="none")
    )


def variables(plan: BuildPlan) -> dict[str, str]:
    return {choice.name: choice.value for choice in plan.choices}
