"""Two manifests differ in what they differ in, and in nothing else."""

from __future__ import annotations

from pathlib import Path

from tests.support.machines import plan_of
from torchbuild_tasks.features.manifest.compare import (
    ABSENT,
    GROUPS,
    Place,
    differences,
    not_compared,
    with_remedies,
)
from torchbuild_tasks.features.manifest.read import read_manifest
from torchbuild_tasks.features.manifest.replay import Replay
from torchbuild_tasks.features.manifest.verb import compare_text, replay_text
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.values import replace

DATA = Path(__file__).with_name("schema-1.json").read_bytes()
ONE = read_manifest(DATA, "x.json")
HERE = Place(
    root="/my src", python="/v/python", manifest="m.json", install=lambda name: f"apt install {name}"
)


def remedies(other: Manifest) -> dict[str, str]:
    return {each.name: each.remedy for each in with_remedies(differences(ONE, other), ONE, HERE)}


def test_a_build_does_not_differ_from_itself() -> None:
    assert differences(ONE, ONE) == ()


def test_what_one_of_two_builds_does_not_know_is_not_called_the_same() -> None:
    assert not_compared(ONE, ONE) == ()
    folder = replace(ONE, repositories=(), source_problem="no git repository: a plain folder")
    assert not_compared(folder, folder) == ("source: no git repository: a plain folder",)
    assert not_compared(ONE, folder) == not_compared(folder, ONE) == not_compared(folder, folder)
    torch, *others = ONE.repositories
    (new,) = torch.untracked
    large = replace(torch, untracked=(replace(new, sha256=None),), problem="2 more files are not listed")
    gone = replace(others[0], commit=None, problem="git: dubious ownership")
    cut = replace(ONE, repositories=(large, gone, *others[1:]), programs=())
    assert not_compared(ONE, cut) == (
        "source: 2 more files are not listed",
        "source: aten/new.h by its size alone",
        f"submodule {gone.path}: git: dubious ownership",
        "toolchain: not known of one of them, as of a build that was cut off",
    )
    text = compare_text((), ("a", "b"), not_compared(folder, folder))
    assert "do not know may" in text and "not compared\n  source: no git repository" in text
    assert "nothing that is known" in replay_text(Replay(plan=plan_of(), differences=(), not_compared=("x",)))


def test_another_place_of_the_checkout_is_no_difference() -> None:
    other = read_manifest(DATA.replace(b"/src/minitorch", b"/elsewhere/torch"), "x.json")
    assert other.root == "/elsewhere/torch"
    assert differences(ONE, other) == ()


def test_differences_come_by_group_and_name_both_sides() -> None:
    torch, *others = ONE.repositories
    compiler, *programs = ONE.programs
    other = replace(
        ONE,
        repositories=(replace(torch, commit="f" * 40, diff_sha256="", untracked=()), *others[1:]),
        programs=(replace(compiler, version="13.1.0"), *programs),
        requirements=ONE.requirements[1:],
        env=ONE.env[1:],
    )
    found = differences(ONE, other)
    assert [each.group for each in found] == sorted((x.group for x in found), key=GROUPS.index)
    by_name = {each.name: each for each in found}
    assert by_name["commit"].here == "f" * 40
    assert by_name["changes"].here == ABSENT
    assert by_name["untracked aten/new.h"].here == ABSENT
    assert by_name[f"submodule {others[0].path}"].here == ABSENT
    assert "13.1.0" in by_name["CXX"].here
    assert by_name[ONE.requirements[0].name].there.startswith(ONE.requirements[0].version)


def test_each_difference_that_can_be_removed_says_how() -> None:
    torch, *others = ONE.repositories
    compiler, *programs = ONE.programs
    other = replace(
        ONE,
        python_version="3.9.1",
        repositories=(replace(torch, commit="f" * 40, diff_sha256="9" * 64), *others),
        programs=(replace(compiler, version="9.4.0"), *programs),
        requirements=tuple(replace(each, version="0.1") for each in ONE.requirements),
        tool="torchbuild_tasks 9.9",
    )
    said = remedies(other)
    assert f'git -C "/my src" checkout --detach {torch.commit}' in said["commit"]
    assert "submodule update --init --recursive" in said["commit"]
    out = "/my src/.torchbuild/diffs"
    taken = f'torchbuild replay m.json --out "{out}"'
    git = 'git -C "/my src"'
    assert said["changes"] == f'{git} stash && {taken} && {git} apply "{out}/torch.diff"'
    assert said["CXX"] == "apt install g++-12, then --set CXX=g++-12"
    numpy = next(each for each in ONE.requirements if each.name == "numpy")
    assert said["numpy"] == f"/v/python -m pip install numpy=={numpy.version}"
    assert said["torch"] == ""  # that is what is built
    assert said["version"] == f"install Python {ONE.python_version} and name it: --python PATH"
    assert said["tool"] == "pip install torchbuild-tasks==0.1.0"


def test_what_a_build_had_and_this_one_lacks_says_how_it_comes_back() -> None:
    torch, first, second = ONE.repositories
    compiler, _, cmake, *programs = ONE.programs
    nvcc = replace(cmake, name="nvcc", path="/usr/local/cuda/bin/nvcc", version="12.4.131")
    clang = replace(compiler, path="/usr/bin/clang++", version="17.0.6")
    then = replace(ONE, programs=(clang, cmake, nvcc, *programs))
    other = replace(
        then,
        repositories=(replace(torch, untracked=()), replace(first, commit="f" * 40)),
        programs=tuple(replace(each, version="9.9") for each in then.programs),
        requirements=(*ONE.requirements, replace(ONE.requirements[0], name="spare")),
    )
    found = with_remedies(differences(then, other), then, HERE)
    said = {each.name: each.remedy for each in found}
    checkout = f'git -C "/my src/{first.path}"'
    assert said[f"submodule {first.path}"] == (
        f"{checkout} fetch origin {first.commit} && {checkout} checkout --detach {first.commit}"
    )
    assert said[f"submodule {second.path}"] == 'git -C "/my src" submodule update --init --recursive'
    assert "copy it from there" in said["untracked aten/new.h"]
    assert said["CXX"] == "apt install clang-17"
    assert said["cmake"] == f"/v/python -m pip install cmake=={cmake.version}"
    assert said["nvcc"].startswith("install CUDA 12.4, or")
    assert said["spare"] == "/v/python -m pip uninstall spare"


def test_an_env_file_with_the_same_values_and_another_reason_shows_that_line() -> None:
    (file,) = ONE.env_files
    then = replace(ONE, env_files=(replace(file, sha256="1" * 64, text="a\n# X: measured\nexport X=1\n"),))
    now = replace(ONE, env_files=(replace(file, sha256="2" * 64, text="a\n# X: tabled\nexport X=1\n"),))
    (found,) = differences(then, now)
    assert (found.there, found.here) == ("1" * 12 + "  # X: measured", "2" * 12 + "  # X: tabled")
