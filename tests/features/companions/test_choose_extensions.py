"""What --with-extension reads, decides and refuses before anything is built."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cuda import cuda_facts, toolkit
from tests.support.for_each import each_case
from tests.support.machines import found, linux_facts, plan_of, statuses, tree
from tests.support.windows import windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.companions.choose import find_other_torch, read_extensions, without_torch
from torchbuild_tasks.model import Companion, CompanionSource, Facts
from torchbuild_tasks.values import replace


def facts(version: str = "2.8.0a0", **source: Any) -> Facts:
    sources = (CompanionSource(name="my-ext", path="/src/my-ext", **source),) if source else ()
    return linux_facts(tree=tree(version=version), companions=sources)


def only(**flags: Any) -> Companion:
    (companion,) = plan_of(facts(), **flags).companions
    return companion


@each_case(
    ("word", "name", "path", "url", "ref", "requirement"),
    [
        ("../my-ext", "my-ext", "../my-ext", "", "", ""),
        (r"C:\src\my-ext", "my-ext", r"C:\src\my-ext", "", "", ""),
        ("my-ext=.", "my-ext", ".", "", "", ""),
        ("https://host/me/my-ext.git@v1", "my-ext", "", "https://host/me/my-ext.git", "v1", ""),
        ("git@host:me/my-ext.git", "my-ext", "", "git@host:me/my-ext.git", "", ""),
        ("my-ext=https://host/other@main", "my-ext", "", "https://host/other", "main", ""),
        ("my-ext==1.2", "my-ext", "", "", "", "my-ext==1.2"),
        ("my-ext>=1,<2", "my-ext", "", "", "", "my-ext<2,>=1"),
        ("flash_attn", "flash-attn", "", "", "", "flash-attn"),
        ("torchao", "torchao", "", "", "", ""),  # the index has no source of it: its repository
        ("torchvision=/src/vision", "torchvision", "/src/vision", "", "", ""),
    ],
)
def test_a_word_is_a_folder_an_address_or_a_project(
    word: str, name: str, path: str, url: str, ref: str, requirement: str
) -> None:
    (wanted,) = read_extensions((word,), load_catalog())
    seen = (wanted.row.name, wanted.path, wanted.url, wanted.ref, wanted.requirement)
    assert seen == (name, path, url, ref, requirement)


@each_case(
    ("word", "text"),
    [
        ("my-ext=", "nothing after its ="),
        ("..", "no name of its own"),
        ("my ext", "neither a name nor a place"),
        ("my-ext[all]", "a name and a version are enough"),
        ("torchao==1.0", "the source of torchao is a repository"),
    ],
)
def test_what_cannot_be_read_says_what_can(word: str, text: str) -> None:
    with pytest.raises(UsageError, match=text) as refused:
        read_extensions((word,), load_catalog())
    assert "URL@REF" in (refused.value.next_step or "") or "@REF" in (refused.value.next_step or "")


def test_it_becomes_a_wheel_without_isolation_and_dependencies() -> None:
    companion = only(with_extension=("my-ext==1.2",), jobs=3)
    assert companion.requirement == "my-ext==1.2" and companion.extension
    assert {"wheel", "--no-build-isolation", "--no-deps", "--no-cache-dir"} < set(companion.argv)
    assert companion.argv[-1] == companion.folder == "/src/pytorch/.torchbuild/companions/my-ext-1.2"
    assert companion.set == {"MAX_JOBS": "3", "CMAKE_BUILD_PARALLEL_LEVEL": "3"}


def test_a_row_says_what_its_build_reads_and_how_large_its_compiles_are() -> None:
    flash = only(with_extension=("flash-attn",), cuda=True)
    plain = only(with_extension=("my-ext",), cuda=True)
    assert flash.set["FLASH_ATTN_CUDA_ARCHS"] == "{archs}"
    assert int(flash.set["MAX_JOBS"]) <= int(plain.set["MAX_JOBS"])
    assert plain.set["NVCC_THREADS"] == "1"  # else four times as many compiles as jobs
    assert only(with_extension=("my-ext",), cuda=True, set=("NVCC_THREADS=2",)).set["NVCC_THREADS"] == "2"
    assert only(with_extension=("vllm",), cuda=True).set["VLLM_TARGET_DEVICE"] == "cuda"
    assert only(with_extension=("vllm",)).set["VLLM_TARGET_DEVICE"] == "cpu"
    assert "tools/use_existing_torch.py" in only(with_extension=("vllm",)).before


def test_the_source_of_the_users_own_is_not_changed() -> None:
    sources = (CompanionSource(name="vllm", path="/src/vllm"),)
    seen = linux_facts(tree=tree(version="2.8.0a0"), companions=sources)
    (companion,) = plan_of(seen, with_extension=("vllm=/src/vllm",)).companions
    assert companion.before == ()


def test_what_is_for_gpus_only_is_refused_for_a_torch_without() -> None:
    plan = plan_of(facts(), with_extension=("flash-attn",))
    assert found(plan.findings, "flash-attn").status == "error" and plan.verdict == "refuse"
    assert found(plan.findings, "flash-attn").fix.startswith("Add --cuda, or")
    beside = plan_of(facts(), with_extension=("flash-attn",), cpu=True).findings
    assert found(beside, "flash-attn").fix.startswith("Put --cuda in the place of --cpu, or")
    assert (
        found(plan_of(facts(), with_extension=("flash-attn",), cuda=True).findings, "flash-attn").status
        == "ok"
    )


@each_case(
    ("asks", "status"),
    [((), "ok"), (("torch>=2.0",), "ok"), (("torch==2.8.0",), "ok"), (("numpy", "torch==2.9.0"), "error")],
)
def test_a_folder_that_pins_another_torch_is_refused_before_an_hour_is_spent(
    asks: tuple[str, ...], status: str
) -> None:
    """2.8.0a0 may yet be built as 2.8.0, which the build itself looks at."""
    plan = plan_of(facts(asks=asks), with_extension=("/src/my-ext",))
    assert found(plan.findings, "my-ext").status == status


def test_an_extension_without_a_row_is_named_by_the_flag_that_takes_it() -> None:
    plan = plan_of(facts(problem="no such folder"), with_extension=("my-ext=/src/my-ext",))
    (fix,) = (each.fix for each in plan.findings if each.text.endswith("no such folder"))
    assert fix.endswith("--with-extension my-ext=PATH")


def test_next_to_a_wheel_of_torch_it_is_planned_and_refused_just_so() -> None:
    plan = plan_of(facts(asks=("torch==2.9.0",)), with_extension=("/src/my-ext",), from_wheel="auto")
    assert found(plan.findings, "my-ext").status == "error" and plan.verdict == "refuse"
    fits = plan_of(facts(asks=()), with_extension=("/src/my-ext",), from_wheel="auto")
    assert [each.name for each in fits.companions] == ["my-ext"]
    assert "my-ext" in {choice.name for choice in fits.choices}


def test_what_its_build_asks_for_is_installed_but_torch() -> None:
    plan = plan_of(facts(builds_with=("hatchling", "torch==1.0")), with_extension=("/src/my-ext",))
    assert plan.environment.install is not None
    assert "hatchling" in plan.environment.install.argv
    assert not [word for word in plan.environment.install.argv if word.startswith("torch")]


@pytest.mark.parametrize(
    ("torch", "needs", "licence", "told"),
    [
        ("2.1.2", "setuptools>=77.0", True, "license = {text"),
        ("2.1.2", "setuptools>=77.0", False, "change that line"),  # as somebody wrote it
        ("2.9.1", "setuptools>=77.0", True, ""),
        ("2.6.0", "cmake>=4.0", False, "change that line"),
        ("2.6.0", "cmake>=3.15", False, ""),
        ("2.2.2", "numpy>=2,<3", False, "change that line"),
        ("2.2.2", "numpy>=2; python_version < '3.8'", False, ""),
        ("2.6.0", "setuptools>=75.9,!=75.9.*,!=76.*", False, ""),
    ],
)
def test_what_its_build_asks_for_may_exclude_what_torch_is_built_with(
    torch: str, needs: str, licence: bool, told: str
) -> None:
    source = facts(builds_with=(needs,), text_licence=licence)
    plan = plan_of(replace(source, tree=tree(version=torch)), with_extension=("/src/my-ext",))
    fixes = [each.fix for each in plan.findings if "is built with" in each.text and each.id == "my-ext"]
    assert len(fixes) == bool(told) and all(told in fix for fix in fixes)


def test_what_another_framework_needs_is_not_installed() -> None:
    """Transformer Engine lists jax and flax as build requirements even where it is built for PyTorch only."""
    asks = ("jax>=0.5.0", "flax", "nvidia-cudnn-frontend")
    source = CompanionSource(name="transformer-engine", path="/src/te", builds_with=asks)
    seen = linux_facts(tree=tree(version="2.8.0a0"), companions=(source,))
    plan = plan_of(seen, with_extension=("transformer-engine=/src/te",), cuda=True)
    assert plan.environment.install is not None
    assert "nvidia-cudnn-frontend" in plan.environment.install.argv
    assert not {"jax>=0.5.0", "flax"} & set(plan.environment.install.argv)


def test_a_pin_counts_as_pip_counts_it() -> None:
    assert find_other_torch(("torch==2.13.0",), "2.13.0+cpu") == ""
    assert find_other_torch(("numpy", "Torch==2.13.0"), "2.13.0a0+git1") == "Torch==2.13.0"
    assert find_other_torch(('torch==1.0; extra == "old"',), "2.13.0") == ""
    old = 'torch==1.0; python_version < "3.9"'  # of the Python that gets it, not of the one that plans
    assert find_other_torch((old,), "2.13.0", "3.8.1") == old
    assert find_other_torch((old,), "2.13.0", "3.14.0") == ""
    assert without_torch(("torch>=2", "ninja", "no name at all", "TORCH")) == ("ninja",)


@each_case(
    ("word", "archs", "warned"),
    [
        ("flash-attn", "7.5", True),
        ("flash-attn", "7.5;8.6", False),
        ("vllm", "7.5", False),
        ("vllm", "6.1", True),
    ],
)
def test_kernels_for_newer_gpus_are_told_before_they_are_compiled(
    word: str, archs: str, warned: bool
) -> None:
    plan = plan_of(cuda_facts(toolkit("12.4")), cuda=True, arch=archs, with_extension=(word,))
    texts = [each.text for each in plan.findings if each.id == word and each.status == "warn"]
    assert [f"and torch is built for {archs}" in text for text in texts] == [True] * warned


@each_case(("cuda", "warned"), [("11.5", True), ("11.8", False)])
def test_a_toolkit_that_its_build_refuses_is_told(cuda: str, warned: bool) -> None:
    facts = cuda_facts(toolkit(cuda), tree=tree(version="1.13.1"))
    texts = [
        each.text
        for each in plan_of(facts, cuda=True, arch="8.6", with_extension=("flash-attn",)).findings
        if each.id == "flash-attn" and each.status == "warn"
    ]
    assert [f"CUDA >=11.7, and this is {cuda}" in text for text in texts] == [True] * warned


def test_what_is_for_another_system_is_told() -> None:
    plan = plan_of(windows_facts(), with_extension=("vllm",))
    assert "warn" in statuses(plan.findings, "vllm")
    assert "warn" not in statuses(plan_of(facts(), with_extension=("vllm",)).findings, "vllm")


@each_case("name", ["vllm", "transformer-engine"])
def test_what_is_imported_with_a_part_of_torch_needs_that_part(name: str) -> None:
    cuda = cuda_facts(toolkit("12.8"), tree=tree(version="2.8.0a0"))
    plan = plan_of(cuda, cuda=True, arch="8.6", preset="minimal", with_extension=(name,))
    told = [each for each in plan.findings if each.id == name and each.status == "warn"]
    assert len(told) == 1 and "--set USE_DISTRIBUTED=1; or leave it out" in told[0].fix
    fine = plan_of(
        cuda, cuda=True, arch="8.6", preset="minimal", with_extension=(name,), set=("USE_DISTRIBUTED=1",)
    )
    assert "warn" not in statuses(fine.findings, name)


def test_of_one_target_no_companion_is_built() -> None:
    assert plan_of(facts(), target="c10", with_extension=("xformers",)).companions == ()
