"""Source distributions of real checkouts: complete, buildable without git and network, or refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.capabilities import needs_cmake, needs_git, needs_linux_compiler, needs_symlinks
from tests.support.driver import Run, torchbuild
from tests.support.sample import Era, materialise, run_git

pytestmark = [pytest.mark.integration, needs_git]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of the sample with its nested submodules."""
    return materialise(tmp_path / "pt", git=True)


def pack(tree: Path, *words: str) -> Run:
    return torchbuild("package", "sdist", "--source", tree, "--out", tree.parent / "out", *words)


def members(done: Run) -> dict[str, bytes | str]:
    """Return what is in the archive, below its top folder."""
    path = Path(done.json["path"])
    with tarfile.open(path) as archive:
        top = path.name.removesuffix(".tar.gz") + "/"
        return {
            info.name.removeprefix(top): info.linkname or archive.extractfile(info).read()  # type: ignore[union-attr]
            for info in archive
        }


@needs_linux_compiler
@needs_cmake
@pytest.mark.parametrize("era", ["scikit-build-core", pytest.param("setuptools", marks=pytest.mark.slow)])
def test_pip_builds_it_where_there_is_no_git_and_no_network(era: Era, target: Path, tmp_path: Path) -> None:
    """The older era by Python's own headers, where they are: every other build has the sample's."""
    tree = materialise(tmp_path / "pt", era=era, git=True)
    done = pack(tree, "--json")
    assert done.code == 0, done.err
    shutil.rmtree(tree)
    words = ("wheel", "-v", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(tmp_path))
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:1")
    path = f"{target.parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, **nowhere, "GIT_CEILING_DIRECTORIES": "/", "PATH": path, "MAX_JOBS": "2"}
    if asked := era == "setuptools":
        environ["USE_PYTHON_HEADERS"] = "1"
    argv = [str(target), "-m", "pip", *words, done.json["path"]]
    built = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    there = Path(sysconfig.get_path("include"), "Python.h").exists()
    assert ("our own declarations of the stable ABI" in said) == (not (asked and there))
    (wheel,) = tmp_path.glob("torch-*.whl")
    assert wheel.name.split("-")[1] == done.json["version"]
    with zipfile.ZipFile(wheel) as archive:
        assert done.json["version"] in archive.read("torch/version.py").decode()


def test_it_holds_what_git_tracks_as_it_is_here(tree: Path) -> None:
    """Changed files go in and are named; what git does not track stays out and is named."""
    version = (tree / "version.txt").read_text("utf-8").strip()
    clean = pack(tree, "--json")
    first = Path(clean.json["path"]).read_bytes()
    assert pack(tree, "--json").json == clean.json
    assert Path(clean.json["path"]).read_bytes() == first
    (tree / "third_party/tinyfmt/CMakeLists.txt").write_text("# mine\n", "utf-8")
    (tree / "secret.txt").write_text("x", "utf-8")
    done = pack(tree, "--json")
    assert done.json["changed"] == ["third_party/tinyfmt/CMakeLists.txt"]
    assert done.json["left_out"] == ["secret.txt"]
    assert done.json["version"] == f"{version}+git{done.json['commit'][:7]}.dirty"
    packed = members(done)
    assert packed["third_party/tinyfmt/CMakeLists.txt"] == b"# mine\n"
    assert packed["version.txt"] == f"{done.json['version']}\n".encode()
    assert "third_party/tinyfmt/third_party/tinyassert/CMakeLists.txt" in packed
    assert not [name for name in packed if ".git/" in name or name.startswith(("secret", "dist/"))]


def test_its_version_is_that_of_a_build_here(tree: Path) -> None:
    (tree / "torchbuild.toml").write_text('[set]\nPYTORCH_BUILD_VERSION = "3.1.4"\n', "utf-8")
    assert pack(tree, "--json").json["version"] == "3.1.4"


def test_a_missing_submodule_is_refused_and_what_is_advised_brings_it(tree: Path) -> None:
    inner = tree / "third_party/tinyfmt"
    run_git(inner, "submodule", "deinit", "-f", "--all")
    shutil.rmtree(inner / "third_party/tinyassert")
    done = pack(tree)
    assert done.code == 19
    assert "third_party/tinyfmt/third_party/tinyassert holds nothing" in done.err
    assert "git submodule update --init --recursive" in done.err
    run_git(tree, "submodule", "update", "--init", "--recursive")
    assert pack(tree).code == 0


@pytest.mark.parametrize(
    "case", ["deleted", *(pytest.param(case, marks=needs_symlinks) for case in ("link", "folder"))]
)
def test_what_no_other_machine_would_have_is_refused(case: str, tree: Path) -> None:
    if case == "deleted":
        (tree / "README.md").unlink()
    elif case == "folder":  # git tracks what is in it, and by now it is one of this machine's
        (tree / "cmake").rename(tree.parent / "outside")
        (tree / "cmake").symlink_to("../outside")
    else:
        (tree / "out.txt").symlink_to("../outside")
        run_git(tree, "add", "out.txt")
    done = pack(tree)
    assert done.code == 19
    assert {"deleted": "README.md", "link": "out.txt", "folder": "cmake"}[case] in done.err
    assert not (tree.parent / "out").exists()


def test_without_git_it_says_what_is_the_source_then(tmp_path: Path) -> None:
    done = pack(materialise(tmp_path / "pt"))
    assert done.code == 19
    assert "is not under git" in done.err


@pytest.mark.parametrize("epoch", ["x", "-1", "9" * 5000, str(1 << 32)])
def test_a_time_that_is_none_is_refused(tree: Path, monkeypatch: pytest.MonkeyPatch, epoch: str) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    done = pack(tree)
    assert (done.code, "not a number of seconds" in done.err) == (2, True), done.err


def test_flags_of_a_wheel_are_no_flags_of_it(tree: Path) -> None:
    assert pack(tree, "--graft", "libx.so").code == 2
