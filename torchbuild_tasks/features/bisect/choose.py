"""The state of a bisect, the meaning of exit codes, and the state's forms for git and for a person.

Which commit comes next is git's to say: all that was found out is written as the log that `git bisect
replay` reads, so nothing but this memory has to survive a kill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.features.manifest.choose import of_builds
from torchbuild_tasks.values import from_json, parse_json

BISECT_SCHEMA: Final = 1
Verdict = Literal["good", "bad", "skip"]

# Causes in the machine (ids of data/failures.toml), which would fail one commit after another.
_OF_THE_MACHINE: Final = ("oom", "disk-full")


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tested commit; `because` is the reason as text, `log` the command's output."""

    commit: str
    title: str
    verdict: Verdict
    because: str
    seconds: float
    finished: str
    log: str = ""


class Bisection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of a bisect. `good` and `bad` are commits, `asked` their names by the user.

    `testing` is the commit that is being tried. In the end `first_bad` holds the first bad commit, or
    all that it can be where skipped ones hide it.
    """

    schema: int = BISECT_SCHEMA
    good: tuple[str, ...]
    bad: str
    asked: str
    command: tuple[str, ...]
    start: str
    request: Mapping[str, object] = msgspec.field(default_factory=dict)
    skip: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    testing: str = ""
    first_bad: tuple[str, ...] = ()

    @property
    def builds(self) -> bool:
        """Say whether each commit is built before the command runs."""
        return not self.request.get("no_build")

    @property
    def judged(self) -> tuple[object, ...]:
        """Return what the command judges: the files of each commit, one target, or a whole torch."""
        return self.builds, self.request.get("target")

    def asks_the_same(self, other: Bisection) -> bool:
        """Say whether both look for the same change in the same thing with the same command.

        An unfinished one goes on with other flags of a build, which may be what lets a commit build here. A
        finished one answers for its own flags alone.
        """
        mine, theirs = ((set(each.good), each.bad, each.command, each.judged) for each in (self, other))
        return mine == theirs and (not self.first_bad or self.flags == other.flags)

    @property
    def flags(self) -> Mapping[str, object]:
        """Return the flags of each build."""
        return {name: value for name, value in of_builds(self.request).items() if name != "words"}


def read_bisection(data: bytes, path: str) -> Bisection:
    """Parse the state of a bisect.

    Raises:
        UsageError: it is damaged, or of a newer version.
    """
    remedy = "torchbuild bisect --reset   removes it with its worktree."
    try:
        content: Any = parse_json(data)
        schema = int(content["schema"])
    except (ValueError, TypeError, KeyError):
        raise UsageError(f"{path} is damaged.", next_step=remedy) from None
    if schema > BISECT_SCHEMA:
        raise UsageError(
            f"{path} was written by a newer torchbuild_tasks (schema {schema}).", next_step=remedy
        )
    return from_json(Bisection, content, path)


def judge(code: int) -> tuple[Verdict, str] | None:
    """Return the verdict of an exit code, as in `git bisect run`; None for "stop".

    126 and 127 are a shell's "cannot run" and "not found", and minus a signal's number is a kill: neither
    says anything about a commit.
    """
    if code == 0:
        return "good", "the command ended with 0"
    if code == 125:
        return "skip", "the command ended with 125: cannot be tested"
    if 1 <= code <= 124:
        return "bad", f"the command ended with {code}"
    return None


def is_machines_fault(diagnoses: Sequence[str]) -> bool:
    """Say whether the causes of a failed build would make any other commit fail here, too."""
    return any(name.startswith(_OF_THE_MACHINE) for name in diagnoses[:1])


def git_log(bisection: Bisection) -> str:
    """Return all steps in the format of `git bisect replay`.

    The ends stand in lines of their own: where a good one is no ancestor of the bad one (a release's tag),
    git asks about the commit where they part, and `start` with both ends would end the replay there (2.39).
    """
    marks = ["git bisect start '--no-checkout'"]
    marks += [f"git bisect good {commit}" for commit in bisection.good]
    marks += [f"git bisect bad {bisection.bad}"]
    marks += [f"git bisect skip {commit}" for commit in bisection.skip]
    marks += [f"git bisect {step.verdict} {step.commit}" for step in bisection.steps]
    return "".join(f"{mark}\n" for mark in marks)


def step_line(step: Step) -> str:
    """Return a step as one line."""
    return f"{step.verdict:4}  {step.commit[:10]}  {step.title}  ({step.because}; {step.seconds:.0f} s)"


def log_text(bisection: Bisection) -> str:
    """Return the log for a person: the request, and a line for each step."""
    lines = [f"bisect {bisection.asked} -- {' '.join(bisection.command)}"]
    for number, step in enumerate(bisection.steps, 1):
        lines.append(f"{number:3}  {step.verdict:4}  {step.commit[:10]}  {step.title}")
        lines.append(f"           {step.because}; {step.seconds:.0f} s, {step.finished}")
        if step.log:
            lines.append(f"           {step.log}")
    if bisection.testing:
        lines.append(f"being tried: {bisection.testing}")
    return "\n".join(lines) + "\n"
