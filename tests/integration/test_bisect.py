"""Bisects with real git, worktrees and commands; most with a build of no time, one with the sample's."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_git, needs_linux_compiler
from tests.support.driver import TORCHBUILD, environment, torchbuild
from tests.support.sample import ERAS, Era, commit, materialise, run_git
from tests.support.torch_history import BROKEN, COMMAND, REGRESSION, make_history

pytestmark = [
    pytest.mark.integration,
    needs_git,
]

# A bisect as `flow` runs it, whose build only reads a file of the commit. TREE/state says what a commit is.
DRIVER = """
import sys
from pathlib import Path
from torchbuild_tasks.system import lock
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.features.bisect.flags import BisectRequest
from torchbuild_tasks.features.bisect import act as bisect
from torchbuild_tasks.values import dumps

class Quiet:
    def inner(self, title):
        return self

    def __getattr__(self, name):
        return lambda *given, **named: None

root, good, bad, skip = Path(sys.argv[1]), sys.argv[2], sys.argv[3], tuple(sys.argv[4].split())
session = bisect.open_session(root)
name = "env_set.bat" if sys.platform == "win32" else "env_set.sh"

def build(report):
    tree = session.tree.folder
    if (tree / "state").read_text().strip() == "broken":
        raise BuildFailed("It does not compile.")
    modules = tree / "python"
    modules.mkdir(exist_ok=True)
    fails = (tree / "state").read_text().strip() == "unimportable"
    (modules / "torch.py").write_text("raise ImportError('no libtorch')" if fails else "")
    line = f'set "PYTHONPATH={modules}"' if sys.platform == "win32" else f"export PYTHONPATH='{modules}'"
    (tree / name).write_text(line + "\\n")
    return bisect.Built(source=str(tree), python=sys.executable, env_file=str(tree / name))

request = BisectRequest(good=(good,), bad=bad, skip=skip, words=tuple(sys.argv[5:]))
with lock.hold(session.folder, "bisect"):
    memory = bisect.memory_of(session, request)
    print(dumps(bisect.run(session, memory, build, Quiet())))
"""
# The command: 1 where the built commit is bad, and what it sees goes to a file.
JUDGE = """
import json, os, pathlib, sys
root = pathlib.Path(os.environ["TORCHBUILD_CHECKOUT"])
seen = {name: os.environ[name] for name in os.environ if name.startswith("TORCHBUILD_")}
seen |= {"cwd": sorted(os.listdir()), "python": sys.executable}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(seen) + "\\n")
sys.exit({"good": 0, "bad": 1, "unsure": 125, "stop": 128}[(root / "state").read_text().strip()])
"""


def driver(root: Path, good: str, bad: str, *command: str | Path, skip: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-c", DRIVER, str(root), good, bad, " ".join(skip), *map(str, command)]


def run(root: Path, good: str, bad: str, *command: str | Path, skip: Sequence[str] = ()) -> Any:
    done = subprocess.run(
        driver(root, good, bad, *command, skip=skip),
        cwd=Path(__file__).parents[2],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def judge(tmp_path: Path) -> list[str]:
    """Return a command that judges a torch and records what it saw in a file."""
    (tmp_path / "judge.py").write_text(JUDGE, "utf-8")
    return ["python", str(tmp_path / "judge.py"), str(tmp_path / "seen")]


def history(root: Path, states: str) -> list[str]:
    """A repository with a commit for each letter: good, bad, unsure, Broken, Import fails, stop."""
    root.mkdir()
    run_git(root, "init", "--quiet")
    words = {"g": "good", "b": "bad", "u": "unsure", "B": "broken", "I": "unimportable", "s": "stop"}
    commits = []
    for number, letter in enumerate(states):
        (root / "state").write_text(words[letter] + " " * number, "utf-8")  # each differs from the one before
        commits.append(commit(root, f"commit {number}"))
    return commits


@pytest.mark.parametrize(
    ("states", "first_bad"),
    [
        ("gb", [1]),
        ("ggBBgbbb", [5]),
        ("ggBBuubb", [6, 5, 4, 3, 2]),
        ("ggIbb", [3, 2]),
    ],
)
def test_the_first_bad_commit_or_all_that_skips_leave(
    tmp_path: Path, judge: list[str], states: str, first_bad: list[int]
) -> None:
    commits = history(tmp_path / "torch", states)
    found = run(tmp_path / "torch", commits[0], "main", *judge)
    assert sorted(found["first_bad"]) == sorted(commits[number] for number in first_bad)
    assert all(f"commit {number}" in "".join(found["messages"]) for number in first_bad), (
        "each is named with its message"
    )
    tried = {step["commit"]: step["verdict"] for step in found["steps"]}
    meant = {"g": "good", "b": "bad", "u": "skip", "B": "skip", "I": "skip"}
    assert all(verdict == meant[states[commits.index(name)]] for name, verdict in tried.items())
    log = (tmp_path / "torch/.torchbuild/bisect/log.txt").read_text("utf-8")
    assert all(f"{step['verdict']:4}  {step['commit'][:10]}" in log for step in found["steps"])


def test_the_command_sees_the_built_python_an_empty_folder_and_the_commit(
    tmp_path: Path, judge: list[str]
) -> None:
    commits = history(tmp_path / "torch", "gggbb")
    found = run(tmp_path / "torch", commits[0], "main", *judge)
    lines = [json.loads(line) for line in (tmp_path / "seen").read_text("utf-8").splitlines()]
    assert [line["TORCHBUILD_COMMIT"] for line in lines] == [step["commit"] for step in found["steps"]]
    for line in lines:
        assert line["cwd"] == []
        assert Path(line["python"]).parent == Path(sys.executable).parent
        assert Path(line["TORCHBUILD_CHECKOUT"]).is_relative_to(tmp_path / "torch/.torchbuild")
    assert Path(found["steps"][0]["log"]).is_file()


def test_the_checkout_and_a_bisect_of_the_users_stay_as_they_are(tmp_path: Path, judge: list[str]) -> None:
    root = tmp_path / "torch"
    commits = history(root, "ggggbbbb")
    run_git(root, "bisect", "start", commits[6], commits[1])
    (root / "state").write_text("the user is at work", "utf-8")
    (root / "notes").write_text("mine", "utf-8")

    def mine() -> tuple[str, ...]:
        words = (("bisect", "log"), ("status", "--short"), ("rev-parse", "HEAD"), ("for-each-ref",))
        return tuple(run_git(root, *each) for each in words)

    before = mine()
    assert run(root, commits[0], commits[7], *judge)["first_bad"] == [commits[4]]
    assert mine() == before
    assert (root / "state").read_text("utf-8") == "the user is at work"


@pytest.mark.parametrize(("parted", "first_bad"), [("g", "the change"), ("b", "")])
def test_a_good_commit_next_to_the_line_of_the_bad_one(
    tmp_path: Path, judge: list[str], parted: str, first_bad: str
) -> None:
    root = tmp_path / "torch"
    history(root, f"g{parted}")  # where the release parts from main
    run_git(root, "branch", "release")
    for state, title in (("good", "on main"), ("bad", "the change"), ("bad ", "after it")):
        (root / "state").write_text(state, "utf-8")
        commit(root, title)
    run_git(root, "switch", "-q", "release")
    (root / "state").write_text("good", "utf-8")
    (root / "released").write_text("", "utf-8")
    commit(root, "released")
    words = driver(root, "release", "main", *judge)
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if first_bad:
        assert first_bad in json.loads(done.stdout)["messages"][0]
    else:
        assert "git cannot bisect between these" in done.stderr


def test_a_range_can_be_left_out(tmp_path: Path, judge: list[str]) -> None:
    commits = history(tmp_path / "torch", "gggggbbb")
    found = run(tmp_path / "torch", commits[0], "main", *judge, skip=[f"{commits[2]}..{commits[4]}"])
    assert not {commits[3], commits[4]} & {step["commit"] for step in found["steps"]}
    assert set(found["first_bad"]) >= {commits[5], commits[4], commits[3]}


def test_ends_that_cannot_be_are_refused_in_gits_words(tmp_path: Path, judge: list[str]) -> None:
    commits = history(tmp_path / "torch", "ggbb")
    done = subprocess.run(
        driver(tmp_path / "torch", commits[3], commits[0], *judge),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "SourceError: git cannot bisect between these" in done.stderr


def test_a_command_that_says_stop_stops_and_nothing_found_so_far_is_lost(
    tmp_path: Path, judge: list[str]
) -> None:
    root = tmp_path / "torch"
    commits = history(root, "ggggsbbbb")
    words = driver(root, commits[0], "main", *judge)
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert "BuildFailed: The command ended with 128" in done.stderr
    memory = json.loads((root / ".torchbuild/bisect/bisect.json").read_text("utf-8"))
    assert memory["testing"] == commits[4]
    found = run(root, commits[0], "main", *judge, skip=[commits[4]])
    assert set(found["first_bad"]) == {commits[4], commits[5]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_a_bisect_that_is_killed_at_any_moment_goes_on(tmp_path: Path, judge: list[str], seed: int) -> None:
    """With the group: git and the command die with it. What was judged before is not judged again."""
    root, moments = tmp_path / "torch", random.Random(seed)
    commits = history(root, "gggBggubbbbb")
    words = driver(root, commits[0], "main", *judge)
    judged: list[str] = []
    for _ in range(4):
        process = subprocess.Popen(
            words, cwd=Path(__file__).parents[2], start_new_session=True, stdout=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0.3, 2.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        memory = root / ".torchbuild/bisect/bisect.json"
        steps = json.loads(memory.read_text("utf-8"))["steps"] if memory.exists() else []
        assert [step["commit"] for step in steps][: len(judged)] == judged
        judged = [step["commit"] for step in steps]
    found = run(root, commits[0], "main", *judge)
    assert set(found["first_bad"]) == {commits[7], commits[6]}
    assert len({step["commit"] for step in found["steps"]}) == len(found["steps"])


# ---------------------------------------------------------------- the whole line


def test_the_question_is_checked_before_anything_is_made(tmp_path: Path) -> None:
    root = materialise(tmp_path / "minitorch", git=True)
    for words, says in (
        (("--bad", "HEAD", "--", "true"), "bisect needs --good"),
        (("--good", "nothing", "--bad", "HEAD", "--", "true"), "no branch, tag or commit nothing"),
        (("--good", "HEAD", "--bad", "HEAD", "--no-build", "--", "mispelt"), "no program mispelt on PATH"),
    ):
        done = torchbuild("bisect", "--source", root, *words)
        assert done.code in (2, 16), done.err
        assert says in done.err
    assert run_git(root, "worktree", "list").count("\n") == 0


def test_the_files_alone_are_judged_without_a_build(tmp_path: Path) -> None:
    root = tmp_path / "minitorch"
    commits = make_history(root)
    (tmp_path / "check.py").write_text(
        "import os, pathlib, sys\n"
        "sys.exit((pathlib.Path(os.environ['TORCHBUILD_CHECKOUT']) / 'setup.py').exists() is False)\n",
        "utf-8",
    )
    words = ("--source", root, "--good", commits[0], "--bad", "main", "--no-build", "--json")
    done = torchbuild("bisect", *words, "--", sys.executable, tmp_path / "check.py")
    assert done.code == 0, done.err
    assert done.json["bisect"]["first_bad"] == [commits[5]]
    again = torchbuild("bisect", *words[:-1], "--", sys.executable, tmp_path / "check.py")
    assert f"{commits[5]} is the first bad commit" in again.out and "found before" in again.err
    tree = root / ".torchbuild/bisect/tree"
    assert not (tree / "build").exists()
    (tree / "torchbuild.lock").write_text("# Written by torchbuild_tasks.\n", "utf-8")  # as a build leaves it
    (tree / "mine").touch()
    refused = torchbuild("bisect", "--source", root, "--reset")
    assert refused.code and "mine" in refused.err and "torchbuild.lock" not in refused.err
    (tree / "mine").unlink()
    assert torchbuild("bisect", "--source", root, "--reset").code == 0
    assert not tree.exists()
    hidden = torchbuild("bisect", *words, "--skip", commits[5], "--", sys.executable, tmp_path / "check.py")
    assert (hidden.code, len(hidden.json["bisect"]["first_bad"])) == (6, 2), hidden.err


@pytest.mark.slow
@needs_linux_compiler
@pytest.mark.parametrize("era", ERAS)
def test_one_target_is_built_at_each_commit(era: Era, tmp_path: Path, target: Path) -> None:
    root = materialise(tmp_path / "minitorch", era=era, git=True)
    commits = [commit(root, None)]
    for text in ("// an edit", "int the_symbol() { return 1; }", "// later"):
        source = root / "c10/core/Threads.cpp"
        source.write_text(f"{source.read_text('utf-8')}\n{text}\n", "utf-8")
        commits.append(commit(root, text))
    (tmp_path / "check.py").write_text(
        "import os, pathlib, sys\n"
        "files = pathlib.Path(os.environ['TORCHBUILD_BUILD_DIR']).rglob('libc10.so')\n"
        "sys.exit(any(b'the_symbol' in file.read_bytes() for file in files))\n",
        "utf-8",
    )
    words = ("--source", root, "--good", commits[0], "--bad", "main", "--target", "c10", "--json")
    own = ("--python", target, "--yes")
    done = torchbuild("bisect", *words, *own, "--", "python", tmp_path / "check.py")
    assert done.code == 0, done.err
    assert done.json["bisect"]["first_bad"] == [commits[2]]
    assert {step["verdict"] for step in done.json["bisect"]["steps"]} == {"good", "bad"}


@pytest.mark.slow
@needs_linux_compiler
def test_a_regression_is_found_across_broken_commits_and_an_era_change(tmp_path: Path) -> None:
    """The sample's own builds, killed once on the way, then reset."""
    root = tmp_path / "minitorch"
    commits = make_history(root)
    (tmp_path / "check.py").write_text(COMMAND, "utf-8")
    python = getattr(sys, "_base_executable", sys.executable)
    words = ["bisect", "--source", str(root), "--python", python, "--good", commits[0], "--bad", "main"]
    command = ["--", "python", "check.py"]
    process = subprocess.Popen(
        [*TORCHBUILD, *words, *command], cwd=tmp_path, env=environment(), start_new_session=True
    )
    memory = root / ".torchbuild/bisect/bisect.json"
    while not (memory.exists() and json.loads(memory.read_text("utf-8"))["steps"]):
        assert process.poll() is None
        time.sleep(0.5)
    time.sleep(2)  # into the next commit's switch or build
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = torchbuild(
        "bisect", "--source", root, "--resume", "--json", "--verbose", timeout=3000, cwd=tmp_path
    )
    assert done.code == 0, done.err
    found = done.json["bisect"]
    assert found["first_bad"] == [commits[REGRESSION]]
    assert "matmul: make it faster" in found["messages"][0]
    assert "It was slow." in found["messages"][0]
    verdicts = {step["commit"]: step["verdict"] for step in found["steps"]}
    broken = {commits[number] for number in BROKEN} & set(verdicts)
    assert broken, "the history is made so that git tries one of them first"
    assert {verdicts[each] for each in broken} == {"skip"}
    done = torchbuild("bisect", "--source", root, "--reset")
    assert done.code == 0, done.err
    assert run_git(root, "worktree", "list").count("\n") == 0
    assert run_git(root, "status", "--short") == ""
