"""`bisect`: builds one commit after the other in a worktree of its own and lets a command judge each.

All that is known stands in one file, written whole after each verdict; which commit comes next follows from
it, so a run that was killed at any moment goes on from the last verdict.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.ledger import now
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.errors import BuildFailed, PatchRefused, PlanRefused, SourceError, UsageError
from torchbuild_tasks.features.bisect.choose import (
    Bisection,
    Step,
    Verdict,
    blames_the_machine,
    git_log,
    judged,
    read_bisection,
    told,
)
from torchbuild_tasks.features.manifest.act import given_flags
from torchbuild_tasks.features.manifest.choose import asked_again
from torchbuild_tasks.features.patches import apply as patches
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.files import told_as, write_atomic
from torchbuild_tasks.system.git import cut_off, worktree
from torchbuild_tasks.system.git.fetch import Way, is_shallow
from torchbuild_tasks.system.git.run import Git, failed
from torchbuild_tasks.system.remove import take_away
from torchbuild_tasks.system.shell import activate
from torchbuild_tasks.values import dumps, replace

_LEFT: Final = re.compile(r"^Bisecting: (.+)$", re.MULTILINE)
_FIRST: Final = re.compile(r"^# (?:first|possible first) bad commit: \[(\w+)\]", re.MULTILINE)
_SECONDS: Final = 600.0


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What git says: the commit to try and how many are left, or the first bad one, or why there is none.

    Where skipped commits hide it, `first_bad` are all that it can be, the oldest last.
    """

    commit: str = ""
    left: str = ""
    first_bad: tuple[str, ...] = ()
    problem: str = ""


def next_commit(git: Git, log: Path, text: str) -> Advice:
    """Let git judge all that is known.

    Args:
        git: in the worktree.
        log: where to write `text` for git.
        text: the log as `git bisect replay` reads it.
    """
    write_atomic(log, text.encode(), error=SourceError)
    done = git.ask("bisect", "replay", str(log), timeout=_SECONDS)
    said = done.stdout.decode("utf-8", "surrogateescape")
    known = (git.folder / git.run("rev-parse", "--git-path", "BISECT_LOG")).resolve()
    first = _FIRST.findall(known.read_text("utf-8", "surrogateescape")) if known.exists() else []
    if first:
        return Advice(first_bad=tuple(first))
    commit = git.said("rev-parse", "--verify", "--quiet", "BISECT_HEAD") if done.rc == 0 else None
    if commit:
        left = _LEFT.findall(said)
        return Advice(commit=commit, left=left[-1] if left else "")
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    told = [line for line in words if not line.startswith("We are not bisecting")]
    if not told:
        raise failed(git.argv(("bisect", "replay", str(log))), done)
    return Advice(problem=" ".join(told))


def commits_of(git: Git, words: str) -> tuple[str, ...]:
    """The commits of a ref, or of a range `A..B`, as `git bisect skip` takes it.

    Raises:
        SourceError: there is no such ref.
    """
    listed = git.run("rev-list", *(("--no-walk",) if ".." not in words else ()), words, "--")
    return tuple(listed.split())


def commit_title(git: Git, commit: str) -> str:
    """The first line of a commit's message."""
    return git.said("log", "-1", "--format=%s", commit) or ""


def whole_message(git: Git, commit: str) -> str:
    """Who made a commit, when, and its whole message."""
    return git.run("log", "-1", "--format=commit %H%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B", commit)


# ---------------- one step of a bisect: the commit that is checked out is built, and the command judges it


Build = Callable[[], BuildPlan]

_TAIL: Final = 12  # lines of a command that stopped the bisect


def require_own_python(plan: BuildPlan, agreed: bool) -> None:
    """Every build installs its torch: into an environment of the user's only when that is agreed to.

    Raises:
        UsageError: it is not.
    """
    if plan.environment.foreign and not agreed:
        raise UsageError(
            f"Each build of a bisect is installed, and {plan.environment.python} is an environment of yours.",
            next_step="Name a Python that is in no environment, and a venv in the bisect's own worktree gets "
            "them: --python /usr/bin/python3\nOr say --yes.",
        )


def try_commit(memory: Bisection, title: str, logs: Path, build: Build, report: Reporter) -> Step:
    """Build what is checked out and let the command judge it.

    Raises:
        BuildFailed: the machine, not the commit, made the build fail, or the command says stop.
    """
    began, commit, log = time.monotonic(), memory.testing, ""
    try:
        plan = build()
    except BuildFailed as error:
        if blames_the_machine([each.id for each in error.diagnoses]):
            raise
        verdict: Verdict = "skip"
        because = " ".join(("it cannot be built:", error.what, *error.looked[:1]))
    except PlanRefused as error:
        reasons = (finding.text for finding in error.findings)
        verdict, because = "skip", " ".join(("it cannot be built here:", error.what, *reasons))
    except PatchRefused as error:
        verdict, because = "skip", f"it cannot be patched: {error.what}"
    else:
        path = logs / f"{len(memory.steps) + 1:03}-{commit[:10]}.log"
        verdict, because = _command(memory, plan, path, report)
        log = str(path)
    return Step(
        commit=commit,
        title=title,
        verdict=verdict,
        because=because,
        seconds=round(time.monotonic() - began, 1),
        finished=now(),
        log=log,
    )


def _command(memory: Bisection, plan: BuildPlan, log: Path, report: Reporter) -> tuple[Verdict, str]:
    """Run the command with the built Python first on PATH, in an empty folder."""
    with told_as(SourceError, log):
        log.parent.mkdir(parents=True, exist_ok=True)
    tail: list[str] = []

    def seen(block: bytes) -> None:
        tail.extend(block.decode(errors="replace").splitlines())
        del tail[:-_TAIL]
        report.block(block)

    environ = _environ(memory, plan)
    # Somebody's working folder on Windows cannot be removed; what is left there is the system's to clear.
    with (
        tempfile.TemporaryDirectory(prefix="torchbuild-bisect-", ignore_cleanup_errors=True) as empty,
        told_as(SourceError, log),
        log.open("wb", buffering=0) as sink,
    ):
        # A command that uses torch would end with 1 and blame the commit for what another one has left.
        if reason := _no_import(plan, environ, empty):
            return "skip", f"the built torch cannot be imported: {reason}"
        report.command(memory.command)
        code = process.stream(memory.command, env=environ, cwd=empty, log=sink, on_block=seen)
    said = judged(code)
    if said is None:
        raise BuildFailed(
            f"The command ended with {code}, which says nothing about the commit; the bisect stops here.",
            looked=tuple(tail),
            next_step=f"Its output: {log}\nMend it and go on: bisect --resume\n"
            f"Leave this commit out: bisect --resume --skip {memory.testing[:10]}",
        )
    return said


def _no_import(plan: BuildPlan, environ: Mapping[str, str], empty: str) -> str:
    """Why the built Python does not import torch; "" when it does."""
    done = process.capture((plan.environment.python, "-c", "import torch"), env=environ, cwd=empty)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.rc == 0 else said[-1] if said else f"exit code {done.rc}"


def _environ(memory: Bisection, plan: BuildPlan) -> Mapping[str, str]:
    environ = activate(Path(plan.env_files[0].path), environ=os.environ)
    path = next((name for name in environ if name.upper() == "PATH"), "PATH")
    python = plan.environment.python
    return {
        **environ,
        path: os.pathsep.join(filter(None, (str(Path(python).parent), environ.get(path, "")))),
        "TORCHBUILD_COMMIT": memory.testing,
        "TORCHBUILD_CHECKOUT": plan.source,
        "TORCHBUILD_PYTHON": python,
        "TORCHBUILD_START": memory.start,
    }


# ----------------


FOLDER: Final = "bisect"  # in .torchbuild of the checkout
_STATE, _LOG, _FOR_GIT, _STEPS = "bisect.json", "log.txt", "for-git.txt", "steps"

_BEGIN: Final = "Write: bisect --good REF --bad REF -- COMMAND   or, to go on: bisect --resume"


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """Where a bisect works: the user's checkout, and our folder with the worktree and the memory."""

    git: Git
    folder: Path

    @property
    def tree(self) -> Git:
        """git in the worktree."""
        return Git(folder=self.folder / "tree", config=self.git.config)

    @property
    def log(self) -> Path:
        """What was tried, for a person."""
        return self.folder / _LOG


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """How a bisect ended: the first bad commit, or all that it can be, with their messages."""

    first_bad: tuple[str, ...]
    messages: tuple[str, ...]
    steps: tuple[Step, ...]
    log: str


def ground_of(root: Path, config: tuple[str, ...] = ()) -> Ground:
    """The bisect of a checkout; its folder is made.

    Args:
        root: the checkout.
        config: settings that go with each git.

    Raises:
        SourceError: the checkout is no git repository.
    """
    git = Git(folder=root, config=config)
    if git.said("rev-parse", "--git-dir") is None:
        raise SourceError(f"{root} is no git repository, so there is no history to bisect.")
    folder = files.state_dir(root) / FOLDER
    with told_as(SourceError, folder):
        folder.mkdir(exist_ok=True)
    return Ground(git=git, folder=folder)


def recorded(ground: Ground) -> Bisection | None:
    """What is known of the bisect in this checkout; None when there is none."""
    path = ground.folder / _STATE
    return read_bisection(path.read_bytes(), str(path)) if path.is_file() else None


def asked(ground: Ground, request: BuildRequest) -> Bisection:
    """A bisect that begins.

    Raises:
        UsageError: a part of the question is missing.
        SourceError: there is no such ref.
    """
    good, bad, command = request.good, request.bad, request.words
    missing = [
        word for word, value in (("--good", good), ("--bad", bad), ("-- COMMAND", command)) if not value
    ]
    if missing or bad is None:
        raise UsageError(
            f"bisect needs {' and '.join(missing)}",
            next_step=_BEGIN,
        )
    names = " ".join((*(f"--good {name}" for name in good), f"--bad {bad}"))
    start = Path.cwd()
    return Bisection(
        good=tuple(worktree.commit_of(ground.git, name) for name in good),
        bad=worktree.commit_of(ground.git, bad),
        asked=names,
        command=tuple(_found_from(start, word, first=not at) for at, word in enumerate(command)),
        start=str(start),
        request=given_flags(request),
    )


def _found_from(start: Path, word: str, *, first: bool) -> str:
    """A word that names a file here by its whole path: the command runs in an empty folder."""
    if first and not any(mark in word for mark in (os.sep, os.altsep or os.sep)):
        return word  # a program on PATH
    return str(start / word) if (start / word).is_file() else word


def memory_of(ground: Ground, request: BuildRequest) -> Bisection:
    """The bisect to work on: the one under way, when it is to go on or asks the same, else a new one.

    Raises:
        UsageError: none is under way, or another one.
        SourceError: there is no such ref.
    """
    under_way = recorded(ground)
    if request.resume and not request.good and not request.bad:
        if under_way is None:
            raise UsageError(f"No bisect is under way in {ground.git.folder}.", next_step=_BEGIN)
        return _skipping(ground, under_way, request.skip)
    wanted = asked(ground, request)
    if under_way and under_way.asks_the_same(wanted):
        return _skipping(ground, replace(under_way, request=wanted.request), request.skip)
    if under_way and under_way.steps and not under_way.first_bad:
        raise UsageError(
            f"Another bisect is under way in {ground.git.folder}: {under_way.asked}.",
            looked=(f"steps done: {len(under_way.steps)}", f"log: {ground.log}"),
            next_step="Go on with it: bisect --resume\nGive it up: bisect --reset",
        )
    return _skipping(ground, wanted, request.skip)


def _skipping(ground: Ground, memory: Bisection, skip: tuple[str, ...]) -> Bisection:
    more = tuple(commit for words in skip for commit in commits_of(ground.git, words))
    return replace(memory, skip=(*memory.skip, *more), first_bad=()) if more else memory


def flags_of(memory: Bisection, request: BuildRequest, ground: Ground, config: str | None) -> BuildRequest:
    """The flags of each build; the worktree is ours, so nothing in it is asked about."""
    flags = asked_again(memory.request, request, str(ground.tree.folder))
    flags = replace(flags, good=(), bad=None, skip=(), resume=False, reset=False, words=())
    return replace(flags, yes=True, torch=None, name=None, json=False, config=config)


def keep(ground: Ground, memory: Bisection) -> Bisection:
    """Write it down, for us and for a person."""
    files.write_atomic(ground.folder / _STATE, dumps(memory).encode(), error=SourceError)
    files.write_atomic(ground.log, told(memory).encode("utf-8", "backslashreplace"), error=SourceError)
    return memory


def run(ground: Ground, memory: Bisection, build: Build, report: Reporter, way: Way | None = None) -> Found:
    """Try commits until git knows the first bad one.

    Args:
        ground: where it works.
        memory: what is known.
        build: builds what is checked out.
        report: told what goes on.
        way: how submodules that the checkout lacks are fetched.

    Raises:
        BuildFailed: the machine, not the commit, made a build fail, or the command says stop.
        TorchbuildError: whatever else is no commit's fault; the same command goes on from there.
    """
    _prepare(ground, memory, report, way)
    while not memory.first_bad:
        advice = next_commit(ground.tree, ground.folder / _FOR_GIT, git_log(memory))
        if not advice.commit:
            if advice.problem:
                raise _no_end(ground, advice.problem)
            memory = keep(ground, replace(memory, first_bad=advice.first_bad, testing=""))
            break
        title = commit_title(ground.tree, advice.commit)
        report.stage(f"bisect step {len(memory.steps) + 1}: {advice.commit[:10]} {title}")
        report.note(advice.left)
        memory = keep(ground, replace(memory, testing=advice.commit))
        patches.bring(ground.tree.folder, ())  # a build may have applied them; they would stand in the way
        worktree.switch(ground.tree, advice.commit, way)
        step = try_commit(memory, title, ground.folder / _STEPS, build, report)
        memory = keep(ground, replace(memory, steps=(*memory.steps, step), testing=""))
        report.note(f"{step.verdict}: {step.because}")
    return Found(
        first_bad=memory.first_bad,
        messages=tuple(whole_message(ground.git, commit) for commit in memory.first_bad),
        steps=memory.steps,
        log=str(ground.log),
    )


def _prepare(ground: Ground, memory: Bisection, report: Reporter, way: Way | None) -> None:
    """The worktree, made or finished; locks of a git that was killed in it are broken."""
    here = [each for each in worktree.entries(ground.git) if each.folder == ground.tree.folder.resolve()]
    if here and here[0].state == "here":
        _break_locks(ground.tree)
        return
    report.note(f"worktree: {ground.tree.folder}")
    worktree.add(ground.git, ground.tree.folder, memory.bad, way)


def _break_locks(tree: Git) -> None:
    """Nobody else works there: the worktree is ours, and whoever calls holds the lock of the bisect."""
    cut_off.clear(tree.folder, Path(tree.run("rev-parse", "--absolute-git-dir")))


def _no_end(ground: Ground, problem: str) -> SourceError:
    ways = ["Other ends: bisect --good REF --bad REF -- COMMAND (first: bisect --reset)"]
    if is_shallow(ground.git):
        ways.append("The clone is shallow; get the rest: git fetch --unshallow")
    return SourceError("git cannot bisect between these.", looked=(problem,), next_step="\n".join(ways))


def reset(ground: Ground, report: Reporter) -> None:
    """Remove the worktree of the bisect and all that is remembered of it.

    Raises:
        SourceError: something in the worktree would be lost.
    """
    tree = ground.tree.folder
    if any(each.folder == tree.resolve() for each in worktree.entries(ground.git)):
        if tree.is_dir():
            _break_locks(ground.tree)
            patches.bring(tree, ())
            _remove_env_files(tree)
        worktree.remove(ground.git, tree)
    with told_as(SourceError, ground.folder):
        if (ground.folder / _STEPS).is_dir():
            take_away(ground.folder / _STEPS)
        for name in (_STATE, _LOG, _FOR_GIT):
            files.unlink(ground.folder / name, missing_ok=True)
    report.note(f"removed what was in {ground.folder}")


def _remove_env_files(tree: Path) -> None:
    """git does not know the files that a build of ours writes into a checkout; only ours are removed."""
    for path in (*tree.glob("env_set.*"), tree / "torchbuild.lock"):
        if path.is_file() and b"torchbuild" in path.read_bytes()[:400]:
            files.unlink(path)
