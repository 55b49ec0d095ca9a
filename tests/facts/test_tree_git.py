from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.facts.fakes import FakeProbe, machine, windows_machine, write
from tests.support.capabilities import skip_without
from torchbuild_tasks.facts.probe import Output, Probe
from torchbuild_tasks.facts.tree import Repository, look_at_commit_time, look_at_git

HASH = "0123456789abcdef0123456789abcdef01234567"
ASK = "/usr/bin/git --no-optional-locks -C /src"
HEAD = f"{ASK} rev-parse --show-toplevel HEAD"
STATUS = f"{ASK} status --porcelain --untracked-files=no --ignore-submodules=all"


def repository(
    root: Path, head: Output | None, status: Output | None = None, git: str = "/src/.git/"
) -> FakeProbe:
    door = machine(root, files={git: ""}, programs={"/usr/bin/git": None})
    door.outputs.update({HEAD: head, STATUS: status})
    return door


@pytest.mark.parametrize("git", ["/src/.git/", "/src/.git"], ids=["clone", "worktree"])
@pytest.mark.parametrize(("status", "dirty"), [("", False), (" M setup.py\n", True)])
def test_commit_and_changes(tmp_path: Path, git: str, status: str, dirty: bool) -> None:
    door = repository(tmp_path, Output(0, f"/src\n{HASH}\n"), Output(0, status), git)
    assert look_at_git(door, "/src") == Repository(commit=HASH, dirty=dirty)


def test_changes_are_looked_for_on_request(tmp_path: Path) -> None:
    door = repository(tmp_path, Output(0, f"/src\n{HASH}\n"), Output(0, " M setup.py\n"))
    assert look_at_git(door, "/src", changes=False) == Repository(commit=HASH)
    assert door.asked == [HEAD]


def test_a_folder_without_git_is_not_queried(tmp_path: Path) -> None:
    door = repository(tmp_path, Output(0, f"/\n{HASH}\n"), git="/elsewhere/.git/")
    assert look_at_git(door, "/src") == Repository()
    assert door.asked == []


@pytest.mark.parametrize(
    "head",
    [
        Output(128, "", "fatal: detected dubious ownership in repository"),
        Output(128, "/src\nHEAD\n", "fatal: ambiguous argument 'HEAD'"),
        Output(0, f"/\n{HASH}\n"),
        Output(0, "rubbish"),
        None,
    ],
    ids=["another owner", "no commit yet", "the repository around it", "rubbish", "hangs"],
)
def test_what_git_does_not_tell_is_unknown(tmp_path: Path, head: Output | None) -> None:
    assert (
        look_at_git(repository(tmp_path, head, Output(0, "")), "/src")._replace(git_problem=None)
        == Repository()
    )


def test_a_status_that_fails_leaves_the_commit(tmp_path: Path) -> None:
    door = repository(tmp_path, Output(0, f"/src\n{HASH}\n"), None)
    assert look_at_git(door, "/src") == Repository(commit=HASH, dirty=None)


def test_without_git_the_repository_is_there_all_the_same(tmp_path: Path) -> None:
    assert look_at_git(machine(tmp_path, files={"/src/.git/": ""}), "/src") == Repository()


@pytest.mark.integration
def test_a_real_repository(tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        skip_without("git")
    root = (tmp_path / "src").resolve()
    write(root, {"a.txt": "1", "b.txt": "1"})
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=x", "-c", "user.email=x@y")
    door = Probe(environ=environ)

    def call(*words: str) -> str:
        done = subprocess.run(
            [git, *who, *words], cwd=root, env=environ, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    call("init")
    assert look_at_git(door, str(root))._replace(git_problem=None) == Repository()
    call("add", "a.txt")
    call("commit", "-m", "one")
    commit = call("rev-parse", "HEAD")
    assert look_at_git(door, str(root)) == Repository(commit=commit, dirty=False)  # b.txt is not tracked
    write(root, {"a.txt": "2", "sub/": ""})
    assert look_at_git(door, str(root)) == Repository(commit=commit, dirty=True)
    assert look_at_git(door, str(root / "sub")) == Repository()
    write(root, {"sub/.git/": ""})
    assert look_at_git(door, str(root / "sub")).commit is None


@pytest.mark.parametrize(
    ("said", "time"),
    [
        (
            Output(0, f"tree {HASH}\ncommitter A <a@b> 1767225600 +0100\n\ncommitter x 1 +0000\n"),
            1_767_225_600,
        ),
        (Output(128, "", "fatal: Not a valid object name HEAD"), None),
        (None, None),
    ],
    ids=["a commit", "none yet", "hangs"],
)
def test_when_the_commit_was_made(tmp_path: Path, said: Output | None, time: int | None) -> None:
    door = repository(tmp_path, None)
    door.outputs[f"{ASK} cat-file commit HEAD"] = said
    assert look_at_commit_time(door, "/src") == time


def test_git_for_windows_writes_its_paths_with_slashes(tmp_path: Path) -> None:
    git = "C:\\bin\\git.exe"
    ask = f"{git} --no-optional-locks -C C:\\src\\torch"
    door = windows_machine(tmp_path, files={"C:\\src\\torch\\.git": "gitdir: x"}, programs={git: None})
    door.outputs[f"{ask} rev-parse --show-toplevel HEAD"] = Output(0, f"C:/src/torch\r\n{HASH}\r\n")
    door.outputs[STATUS.replace(ASK, ask)] = Output(0, "")
    assert look_at_git(door, "C:\\src\\torch") == Repository(commit=HASH, dirty=False)


@pytest.mark.parametrize(
    ("said", "tags"),
    [
        (Output(0, "ciflow/trunk/1\nv2.9.1\n"), ("ciflow/trunk/1", "v2.9.1")),
        (Output(0, ""), ()),
        (None, None),
    ],
)
def test_tags_are_read_on_request_only(
    tmp_path: Path, said: Output | None, tags: tuple[str, ...] | None
) -> None:
    door = repository(tmp_path, Output(0, f"/src\n{HASH}\n"), Output(0, ""))
    door.outputs[f"{ASK} tag --points-at HEAD"] = said
    assert look_at_git(door, "/src").tags is None
    assert look_at_git(door, "/src", tags=True).tags == tags


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            Output(128, "", "fatal: not a git repository: /m/.git/worktrees/w\n"),
            "not a git repository: /m/.git",
        ),
        (
            Output(128, "", "warning: x\nfatal: detected dubious ownership in repository at '/src'\n"),
            "detected",
        ),
        (Output(0, f"/\n{HASH}\n"), "for git, this folder is a part of the repository /"),
    ],
)
def test_why_git_does_not_answer_is_kept(tmp_path: Path, answer: Output, problem: str) -> None:
    found = look_at_git(repository(tmp_path, answer), "/src")
    assert found.commit is None
    assert (found.git_problem or "").startswith(problem)
