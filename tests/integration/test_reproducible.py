"""The same commit in two folders, with other jobs, umask and zone: the same wheel, its papers in order."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import has, needs, needs_linux_compiler, skip_without
from tests.support.driver import Run, torchbuild
from tests.support.sample import ERAS, Era, commit, materialise, run_git

pytestmark = [pytest.mark.integration, needs_linux_compiler]
MIT = "Permission is hereby granted, free of charge. The above copyright notice and this permission notice"


def lay(folder: Path, era: Era) -> Path:
    """A sample with a licence, in git; and its clone elsewhere is the same commit."""
    tree = materialise(folder / "minitorch", era=era, git=True)
    (tree / "LICENSE").write_text(MIT, "utf-8")
    commit(tree, "a licence")
    run_git(tree, "push", "--quiet")
    return tree


def build(tree: Path, target: Path, *words: str, **environ: str) -> Run:
    told = {"TORCHBUILD_STATE": str(tree.parent / "state"), **environ}
    wheel = ("--mode", "wheel", "--reproducible", "--cache", "none", "--yes")
    done = torchbuild("build", "--source", tree, "--python", target, *wheel, *words, environ=told)
    assert done.code == 0, done.out + done.err
    return done


def made(tree: Path) -> Path:
    (wheel,) = (tree / "dist").glob("*.whl")
    return wheel


@pytest.fixture(
    scope="module",
    params=[pytest.param(era, marks=pytest.mark.slow) for era in ERAS],
)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, target: Path
) -> Iterator[tuple[Path, Path]]:
    one = lay(tmp_path_factory.mktemp("one"), request.param)
    other = tmp_path_factory.mktemp("other") / "a" / "rather" / "longer" / "folder"
    run_git(one.parent, "clone", "--quiet", "--recurse-submodules", f"{one}.git", str(other))
    build(one, target, "--jobs", "2")
    before = os.umask(0o002)
    try:
        build(other, target, "--jobs", "1", TZ="Asia/Tokyo", LC_ALL="C")
    finally:
        os.umask(before)
    yield one, other
    subprocess.run([str(target), "-m", "pip", "uninstall", "-q", "-y", "torch"], check=True)


def test_the_wheel_is_the_same_to_the_last_bit(pair: tuple[Path, Path]) -> None:
    one, other = map(made, pair)
    done = torchbuild("compare", "--bits", one, other)
    assert done.code == 0, done.out
    assert hashlib.sha256(one.read_bytes()).hexdigest() in done.out


def test_no_folder_of_the_machine_is_in_it(pair: tuple[Path, Path], target: Path) -> None:
    here = (str(pair[0]).encode(), str(target.parent.parent).encode())
    with zipfile.ZipFile(made(pair[0])) as archive:
        found = [name for name in archive.namelist() if any(path in archive.read(name) for path in here)]
    assert found == []


def test_its_papers_are_in_order(pair: tuple[Path, Path]) -> None:
    wheel = made(pair[0])
    done = torchbuild("verify", "--provenance", wheel)
    assert done.code == 0, done.out + done.err
    assert "0 failed" in done.out
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if "/sboms/" in name)
        bom = json.loads(archive.read(name))
    assert bom["metadata"]["component"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert [each["name"] for each in bom["components"]] == [
        "third_party/tinyfmt",
        "third_party/tinyfmt/third_party/tinyassert",
    ]


def test_a_wheel_that_was_changed_is_explained_and_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    wheel = made(pair[0])
    copy = tmp_path / wheel.name
    data = wheel.read_bytes()
    copy.write_bytes(data)
    beside = wheel.with_name(f"{wheel.name}.provenance.json")
    (tmp_path / beside.name).write_bytes(beside.read_bytes())
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("torch/evil.py", "")
    refused = torchbuild("verify", "--provenance", copy)
    assert refused.code == 7
    assert "torch/evil.py" in refused.out
    explained = torchbuild("compare", "--bits", wheel, copy)
    assert explained.code == 7
    assert "torch/evil.py: only in the second" in explained.out


@pytest.fixture
def altered(pair: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """The wheel, and one in whose library another text stands."""
    wheel, other = made(pair[0]), tmp_path / "other.whl"
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(other, "w") as copy:
        for member in archive.infolist():
            data = archive.read(member).replace(b"minitorch's native half", b"somebody's native  half")
            copy.writestr(member, data)
    return wheel, other


@needs(has("diffoscope"), "diffoscope (Debian's package diffoscope-minimal)")
def test_diffoscope_looks_into_libraries_and_at_no_folder_of_ours(altered: tuple[Path, Path]) -> None:
    done = torchbuild("compare", "--bits", *altered)
    assert done.code == 7, done.out + done.err
    ours, _, theirs = done.out.partition("\ndiffoscope\n")
    assert "torch/lib/libtorch_python.so: sections .rodata\n" in ours
    assert "readelf" in theirs and "somebody's native  half" in theirs
    assert "Modify:" not in theirs and "failed" not in theirs


def test_a_diffoscope_that_fails_says_so(altered: tuple[Path, Path], tmp_path: Path) -> None:
    program = tmp_path / "bin/diffoscope"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no magic >&2\nexit 2\n", "utf-8")
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = torchbuild("compare", "--bits", *altered, environ={"PATH": path})
    assert done.code == 7, done.out + done.err
    assert done.out.endswith("\ndiffoscope\n(it failed with exit code 2: no magic)\n")


@pytest.mark.slow
@pytest.mark.parametrize("era", ["setuptools", "scikit-build-core"])
def test_two_pythons_share_one_tree(era: Era, tmp_path: Path) -> None:
    found = sorted(Path.home().glob(".pyenv/versions/3.1[1-3]*/bin/python"))[-2:]
    if len(found) < 2:
        skip_without("two Pythons from 3.11 on, of pyenv")
    tree = materialise(tmp_path / "minitorch", era=era)
    done = torchbuild(
        *("build", "--source", tree, "--mode", "wheel", "--yes", "--json"),
        *("--python", ",".join(map(str, found))),
        environ={"TORCHBUILD_STATE": str(tmp_path / "state")},
        timeout=900,
    )
    assert done.code == 0, done.out + done.err
    first, second = done.json["wheels"]
    assert first["wheel"] != second["wheel"]
    assert any("matmul.cpp" in step for step in first["steps"])
    assert not any("aten/" in step and step.endswith(".o") for step in second["steps"])
    assert any("torch/csrc" in step or "csrc" in step for step in second["steps"])
