"""Run a bisect: build one commit after the other in a worktree of its own and test each by a command.

The state is one file, written atomically after each verdict. The next commit follows from it, so a killed
run continues from the last verdict.
"""

from __future__ import annotations

import os
import re
import shutil
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
    git_log,
    is_machines_fault,
    judge,
    log_text,
    read_bisection,
    step_line,
)
from torchbuild_tasks.features.bisect.flags import BisectRequest
from torchbuild_tasks.features.manifest.act import flags_set
from torchbuild_tasks.features.manifest.choose import request_again
from torchbuild_tasks.features.patches import act as patches
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.system import files, process
from torchbuild_tasks.system.files import translate_errors, write_atomic
from torchbuild_tasks.system.git import cut_off, worktree
from torchbuild_tasks.system.git.fetch import Access, is_shallow
from torchbuild_tasks.system.git.run import Git, git_error, unread_error
from torchbuild_tasks.system.reading import read_bytes
from torchbuild_tasks.system.remove import rename_and_remove
from torchbuild_tasks.system.shell import activate
from torchbuild_tasks.values import dumps, replace

_REMAINING: Final = re.compile(r"^Bisecting: (.+)$", re.MULTILINE)
_FIRST: Final = re.compile(r"^# (?:first|possible first) bad commit: \[(\w+)\]", re.MULTILINE)
_SECONDS: Final = 600.0


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of git: the next commit and how many are left, or the first bad one, or an error.

    Where skipped commits hide it, `first_bad` are all that it can be, the oldest last.
    """

    commit: str = ""
    remaining: str = ""
    first_bad: tuple[str, ...] = ()
    problem: str = ""


def next_commit(git: Git, log: Path, text: str) -> Advice:
    """Ask git for the next commit; `text` are the steps so far, in the format of `git bisect replay`."""
    write_atomic(log, text.encode(), error=SourceError)
    captured = git.ask("bisect", "replay", str(log), timeout=_SECONDS)
    output = captured.stdout.decode("utf-8", "surrogateescape")
    known = (git.folder / git.run("rev-parse", "--git-path", "BISECT_LOG")).resolve()
    first = _FIRST.findall(known.read_text("utf-8", "surrogateescape")) if known.exists() else []
    if first:
        return Advice(first_bad=tuple(first))
    commit = git.output("rev-parse", "--verify", "--quiet", "BISECT_HEAD") if captured.rc == 0 else None
    if commit:
        remaining = _REMAINING.findall(output)
        return Advice(commit=commit, remaining=remaining[-1] if remaining else "")
    words = captured.error_text.splitlines()
    problems = [line for line in words if not line.startswith("We are not bisecting")]
    if not problems:
        raise git_error(git.argv(("bisect", "replay", str(log))), captured)
    return Advice(problem=" ".join(problems))


def commits_of(git: Git, words: str) -> tuple[str, ...]:
    """Return the commits of a ref, or of a range `A..B`, as for `git bisect skip`.

    Raises:
        SourceError: there is no such ref.
    """
    listed = git.run("rev-list", *(("--no-walk",) if ".." not in words else ()), words, "--")
    return tuple(listed.split())


def full_message(git: Git, commit: str) -> str:
    """Return a commit's author, date and full message."""
    return git.run("log", "-1", "--format=commit %H%nAuthor: %an <%ae>%nDate:   %ad%n%n%w(0,4,4)%B", commit)


# ---------------- one step: build the checked-out commit, and run the command


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the command: the checkout `source`, and the torch built from it.

    `env_file` is the build's, "" where nothing was built; `python` is the Python that was chosen, "" for
    none; `imports` says whether it got a torch.
    """

    source: str
    python: str = ""
    env_file: str = ""
    build_dir: str = ""
    imports: bool = True


Build = Callable[[Reporter], Built]

_TAIL: Final = 12  # lines of a command that stopped the bisect


def require_own_python(plan: BuildPlan, agreed: bool) -> None:
    """Refuse to install each torch into an environment of the user's, unless they agree.

    Raises:
        UsageError: it is not.
    """
    if plan.environment.foreign and not agreed:
        raise UsageError(
            f"Each build of a bisect is installed, and {plan.environment.python} is your own environment.",
            next_step="Name a Python that is in no environment, and a venv in the bisect's own worktree gets "
            "them: --python /usr/bin/python3\nOr add --yes.",
        )


def try_commit(memory: Bisection, title: str, logs: Path, build: Build, report: Reporter) -> Step:
    """Build the checked-out commit and test it by the command.

    Raises:
        BuildFailed: the machine, not the commit, made the build fail, or the command says stop.
    """
    began = time.monotonic()
    commit = memory.testing
    log = ""
    try:
        built = build(report)
    except BuildFailed as error:
        if is_machines_fault([each.id for each in error.diagnoses]):
            raise
        verdict: Verdict = "skip"
        because = " ".join(("it cannot be built:", error.what, *error.looked[:1]))
    except PlanRefused as error:
        reasons = (finding.text for finding in error.findings)
        verdict = "skip"
        because = " ".join(("it cannot be built here:", error.what, *reasons))
    except PatchRefused as error:
        verdict = "skip"
        because = f"it cannot be patched: {error.what}"
    else:
        path = logs / f"{len(memory.steps) + 1:03}-{commit[:10]}.log"
        verdict, because = _run_command(memory, built, path, report)
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


def _run_command(memory: Bisection, built: Built, log: Path, report: Reporter) -> tuple[Verdict, str]:
    """Run the command with the built Python first on PATH, in an empty folder."""
    with translate_errors(SourceError, log):
        log.parent.mkdir(parents=True, exist_ok=True)
    tail = process.Tail(report.block, _TAIL)
    environ = _environ(memory, built)
    # On Windows a process's working folder cannot be removed; the system clears leftovers.
    with (
        tempfile.TemporaryDirectory(prefix="torchbuild-bisect-", ignore_cleanup_errors=True) as empty,
        translate_errors(SourceError, log),
        log.open("wb", buffering=0) as sink,
    ):
        # A command that uses torch would end with 1, and the commit would wrongly be bad.
        if built.imports and (reason := _import_error(built.python, environ, empty)):
            return "skip", f"the built torch cannot be imported: {reason}"
        report.command(memory.command)
        code = process.stream(memory.command, env=environ, cwd=empty, log=sink, on_block=tail)
    verdict = judge(code)
    if verdict is None:
        raise BuildFailed(
            f"The command ended with {code}, which says nothing about the commit; the bisect stops here.",
            looked=tail.lines,
            next_step=f"Its output: {log}\nFix it and continue: bisect --resume\n"
            f"Leave this commit out: bisect --resume --skip {memory.testing[:10]}",
        )
    return verdict


def _import_error(python: str, environ: Mapping[str, str], empty: str) -> str:
    """Return why the built Python cannot import torch; "" if it can."""
    captured = process.capture((python, "-c", "import torch"), env=environ, cwd=empty)
    output = captured.error_text.splitlines()
    return "" if captured.rc == 0 else output[-1] if output else f"exit code {captured.rc}"


def _environ(memory: Bisection, built: Built) -> Mapping[str, str]:
    environ = activate(Path(built.env_file), environ=os.environ) if built.env_file else os.environ
    path = next((name for name in environ if name.upper() == "PATH"), "PATH")
    first = str(Path(built.python).parent) if built.python else ""
    variables = {"TORCHBUILD_PYTHON": built.python, "TORCHBUILD_BUILD_DIR": built.build_dir}
    return {
        **environ,
        path: os.pathsep.join(filter(None, (first, environ.get(path, "")))),
        "TORCHBUILD_COMMIT": memory.testing,
        "TORCHBUILD_CHECKOUT": built.source,
        **{name: value for name, value in variables.items() if value},
        "TORCHBUILD_START": memory.start,
    }


# ---------------- the whole bisect


FOLDER: Final = "bisect"  # in .torchbuild of the checkout
_STATE = "bisect.json"
_LOG = "log.txt"
_FOR_GIT = "for-git.txt"
_STEPS = "steps"

_BEGIN: Final = "Write: bisect --good REF --bad REF -- COMMAND   or, to go on: bisect --resume"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of a bisect: the user's checkout, and ours with the worktree and the state."""

    git: Git
    folder: Path

    @property
    def tree(self) -> Git:
        """Return git in the worktree."""
        return Git(folder=self.folder / "tree", config=self.git.config)

    @property
    def log(self) -> Path:
        """Return the file with the log for a person."""
        return self.folder / _LOG


class BisectResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bisect: the first bad commit, or the candidates, with their messages."""

    first_bad: tuple[str, ...]
    messages: tuple[str, ...]
    steps: tuple[Step, ...]
    log: str


def open_session(root: Path, config: tuple[str, ...] = ()) -> Session:
    """Return the bisect of a checkout, and create its folder.

    Raises:
        SourceError: the checkout is not a git repository, or git cannot read it.
    """
    git = Git(folder=root, config=config)
    if git.output("rev-parse", "--git-dir") is None:
        raise unread_error(git) or SourceError(
            f"{root} is not a git repository, so there is no history to bisect."
        )
    folder = files.state_dir(root) / FOLDER
    with translate_errors(SourceError, folder):
        folder.mkdir(exist_ok=True)
    return Session(git=git, folder=folder)


def read_memory(session: Session) -> Bisection | None:
    """Read the state of the bisect in this checkout; None without one."""
    path = session.folder / _STATE
    return read_bisection(read_bytes(path), str(path)) if path.is_file() else None


def begin(session: Session, request: BisectRequest) -> Bisection:
    """Return the state of a new bisect.

    Raises:
        UsageError: a part of the question is missing.
        SourceError: there is no such ref.
    """
    good = request.good
    bad = request.bad
    command = request.words
    missing = [
        word for word, value in (("--good", good), ("--bad", bad), ("-- COMMAND", command)) if not value
    ]
    if missing or bad is None:
        raise UsageError(f"bisect needs {' and '.join(missing)}", next_step=_BEGIN)
    names = " ".join((*(f"--good {name}" for name in good), f"--bad {bad}"))
    start = Path.cwd()
    question = Bisection(
        good=tuple(worktree.commit_of(session.git, name) for name in good),
        bad=worktree.commit_of(session.git, bad),
        asked=names,
        command=tuple(_absolute_word(start, word, first=not at) for at, word in enumerate(command)),
        start=str(start),
        request=flags_set(request),
    )
    if not question.builds and (missing_word := missing_program(question)):
        raise UsageError(f"{missing_word}, so no commit could be judged.", next_step=_BEGIN)
    return question


def missing_program(memory: Bisection) -> str:
    """Say why the command cannot start here; "" if it can.

    The venv of a build can have a program that is not here yet.
    """
    program = memory.command[0]
    if shutil.which(program):
        return ""
    place = Path(program)
    there = place.is_file() and place.is_absolute()
    return f"{program} is not executable" if there else f"There is no program {program} on PATH"


def _absolute_word(start: Path, word: str, *, first: bool) -> str:
    """Return a word that names a file as an absolute path, because the command runs in an empty folder."""
    if first and not any(mark in word for mark in (os.sep, os.altsep or os.sep)):
        return word  # a program on PATH
    return str(start / word) if (start / word).is_file() else word


def memory_of(session: Session, request: BisectRequest) -> Bisection:
    """Return the running bisect if it is continued or repeated, else a new one.

    Raises:
        UsageError: none is under way, or another one.
        SourceError: there is no such ref.
    """
    under_way = read_memory(session)
    if request.resume and not request.good and not request.bad:
        if under_way is None:
            raise UsageError(f"No bisect is under way in {session.git.folder}.", next_step=_BEGIN)
        return _with_skips(session, under_way, request.skip)
    wanted = begin(session, request)
    if under_way and under_way.asks_the_same(wanted):
        return _with_skips(session, replace(under_way, request=wanted.request), request.skip)
    if under_way and under_way.steps and not under_way.first_bad:
        raise UsageError(
            f"Another bisect is under way in {session.git.folder}: {under_way.asked}.",
            looked=(f"steps done: {len(under_way.steps)}", f"log: {session.log}"),
            next_step="Continue it: bisect --resume\nGive it up: bisect --reset",
        )
    return _with_skips(session, wanted, request.skip)


def _with_skips(session: Session, memory: Bisection, skip: tuple[str, ...]) -> Bisection:
    more = tuple(commit for words in skip for commit in commits_of(session.git, words))
    return replace(memory, skip=(*memory.skip, *more), first_bad=()) if more else memory


def flags_of(memory: Bisection, request: BisectRequest, session: Session, config: str | None) -> BuildRequest:
    """Return the flags of each build, without questions, because the worktree is ours."""
    flags = request_again(memory.request, request, str(session.tree.folder))
    return replace(flags, words=(), yes=True, torch=None, name=None, json=False, config=config)


def write_memory(session: Session, memory: Bisection) -> Bisection:
    """Write the state, and the log for a person."""
    files.write_atomic(session.folder / _STATE, dumps(memory).encode(), error=SourceError, private=True)
    files.write_atomic(session.log, log_text(memory).encode("utf-8", "backslashreplace"), error=SourceError)
    return memory


def run(
    session: Session, memory: Bisection, build: Build, report: Reporter, access: Access | None = None
) -> BisectResult:
    """Try commits until git knows the first bad one.

    Args:
        build: builds what is checked out.
        access: how submodules that the checkout lacks are fetched.

    Raises:
        BuildFailed: the machine, not the commit, made a build fail, or the command says stop.
        TorchbuildError: any other error that is not a commit's fault; the same command resumes the bisect.
    """
    _prepare(session, memory, report, access)
    while not memory.first_bad:
        advice = next_commit(session.tree, session.folder / _FOR_GIT, git_log(memory))
        if not advice.commit:
            if advice.problem:
                raise _no_end_error(session, advice.problem)
            memory = write_memory(session, replace(memory, first_bad=advice.first_bad, testing=""))
            break
        title = session.tree.output("log", "-1", "--format=%s", advice.commit) or ""
        number = len(memory.steps) + 1
        step_report = report.inner(f"bisect step {number}, {advice.commit[:10]}, {advice.remaining}")
        step_report.stage(title)
        memory = write_memory(session, replace(memory, testing=advice.commit))
        patches.bring(session.tree.folder, ())  # a build may have applied them, which prevents the checkout
        _check_out(session, advice.commit, access, memory)
        step = try_commit(memory, title, session.folder / _STEPS, build, step_report)
        memory = write_memory(session, replace(memory, steps=(*memory.steps, step), testing=""))
        report.note(f"{number}  {step_line(step)}", alone=True)
    return BisectResult(
        first_bad=memory.first_bad,
        messages=tuple(full_message(session.git, commit) for commit in memory.first_bad),
        steps=memory.steps,
        log=str(session.log),
    )


def _prepare(session: Session, memory: Bisection, report: Reporter, access: Access | None) -> None:
    """Add or complete the worktree; remove the locks of a killed git in it."""
    known = [each for each in worktree.entries(session.git) if each.folder == session.tree.folder.resolve()]
    if known and known[0].state == "here":
        _break_locks(session.tree)
        return
    report.note(f"worktree: {session.tree.folder}")
    worktree.add(session.git, session.tree.folder, memory.bad, access, modules=memory.builds)


def _check_out(session: Session, commit: str, access: Access | None, memory: Bisection) -> None:
    """Check out a commit in the worktree; one with an unavailable submodule can be skipped.

    Raises:
        SourceError: it cannot be moved; the way round it is named.
    """
    try:
        worktree.switch(session.tree, commit, access, modules=memory.builds)
    except SourceError as error:
        skip = f"Or leave this commit out: torchbuild bisect --resume --skip {commit[:10]}"
        next_step = f"{error.next_step}\n{skip}" if error.next_step else skip
        raise SourceError(error.what, looked=error.looked, next_step=next_step) from None


def _break_locks(tree: Git) -> None:
    """Remove the locks of a killed git; the caller's lock excludes other runs."""
    cut_off.remove_locks(tree.folder, Path(tree.run("rev-parse", "--absolute-git-dir")))


def _no_end_error(session: Session, problem: str) -> SourceError:
    remedies = ["Other ends: bisect --good REF --bad REF -- COMMAND (first: bisect --reset)"]
    if is_shallow(session.git):
        remedies.append("The clone is shallow; get the rest: git fetch --unshallow")
    return SourceError("git cannot bisect between these.", looked=(problem,), next_step="\n".join(remedies))


def reset(session: Session, report: Reporter) -> None:
    """Remove the worktree and the state of the bisect.

    Raises:
        SourceError: something in the worktree would be lost.
    """
    tree = session.tree.folder
    if any(each.folder == tree.resolve() for each in worktree.entries(session.git)):
        if tree.is_dir():
            _break_locks(session.tree)
            patches.bring(tree, ())
            _remove_env_files(tree)
        worktree.remove(session.git, tree)
    with translate_errors(SourceError, session.folder):
        if (session.folder / _STEPS).is_dir():
            rename_and_remove(session.folder / _STEPS)
        for name in (_STATE, _LOG, _FOR_GIT):
            files.unlink(session.folder / name, missing_ok=True)
    report.note(f"removed what was in {session.folder}")


def _remove_env_files(tree: Path) -> None:
    """Remove the untracked files that a build of ours writes into a checkout."""
    for path in (*tree.glob("env_set.*"), tree / "torchbuild.lock"):
        if path.is_file() and b"torchbuild" in path.read_bytes()[:400]:
            files.unlink(path)
