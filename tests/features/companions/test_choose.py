"""The companions of --with: the release or folder, the command, and the findings."""

from __future__ import annotations

from typing import Any

import pytest
from packaging.version import Version

from tests.support.for_each import each_case
from tests.support.machines import ask, found, linux_facts, plan_of, settings, tree, with_tree
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.companions.choose import newest_release, read_with
from torchbuild_tasks.model import BuildPlan, Companion, CompanionSource, Facts
from torchbuild_tasks.values import replace


def facts(version: str, *sources: CompanionSource) -> Facts:
    return linux_facts(tree=tree(version=version), companions=sources)


def source(version: str | None = "0.23.0a0", **changes: Any) -> CompanionSource:
    values: dict[str, Any] = {"name": "torchvision", "path": "/src/vision", "version": version}
    return CompanionSource(**{**values, **changes})


def only(plan: BuildPlan) -> Companion:
    (companion,) = plan.companions
    return companion


def test_a_companion_that_wants_any_cmake_gets_one_that_torch_can_be_built_with() -> None:
    """torchaudio asks for `cmake`; with the newest of PyPI torch 2.6 does not configure again."""
    here = facts("2.6.0a0")
    installed = [
        next((word for word in plan.environment.install.argv if word.startswith("cmake")), "")
        for plan in (
            plan_of(here, with_=("torchaudio",)),
            plan_of(
                replace(here, tools=tuple(t for t in here.tools if t.name != "cmake")), with_=("torchaudio",)
            ),
        )
        if plan.environment.install
    ]
    assert installed[0] == ""  # the machine's fits both
    assert "<4" in installed[1]


@each_case(
    ("word", "path", "url", "ref"),
    [
        ("torchvision", "", "", ""),
        ("torchvision=../vision", "../vision", "", ""),
        (r"torchvision=C:\src\vision", r"C:\src\vision", "", ""),
        ("torchvision=https://host/vision.git@v0.28.0", "", "https://host/vision.git", "v0.28.0"),
        ("torchvision=https://me@host/vision", "", "https://me@host/vision", ""),
        ("torchvision=git@host:pytorch/vision.git@main", "", "git@host:pytorch/vision.git", "main"),
        ("torchvision=file:///src/vision", "", "file:///src/vision", ""),
    ],
)
def test_a_word_is_a_name_a_folder_or_an_address(word: str, path: str, url: str, ref: str) -> None:
    (wanted,) = read_with((word,), load_catalog())
    assert (wanted.row.name, wanted.path, wanted.url, wanted.ref) == ("torchvision", path, url, ref)


@each_case(
    ("word", "text"),
    [
        ("torchvison", "did you mean torchvision"),
        ("torchvision=", "nothing after its ="),
        ("=/src", "no project"),
    ],
)
def test_what_cannot_be_read_is_refused(word: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        read_with((word,), load_catalog())


def test_of_one_project_the_last_word_counts() -> None:
    (wanted,) = read_with(("torchvision", "torchvision=/src/vision"), load_catalog())
    assert wanted.path == "/src/vision"


def test_the_release_that_belongs_to_the_torch_is_cloned_and_built() -> None:
    plan = plan_of(facts("2.8.0a0"), with_=("torchvision",))
    companion = only(plan)
    assert (companion.version, companion.ref) == ("0.23.0", "v0.23.0")
    assert companion.url == "https://github.com/pytorch/vision"
    assert companion.folder == "/src/pytorch/.torchbuild/companions/torchvision-v0.23.0"
    assert {"--no-deps", "--no-build-isolation", "--no-cache-dir"} < set(companion.argv)
    assert companion.argv[-1] == companion.folder
    assert companion.set == {"PYTORCH_VERSION": "{torch}", "FORCE_CUDA": "0"}
    assert found(plan.findings, "torchvision").status == "ok"
    assert {choice.name: choice.value for choice in plan.choices}["torchvision"] == "0.23.0"


def test_a_cuda_build_makes_a_torchvision_with_cuda() -> None:
    assert only(plan_of(facts("2.8.0a0"), with_=("torchvision",), cuda=True)).set["FORCE_CUDA"] == "1"


@pytest.mark.parametrize(
    ("torch", "cuda", "value"),
    [("2.10.0", True, "1"), ("1.12.1", True, "1"), ("2.9.1", True, None), ("2.10.0", False, None)],
)
def test_a_builder_that_refuses_a_good_compiler(torch: str, cuda: bool, value: str | None) -> None:
    plan = plan_of(facts(torch), with_=("torchvision",), cuda=cuda)
    assert only(plan).set.get("TORCH_DONT_CHECK_COMPILER_ABI") == value
    assert ("CUDAExtension refuses" in " ".join(each.text for each in plan.findings)) == bool(value)


def test_what_would_be_downloaded_meanwhile_is_off_unless_the_user_wants_it() -> None:
    """torchaudio's build fetches SoX and three FFmpegs; what follows from torch is not the user's to say."""
    quiet = only(plan_of(facts("2.6.0a0"), with_=("torchaudio",))).set
    assert (quiet["BUILD_SOX"], quiet["USE_FFMPEG"]) == ("0", "0")
    said = ("USE_FFMPEG=1", "PYTORCH_VERSION=1.0")
    wanted = only(plan_of(facts("2.6.0a0"), with_=("torchaudio",), set=said)).set
    assert (wanted["USE_FFMPEG"], wanted["PYTORCH_VERSION"]) == ("1", "{torch}")


def test_what_it_needs_is_installed_with_what_torch_needs() -> None:
    plan = plan_of(facts("2.8.0a0"), with_=("torchvision",))
    assert plan.environment.install is not None
    assert "pillow>=5.3,!=8.3.*" in plan.environment.install.argv


def test_its_operators_are_promised() -> None:
    def promised(**flags: Any) -> set[str]:
        return {each.check for each in plan_of(facts("2.8.0a0"), **flags).expectations}

    beside = {"torchvision", "torchvision_cuda", "torchaudio"}
    assert not promised() & beside
    assert promised(with_=("torchvision",)) & beside == {"torchvision"}
    assert promised(with_=("torchvision", "torchaudio"), cuda=True) & beside == beside


def test_where_no_release_is_known_the_plan_is_refused_unless_a_ref_is_named() -> None:
    plan = plan_of(facts("0.4.1"), with_=("torchvision",))
    finding = found(plan.findings, "torchvision")
    assert finding.status == "error" and "--with torchvision=PATH" in finding.fix
    assert plan.companions == () and plan.verdict == "refuse"
    named = plan_of(facts("0.4.1"), with_=("torchvision=https://host/vision@v0.10.0",))
    assert (only(named).ref, only(named).url) == ("v0.10.0", "https://host/vision")
    assert found(named.findings, "torchvision").status == "unknown"


def test_a_release_with_the_stable_abi_fits_every_later_torch() -> None:
    plan = plan_of(facts("2.99.0"), with_=("torchaudio",))
    release = newest_release(load_catalog(), "torchaudio", Version("2.99.0"))
    assert release is not None and release.stable
    assert only(plan).version == release.version
    assert "stable ABI" in found(plan.findings, "torchaudio").text


@each_case(
    ("seen", "status", "text"),
    [
        (source("0.23.0a0"), "ok", "builds with torch 2.8.0a0"),
        (source("0.24.0", commit="abc"), "error", "switch --detach v0.23.0"),
        (source("0.24.0"), "error", "Its release for this torch is 0.23.0"),
        (source("0.99.0a0"), "unknown", "it is not known which torch"),
        (source(None), "unknown", "of unknown version"),
        (source(problem="no such folder"), "error", "no such folder"),
        (None, "unknown", "was not inspected"),
    ],
)
def test_a_folder_is_checked_against_the_torch(seen: CompanionSource | None, status: str, text: str) -> None:
    sources = (seen,) if seen else ()
    finding = found(
        plan_of(facts("2.8.0a0", *sources), with_=("torchvision=/src/vision",)).findings, "torchvision"
    )
    assert finding.status == status
    assert text in finding.text + finding.fix


def test_a_folder_for_a_torch_without_any_release_is_refused_without_naming_one() -> None:
    plan = plan_of(facts("0.4.1", source("0.23.0a0")), with_=("torchvision=/src/vision",))
    finding = found(plan.findings, "torchvision")
    assert (finding.status, finding.fix) == ("error", "")
    assert finding.text.endswith("and this is 0.4.1")


def test_a_folder_is_built_where_it_is_and_again_unless_git_knows_its_state() -> None:
    def built_from(**changes: Any) -> Companion:
        return only(plan_of(facts("2.8.0a0", source(**changes)), with_=("torchvision=/src/vision",)))

    assert (built_from().folder, built_from().url, built_from().state) == ("/src/vision", "", "")
    assert built_from(commit="abc", dirty=False).state == "abc"
    assert built_from(commit="abc", dirty=True).state == ""


def test_the_settings_file_can_ask_for_it() -> None:
    plan = plan_of(facts("2.8.0a0"), settings({"with_": ("torchvision",)}))
    assert only(plan).name == "torchvision"


# ---------------------------------------------------------------- development versions


def development(version: str, **flags: Any) -> str:
    plan = plan_of(with_tree(linux_facts(), version=version), **flags)
    return "".join(each.text for each in plan.findings if each.id == "development-version")


def test_a_development_version_sorts_below_its_release_and_the_plan_says_what_follows() -> None:
    text = development("2.8.0a0")
    assert "2.8.0a0, which pip sorts below 2.8.0" in text
    assert "torchvision 0.23.0 asks for torch==2.8.0" in text and "--with torchvision" in text


def test_a_wheel_of_the_stable_abi_takes_a_later_development_version() -> None:
    assert "asks for torch>=2.14.0, which it is" in development("2.15.0a0")


def test_a_torchvision_built_next_to_it_asks_for_just_this_torch() -> None:
    assert "asks for exactly this torch" in development("2.8.0a0", with_=("torchvision",))


def test_a_release_is_not_spoken_of() -> None:
    assert development("2.8.0") == ""
    assert development("2.8.0a0", set=("PYTORCH_BUILD_VERSION=2.8.0", "PYTORCH_BUILD_NUMBER=1")) == ""


def test_where_no_torchvision_is_known_that_of_pip_is_still_reported() -> None:
    assert development("0.4.1a0").endswith("where a package asks for the release")


def test_the_question_knows_the_flag_by_its_own_name() -> None:
    given = ask(replace(facts("2.8.0a0")), with_=("torchvision",)).given("with_")
    assert given is not None and given[2] == "--with on the command line"
