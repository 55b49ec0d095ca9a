"""The manifest of a build: everything that somebody else needs to make the same build again (JSON both ways).

The record is the tool's own memory of a build tree; a manifest leaves the machine. So it holds no
credentials, and what it says of files is a hash that can be compared anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from torchbuild_tasks.model import CacheReport, Choice, Cpu, EnvOp, Host, Memory
from torchbuild_tasks.model.history import PastPeak
from torchbuild_tasks.record import StageTime, VerifyReport

MANIFEST_SCHEMA: Final = 1
MANIFEST_FILE: Final = "torchbuild-manifest.json"


class FileSeen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file by its content; `sha256` is None where it was too large, or could not be read."""

    path: str
    size: int
    sha256: str | None = None


class Repository(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """torch itself (`path` is "") or one of its submodules, at any depth, as it was when the build began.

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
    """A downloaded helper by artifact id, with the hash of its archive; None where none is known."""

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
    """One build. `request` and `settings` are what was asked for, `environ` the user's build variables.

    `cpu`, `memory` and `peaks` are what the job count was reckoned from. `redacted` names what is not
    here because it was, or looked like, a credential.
    """

    schema: int = MANIFEST_SCHEMA
    tool: str
    result: str
    started: str
    finished: str | None = None
    root: str
    build_dir: str
    store: str = ""
    torch: str
    era: str
    repositories: tuple[Repository, ...] = ()
    source_problem: str = ""
    request: Mapping[str, object] = msgspec.field(default_factory=dict)
    settings: Mapping[str, object] = msgspec.field(default_factory=dict)
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    host: Host
    cpu: Cpu
    memory: Memory
    peaks: tuple[PastPeak, ...] = ()
    python: str
    python_version: str | None = None
    choices: tuple[Choice, ...]
    env: tuple[EnvOp, ...]
    env_files: tuple[EnvText, ...] = ()
    commands: tuple[Ran, ...] = ()
    programs: tuple[Program, ...] = ()
    helpers: tuple[HelperUsed, ...] = ()
    patches: Mapping[str, str] = msgspec.field(default_factory=dict)
    requirements: tuple[Installed, ...] = ()
    caches: tuple[CacheReport, ...] = ()
    stages: tuple[StageTime, ...] = ()
    verify: VerifyReport | None = None
    redacted: tuple[str, ...] = ()
