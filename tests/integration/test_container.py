"""Containers of the sample: their files, and images that a real engine makes, runs, and moves by a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.capabilities import has, needs, skip_without
from tests.support.driver import Run, torchbuild
from tests.support.sample import materialise

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform == "win32", reason="its engines run another Linux there"),
]
FOLDER = ".devcontainer/torchbuild"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return materialise(tmp_path / "pt", git=True)


def container(tree: Path, *words: str | Path, environ: Mapping[str, str] | None = None) -> Run:
    own, behind = (words[: words.index("--")], words[words.index("--") :]) if "--" in words else (words, ())
    return torchbuild("container", *own, "--source", tree, *behind, environ=environ)


def without_engines(folder: Path) -> dict[str, str]:
    """A PATH with what is found here, but no engine."""
    folder.mkdir()
    for name in ("g++", "gcc", "git", "python3", "sh", "ld"):
        for place in os.environ["PATH"].split(os.pathsep):
            if (Path(place) / name).exists():
                (folder / name).symlink_to(Path(place) / name)
                break
    return {"PATH": str(folder)}


def test_files_are_written_once_kept_when_edited_and_unseen_by_git(tree: Path, tmp_path: Path) -> None:
    """Without any engine, too."""
    environ = without_engines(tmp_path / "bin")
    done = container(tree, "write", "--cpu", "--json", environ=environ)
    assert done.code == 0, done.err
    folder = tree / FOLDER
    assert Path(done.json["folder"]) == folder
    text = (folder / "Containerfile").read_text("utf-8")
    assert "FROM ${BASE}\n" in text
    assert json.loads((folder / "devcontainer.json").read_text("utf-8"))["workspaceFolder"] == "/workspace"
    status = subprocess.run(
        ["git", "status", "--short"], cwd=tree, capture_output=True, text=True, check=True
    )
    assert status.stdout == ""
    (folder / "Containerfile").write_text(text + "RUN true\n", "utf-8")
    again = container(tree, "write", "--cpu", "--preset", "minimal", "--json", environ=environ)
    assert again.json["kept"] == ["Containerfile"]
    assert (folder / "Containerfile").read_text("utf-8").endswith("RUN true\n")
    assert again.json["image"] != done.json["image"]
    (folder / "Containerfile").unlink()
    assert container(tree, "write", "--cpu", environ=environ).code == 0
    assert (folder / "Containerfile").read_text("utf-8") == text


def test_the_tool_in_it_is_this_one(tree: Path, tmp_path: Path) -> None:
    """The copied tool runs by itself, as far as it needs no installed package."""
    assert container(tree, "write", "--cpu", environ=without_engines(tmp_path / "bin")).code == 0
    tool = tree / FOLDER / "tool"
    asked = (tool / "requirements.txt").read_text("utf-8")
    assert re.search(r"^msgspec>=", asked, re.MULTILINE)
    assert "auditwheel" not in asked
    argv = [sys.executable, "-P", "-m", "torchbuild_tasks", "plan", "--cpu", "--source", str(tree)]
    run = subprocess.run(
        argv,
        env={**os.environ, "PYTHONPATH": str(tool)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert os.access(tool / "torchbuild", os.X_OK)


def test_a_dry_run_shows_the_files_and_writes_none(tree: Path) -> None:
    done = container(tree, "write", "--cpu", "--dry-run")
    assert done.code == 0, done.err
    assert "workspaceFolder" in done.out
    assert not (tree / ".devcontainer").exists()


def test_without_an_engine_it_says_so(tree: Path, tmp_path: Path) -> None:
    done = container(tree, "build", "--cpu", environ=without_engines(tmp_path / "bin"))
    assert done.code == 20
    assert "podman: is in no folder of PATH" in done.err
    assert "container write" in done.err
    assert not (tree / ".devcontainer").exists()


def test_docker_builds_with_buildkit(tree: Path, tmp_path: Path) -> None:
    """Before 23 (Debian 12 has 20.10) Docker's default is the older builder, without RUN --mount."""
    environ = without_engines(tmp_path / "bin")
    docker = tmp_path / "bin/docker"
    answers = 'case $1 in info) echo "20.10.24 []";; build) echo "BuildKit: $DOCKER_BUILDKIT"; exit 3;;'
    docker.write_text(f"#!/bin/sh\n{answers} *) exit 1;; esac\n", "ascii")
    docker.chmod(0o755)
    done = container(tree, "build", "--cpu", environ=environ)
    assert done.code == 20
    assert "BuildKit: 1" in done.err
    done = container(tree, "build", "--cpu", "--offline", environ=environ)  # docker has no word for it
    assert done.code == 20
    assert "--offline pulls nothing" in done.err and "BuildKit" not in done.err


def test_a_checkout_that_no_list_of_mounts_can_name(tmp_path: Path) -> None:
    tree = materialise(tmp_path / "a,b")
    done = container(tree, "write", "--cpu")
    assert done.code == 20
    assert "has ',' in its name" in done.err


# ---------------- with real engines

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
  char where[99];
  FILE *file = fopen("made", "w");
  fprintf(file, "%d %s", (int)getuid(), getcwd(where, 99));
  fclose(file);
  printf("ran %s\n", count > 1 ? words[1] : "nothing");
  return 7;
}
"""


IMPORT = {
    "podman": "podman import --quiet image.tar localhost/tiny",
    "buildah": "c=$(buildah from scratch) && buildah add $c image.tar / "
    "&& buildah commit --rm $c localhost/tiny",
}


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A podman, or a buildah, with a storage of its own, and an image of one program in it."""
    name = getattr(request, "param", "podman")
    if not has(name) or not has("gcc"):
        skip_without(name)
    folder = tmp_path_factory.mktemp(name)
    (folder / "program.c").write_text(PROGRAM, "utf-8")
    subprocess.run(["gcc", "-static", "-o", folder / "program", folder / "program.c"], check=True)
    with tarfile.open(folder / "image.tar", "w") as archive:
        archive.add(folder / "program", "bin/program")
    environ = storage(folder)
    load, whole = ["sh", "-c", IMPORT[name]], {**os.environ, **environ}
    if subprocess.run(load, cwd=folder, env=whole, capture_output=True, check=False).returncode:
        skip_without(name)
    return environ


def storage(folder: Path) -> dict[str, str]:
    """Settings of podman for images of its own; runc runs where crun does not (cgroups of both versions)."""
    places = "".join(f'{name} = "{folder / name}"\n' for name in ("graphroot", "runroot"))
    (folder / "storage.conf").write_text(f'[storage]\ndriver = "vfs"\n{places}', "utf-8")
    own = '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
    own += 'runtime = "runc"\n' if has("runc") else ""
    own += f'volume_path = "{folder / "volumes"}"\n[containers]\nnetns = "host"\n'
    own += 'default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]\n'
    (folder / "containers.conf").write_text(own, "utf-8")
    return {
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "BUILDAH_ISOLATION": "chroot",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "own", "absent"),
    [
        pytest.param("podman", ("--memory", "1G"), 127, marks=needs(has("podman"), "podman")),
        pytest.param("buildah", (), 1, marks=needs(has("buildah"), "buildah")),
    ],
    indirect=["engine"],
)
def test_it_is_made_run_and_moved_by_a_file(
    tree: Path,
    engine: dict[str, str],
    own: tuple[str, ...],
    absent: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """By a Containerfile of the user's own: an edited one is used as it is."""
    words = ("--cpu", "--engine", request.node.callspec.params["engine"], *own)
    assert container(tree, "write", *words).code == 0
    (tree / FOLDER / "Containerfile").write_text('FROM localhost/tiny\nWORKDIR /workspace\nCMD ["program"]\n')
    run = container(tree, "run", *words, "--", "program", "word", environ=engine)
    assert (run.code, run.out.splitlines()[-1]) == (7, "ran word"), run.err
    assert "was edited by hand" in run.err
    assert (tree / "made").read_text("utf-8") == f"{os.getuid()} /workspace"
    assert container(tree, "run", *words, environ=engine).out.splitlines()[-1] == "ran nothing"
    file = tmp_path / "image.tar"
    assert container(tree, "save", file, *words, environ=engine).code == 0
    assert container(tree, "save", file, *words, environ=engine).code == 20  # nothing is written over
    (tmp_path / "other").mkdir()
    other = storage(tmp_path / "other")
    loaded = container(tree, "load", file, *words[1:3], environ=other)
    assert loaded.code == 0, loaded.err
    there = container(tree, "run", *words, "--offline", "--", "program", "there", environ=other)
    assert (there.code, there.out.splitlines()[-1]) == (7, "ran there"), there.err
    wrong = container(tree, "run", *words, "--", "/no/such", environ=engine)
    assert wrong.code == absent


@needs(has("podman"), "podman")
@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_a_registry_that_cannot_be_reached(
    words: tuple[str, ...], tree: Path, engine: dict[str, str]
) -> None:
    """What it says to do is there: a mirror, another image, a file."""
    own = ("--cpu", "--engine", "podman", "--registry", "docker.io=127.0.0.1:9/hub")
    done = container(tree, "build", *own, *words, environ=engine)
    assert done.code == 20, done.err
    assert "The base is 127.0.0.1:9/hub/library/debian:bookworm" in done.err
    for advice in ("--registry 127.0.0.1:9=", "--base IMAGE", "container load FILE"):
        assert advice in done.err
