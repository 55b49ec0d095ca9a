"""The manifest of a build and the report of the verification, as JSON values.

The manifest is the only record of a build: the next plan reads it, and another person can repeat the build
with it. It holds no credentials, so it can be passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from torchbuild_tasks.model import BuildPlan, CacheReport, Choice, Command, EnvOp, Facts
from torchbuild_tasks.model.history import Peak

Outcome = Literal["passed", "failed", "not possible"]

# 1 was torchbuild_tasks 0.1.0, the record in a file of its own (features/manifest/read.py reads both).
MANIFEST_SCHEMA: Final = 2
MANIFEST_FILE: Final = "torchbuild-manifest.json"
RECORD_FILE: Final = "torchbuild-record.json"  # of 0.1.0; the first manifest written next to it replaces it


class StageTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time of a stage, in seconds, and how it ended (ok, failed, interrupted)."""

    stage: str
    seconds: float
    result: str


class CheckResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One check of the verification; `detail` carries numbers or the reason."""

    check: str
    outcome: Outcome
    detail: str = ""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Results of all checks; `torch` are the values that it reports, `left_out` the checks not run."""

    python: str
    checks: tuple[CheckResult, ...]
    left_out: tuple[str, ...] = ()
    torch: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """Return the checks that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")


class JobserverUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Statistics of the jobserver: `most` and `fewest` jobs, and the seconds that compiles were suspended."""

    most: int
    fewest: int
    held_seconds: float


class FileSeen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file by its content; `sha256` is None where it was too large, or could not be read."""

    path: str
    size: int
    sha256: str | None = None


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """torch (`path` is "") or one of its submodules, at any depth, in its state when the build began.

    `commit` is None where nothing is checked out. `diff` is what was changed against it, for `git apply`;
    `diff_sha256` is the hash of all of it ("" where nothing was changed) and `problem` says why `diff` is
    not all. `untracked` are files that git neither knows nor ignores, so that the build could read them.
    """

    path: str
    commit: str | None = None
    url: str = ""
    diff: str = ""
    diff_sha256: str = ""
    untracked: tuple[FileSeen, ...] = ()
    problem: str = ""


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program of the toolchain; `sha256` is that of its own file, not of the libraries it loads."""

    name: str
    path: str
    version: str | None = None
    sha256: str | None = None
    size: int | None = None
    modified: str = ""


class HelperUsed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A downloaded helper by artifact id, with the hash of its archive; None if unknown."""

    id: str
    version: str
    sha256: str | None = None


class Installed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A distribution in the Python that got torch.

    `record` is the SHA-256 of its RECORD, which has the hash of every file; `archive` that of the wheel
    or archive, which pip keeps only where it was told an address; `origin` is that address. `unknown`
    says what cannot be known.
    """

    name: str
    version: str
    record: str | None = None
    archive: str | None = None
    origin: str = ""
    unknown: str = ""


class EnvText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An env file as it was written."""

    shell: str
    path: str
    sha256: str
    text: str


class Ran(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that the build ran."""

    argv: tuple[str, ...]
    cwd: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One build.

    `result` is running while a build works, then ok, failed or interrupted; planned where replay plans it.
    `request` and `settings` are the user's input. `inputs` is the fingerprint that the next plan compares,
    `argv` the build's command as planned, `commands` what really ran. `programs`, `helpers` and
    `requirements` are gathered when the build has ended, so they are empty in one that was killed. `peaks` is
    the memory that its processes took. `redacted` names what is not here because it was, or looked like, a
    credential.
    """

    schema: int = MANIFEST_SCHEMA
    tool: str
    result: str
    started: str
    finished: str | None = None
    root: str
    build_dir: str
    era: str
    repositories: tuple[Repository, ...] = ()
    source_problem: str = ""
    request: Mapping[str, object] = msgspec.field(default_factory=dict)
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)
    facts: Facts
    python: str
    python_version: str | None = None
    choices: tuple[Choice, ...]
    inputs: Mapping[str, str] = msgspec.field(default_factory=dict)
    env: tuple[EnvOp, ...]
    env_files: tuple[EnvText, ...] = ()
    argv: tuple[str, ...] = ()
    commands: tuple[Ran, ...] = ()
    programs: tuple[Program, ...] = ()
    helpers: tuple[HelperUsed, ...] = ()
    patches: Mapping[str, str] = msgspec.field(default_factory=dict)
    requirements: tuple[Installed, ...] = ()
    caches: tuple[CacheReport, ...] = ()
    stages: tuple[StageTime, ...] = ()
    peaks: tuple[Peak, ...] = ()
    jobserver: JobserverUse | None = None
    verify: VerifyReport | None = None
    redacted: tuple[str, ...] = ()

    @property
    def torch(self) -> str:
        """The version in the checkout."""
        return str(self.facts.tree.version)

    @property
    def store(self) -> str:
        """The folder of the helpers; "" for none."""
        return self.facts.store.folder if self.facts.store else ""

    @property
    def decided(self) -> dict[str, str]:
        """The value of each choice by its name."""
        return {choice.name: choice.value for choice in self.choices}


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run of the stages.

    Attributes:
        plan: what was built; with another linker where the planned one does not link here.
        verified: what the verification found; None when nothing had to be verified.
        up_to_date: nothing had to be built.
        stages: how long each took.
        caches: what the compiler caches did.
        wheel: the wheel that was made, in wheel mode.
        log: the log of the build; "" where none was written.
    """

    plan: BuildPlan
    verified: VerifyReport | None = None
    up_to_date: bool = False
    stages: tuple[StageTime, ...] = ()
    caches: tuple[CacheReport, ...] = ()
    wheel: str = ""
    log: str = ""


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a clean would remove and those it keeps, relative to `root`, folders with a final `/`.

    `planned` is when this was found out, in nanoseconds: what changes later is kept too. `uninstall` is run
    first, for the editable install. Of --patches only `patches` are there, by their ids.
    """

    root: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    planned: int
    uninstall: Command | None = None
    patches: tuple[str, ...] = ()
