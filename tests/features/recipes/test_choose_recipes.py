"""The helper that is built from source for a torch, its command line, and the row by which it is used."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.support.cuda import cuda_facts, gpu, toolkit
from tests.support.for_each import each_case
from tests.support.machines import ask, tree
from tests.support.windows import ROOT, windows_facts
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.catalog.rows import HelperRow
from torchbuild_tasks.errors import PlanRefused, UsageError
from torchbuild_tasks.features.recipes.choose import (
    Order,
    accept_compilers,
    archive_name,
    choose_recipe,
    choose_source_patches,
    configure_argv,
    make_note,
    make_order,
    row_text,
)
from torchbuild_tasks.model import Finding
from torchbuild_tasks.values import from_json, replace

NEW = "set( CMAKE_CUDA_ARCHITECTURES x )"
OLD = "SET( NV_SM ${CUDA_ARCH_LIST})"


def linux(word: str = "magma", version: str = "2.9.0", **flags: Any) -> Order:
    facts = cuda_facts(toolkit("13.0"), gpus=(gpu(),), tree=tree(version=version))
    return make_order(ask(facts, **{"cuda": True, "arch": "8.0;9.0+PTX", **flags}), word)


def windows(**flags: Any) -> Order:
    programs = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.6"
    facts = windows_facts(environ={"CUDA_PATH": programs}, tree=tree(root=ROOT, version="2.9.0"))
    return make_order(ask(facts, cuda=True, arch="8.6", **flags), "magma")


def configured(order: Order, cmake: str) -> tuple[str, ...]:
    return configure_argv(order, choose_recipe(load_catalog(), "magma", cmake, "here"), "source", "build")


def test_it_is_built_for_the_cuda_and_the_architectures_of_the_plan() -> None:
    order = linux()
    assert (order.cuda, order.arch_words, order.system) == ("13.0", ("8.0", "9.0+PTX"), "linux x86_64")
    argv = configured(order, NEW)
    assert "-DCMAKE_CUDA_ARCHITECTURES=80-real;90-real;90-virtual" in argv
    assert {"-DUSE_FORTRAN=OFF", "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_BUILD_TYPE=Release"} <= set(argv)
    assert archive_name(order, "2.9.0") == "magma-cuda130-2.9.0-1.tar.bz2"


def test_its_source_is_the_release_of_the_row() -> None:
    artifact = linux().artifact
    assert artifact and artifact.urls and len(artifact.sha256 or "") == 64


@each_case(
    ("word", "place"),
    [
        ("magma=/src/magma", ("/src/magma", "", "")),
        ("magma=https://host/magma@v2.10.0", ("", "https://host/magma", "v2.10.0")),
        ("magma=https://host/magma", ("", "https://host/magma", "HEAD")),
    ],
)
def test_or_whatever_is_named(word: str, place: tuple[str, ...]) -> None:
    order = linux(word)
    assert (order.path, order.url, order.ref) == place
    assert order.artifact is None


@each_case(("build_type", "configuration"), [("Release", "release"), ("Debug", "debug")])
def test_on_windows_it_is_of_upstreams_tree_and_of_the_configuration_that_links(
    build_type: str, configuration: str
) -> None:
    order = windows(build_type=build_type)
    assert order.url.endswith("magma_win.git") and len(order.ref) == 40
    assert archive_name(order, "2.5.4") == f"magma_2.5.4_cuda126_{configuration}.7z"
    argv = configured(order, OLD)
    assert "-DCUDA_ARCH_LIST=-gencode arch=compute_86,code=sm_86" in argv
    assert {"-DGPU_TARGET=All", f"-DCMAKE_BUILD_TYPE={build_type}"} <= set(argv)


def test_a_source_without_a_list_of_architectures_is_refused() -> None:
    """magma 2.6.1 would be compiled for Kepler, Maxwell and Pascal and ignore the requested architectures."""
    with pytest.raises(UsageError, match="does not read CMAKE_CUDA_ARCHITECTURES or CUDA_ARCH_LIST"):
        choose_recipe(load_catalog(), "magma", "set( GPU_TARGET x )", "here")


@each_case(
    ("version", "cuda", "ids"),
    [
        ("2.9.0", "13.0", ["magma-clock-rate"]),
        ("2.5.4", "13.4", ["magma-clock-rate"]),
        ("2.10.0", "13.0", []),
        ("2.9.0", "12.6", []),
    ],
)
def test_the_clock_is_patched_where_cuda_has_none(version: str, cuda: str, ids: list[str]) -> None:
    found = choose_source_patches(load_catalog(), replace(linux(), cuda=cuda), version)
    assert [patch.id for patch in found] == ids


def test_a_torch_that_does_without_refuses_unless_forced() -> None:
    with pytest.raises(PlanRefused, match="torch 2.14.1 does not need magma") as refused:
        linux(version="2.14.1")
    assert "--set USE_MAGMA=1" in refused.value.next_step
    assert "USE_MAGMA=1 asks for it" in linux(version="2.14.1", set=("USE_MAGMA=1",)).because
    assert "torch 2.9.0 still does linear algebra" in linux().because


@each_case(
    ("word", "flags", "said"),
    [
        ("magna", {}, "from source; did you mean magma.$"),
        ("magma", {"cuda": False, "cpu": True}, "version of CUDA"),
    ],
)
def test_what_has_no_recipe_or_no_cuda_is_refused(word: str, flags: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        linux(word, **flags)


def test_the_row_is_one_that_the_settings_take() -> None:
    order = windows()
    text = row_text(order, make_note(order, "2.5.4", "abc"), "file:///C:/x.7z", "0" * 64, 7)
    (item,) = tomllib.loads(text)["helper"]
    row = from_json(HelperRow, item, "row")
    assert (row.cuda, row.archs, row.configuration) == ("126", ("8.6",), "release")
    assert row.set == {"MAGMA_HOME": "{folder}"}
    linux_row = tomllib.loads(row_text(linux(), make_note(linux(), "2.9.0", "abc"), "file:///x", "", 7))
    assert "configuration" not in linux_row["helper"][0]


def test_only_what_the_helper_takes_of_the_plan_must_work() -> None:
    from tests.support.machines import plan_of

    plan = plan_of(cuda_facts(toolkit("13.0"), gpus=(gpu(),)), cuda=True)
    own = Finding(id="magma", status="error", text="was built for CUDA 12.6")
    other = Finding(id="compiler", status="error", text="there is none")
    submodules = Finding(id="submodules", status="error", text="third_party/ideep is empty")
    lacking = replace(plan, findings=(own, submodules))
    assert accept_compilers(lacking, "magma") is lacking
    with pytest.raises(PlanRefused):
        accept_compilers(replace(plan, findings=(own, other)), "magma")
