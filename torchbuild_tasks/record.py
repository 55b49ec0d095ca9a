"""What was done: the build's memory and the verification's report (JSON both ways)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torchbuild_tasks.model import BuildPlan, CacheReport, Choice, EnvOp, Facts
from torchbuild_tasks.model.history import Peak
from torchbuild_tasks.request import BuildRequest
from torchbuild_tasks.values import replace, to_json

Outcome = Literal["passed", "failed", "not possible"]

RECORD_SCHEMA = 1


class StageTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a stage took, in seconds, and how it ended (ok, failed, interrupted)."""

    stage: str
    seconds: float
    result: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One check of the verification; `detail` carries numbers or the reason."""

    check: str
    outcome: Outcome
    detail: str = ""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the built torch showed; `torch` is what it says of itself, `left_out` what was not looked at."""

    python: str
    checks: tuple[CheckResult, ...]
    left_out: tuple[str, ...] = ()
    torch: Mapping[str, str] = msgspec.field(default_factory=dict)


class JobserverUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobserver did: `most` and `fewest` jobs at once, and how long compiles were held in all."""

    most: int
    fewest: int
    held_seconds: float


class BuildRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The build's memory, a JSON file in the build tree.

    `result` is running while a build works, then ok, failed or interrupted. `inputs` is
    the fingerprint that the next plan compares; `caches` what each compiler cache did, `peaks` the
    memory that its processes took.
    """

    schema: int = RECORD_SCHEMA
    result: str
    started: str
    finished: str | None = None
    request: Mapping[str, object] = msgspec.field(default_factory=dict)
    facts: Facts
    choices: tuple[Choice, ...]
    inputs: Mapping[str, str]
    env: tuple[EnvOp, ...]
    argv: tuple[str, ...]
    stages: tuple[StageTime, ...] = ()
    caches: tuple[CacheReport, ...] = ()
    peaks: tuple[Peak, ...] = ()
    verify: VerifyReport | None = None
    jobserver: JobserverUse | None = None


def start_record(request: BuildRequest, facts: Facts, plan: BuildPlan, *, started: str) -> BuildRecord:
    """The record of a build that begins; the record before it is not carried along."""
    return BuildRecord(
        result="running",
        started=started,
        request=to_json(request),
        facts=replace(facts, tree=replace(facts.tree, previous=None, installed=None)),
        choices=plan.choices,
        inputs=plan.inputs,
        env=plan.env,
        argv=plan.compile.argv,
    )
