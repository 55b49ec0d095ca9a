"""The plan: what will be done, and why. These values never contain passwords or tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from torchbuild_tasks.model.facts import Era

Status = Literal["ok", "warn", "error", "unknown", "skipped"]
Source = Literal["flag", "environment", "torchbuild.toml", "preset", "helper", "default"]
Need = Literal["first", "nothing", "build", "reconfigure", "clean"]
Verdict = Literal["ok", "warn", "refuse"]


class Choice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One decision: its value, its reason, and the layer of the precedence that decided it."""

    name: str
    value: str
    because: str
    source: Source = "default"


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of one check, made by the status that it has; a warning or an error says what to do.

    `unknown`: it could not be checked. `skipped`: it does not apply here, or was not requested.
    """

    id: str
    status: Status
    text: str
    fix: str = ""

    @classmethod
    def ok(cls, id: str, text: str) -> Finding:
        """Return what is as it should be."""
        return cls(id=id, status="ok", text=text)

    @classmethod
    def warn(cls, id: str, text: str, fix: str) -> Finding:
        """Return what the build may go on with."""
        return cls(id=id, status="warn", text=text, fix=fix)

    @classmethod
    def error(cls, id: str, text: str, fix: str) -> Finding:
        """Return what ends the build."""
        return cls(id=id, status="error", text=text, fix=fix)

    @classmethod
    def unknown(cls, id: str, text: str, fix: str = "") -> Finding:
        """Return what could not be checked."""
        return cls(id=id, status="unknown", text=text, fix=fix)

    @classmethod
    def skipped(cls, id: str, text: str) -> Finding:
        """Return what does not apply here, or was not requested."""
        return cls(id=id, status="skipped", text=text)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """Return what all findings say together: an unknown alone neither refuses nor warns."""
    states = {finding.status for finding in findings}
    return "refuse" if "error" in states else "warn" if "warn" in states else "ok"


class EnvOp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation on one variable.

    `set` gives it `value`, `prepend` puts `value` (a path) before what is there, `unset`
    removes it. In cmd empty and unset are the same, so an empty `set` is refused there.
    `load` runs the batch file `value` with `arguments` and keeps what it sets; `name` then
    is the variable that remembers it, so that loading twice runs it once. Only Windows'
    shells can.
    """

    op: Literal["set", "prepend", "unset", "load"]
    name: str
    value: str = ""
    because: str = ""
    arguments: tuple[str, ...] = ()


class EnvFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The finished text of an env file, before it is written."""

    shell: str
    path: str
    text: str


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A process to run: argv as a list, never a shell string."""

    argv: tuple[str, ...]
    cwd: str
    because: str


class Way(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The way to an importable torch: by the Python front end, by Ninja and install, or from a wheel.

    Round it, `ninja` is the command to which `-n` or a target is added, and what it builds is
    installed where the editable install reads from. `target` is the one that is built alone, in the tree that
    `configure` makes where it has to be made; from a wheel it is compiled against the wheel's libraries.
    """

    name: Literal["front end", "install", "from-wheel"]
    because: str
    ninja: Command | None = None
    configure: Command | None = None
    target: str = ""


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One helper that is downloaded and unpacked: a file by address, or a wheel by name.

    `id` names it for good ("magma-2.5.4-cuda124-release") and is the folder's name in the
    store. A file has `urls`, the best first; a wheel has `project`, `version` and the
    platform `tag` that its file name ends with ("win_amd64"; "" for any). `sha256` is None
    where none is published; `size` is bytes. `holds` are paths inside the unpacked
    folder that must be there. A build goes on without an `optional` one. `place` is the folder's name where
    that is another: what a checkout names itself, or has from a mirror, shares no folder with what others
    call the same.
    """

    id: str
    name: str
    version: str
    urls: tuple[str, ...] = ()
    project: str = ""
    tag: str = ""
    sha256: str | None = None
    size: int | None = None
    unpack: Literal["7z", "zip", "tar.bz2", "tar.xz", "tar.gz", "conda", "file"]
    holds: tuple[str, ...] = ()
    because: str = ""
    optional: bool = False
    place: str = ""

    @property
    def stored_as(self) -> str:
        """Return the name of its folder in the store."""
        return self.place or self.id


class ManagedToolkit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A CUDA toolkit that is put together in `folder` from the artifacts `parts` (their ids).

    `version` is the toolkit's ("12.4"); `here` says whether it already stands complete.
    """

    folder: str
    version: str
    parts: tuple[str, ...]
    here: bool = False
    because: str = ""


class Patch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to the source that this build needs: `id` names it, `diff` is its text.

    `path` is the user's file that it comes from; "" for one of ours.
    """

    id: str
    diff: str
    because: str
    path: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One small file that is compiled: `launcher` precedes `argv`, whose object file is `output`."""

    argv: tuple[str, ...]
    output: str
    launcher: tuple[str, ...] = ()


class Preflight(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The trial before the build: small files with the planned compilers and flags.

    Each trial compiles one of `sources` (file name to text) in an otherwise empty folder.
    `cubin` is the object whose architectures must be `archs` ("sm_86", "compute_90" for
    PTX), read by `cuobjdump` ("" where there is none).
    """

    sources: Mapping[str, str]
    trials: tuple[Trial, ...]
    cubin: str = ""
    archs: tuple[str, ...] = ()
    cuobjdump: str = ""


class Jobserver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tokens for a build that takes its jobs from us: at most `cores` at once.

    `reserve` and `largest` are bytes: what stays free, and what one compile is thought to take
    at most. Only a `program` (ninja, make) of a `version` (PEP 440) takes them.
    """

    cores: int
    reserve: int
    largest: int
    program: str
    version: str


class Environment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The Python that gets torch, and the commands that create and complete it.

    `create` makes the managed venv when it is not there yet, `remove` takes away a torch
    that would be imported instead, `install` brings in missing requirements, `better` what the
    build could do without; `foreign` is true when that changes an environment which the user
    made, so that it needs a yes.
    `installer` begins a command line that installs, `install_options` say where packages come from, where
    that is not the index.
    """

    python: str
    version: str | None = None
    create: Command | None = None
    remove: Command | None = None
    install: Command | None = None
    installer: tuple[str, ...] = ()
    install_options: tuple[str, ...] = ()
    better: Command | None = None
    foreign: bool = False


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One input that differs from the last build, and what that needs; `because` is that of its row."""

    name: str
    before: str
    after: str
    needs: Need
    because: str = ""


class Freshness(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The step that updates the existing build tree for the changed inputs."""

    needs: Need
    because: str
    changes: tuple[Change, ...] = ()


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One promise that the verification holds the built torch to.

    `check` names a check of the probe; `key` a part of what it reports; `wanted` the
    text it must have. An empty `key` means that the check itself must pass. `skip`
    says why this check cannot be made here.
    """

    check: str
    key: str = ""
    wanted: str = ""
    because: str = ""
    skip: str = ""


# ---------------- the linker and its trial


class LinkTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A small library and a program that uses it, made in an empty folder and run.

    `sources` are file name to text; `commands` make `library` and the program; `run` must end with 0.
    `mark` is what the linker leaves in what it makes ("" where it leaves nothing).
    """

    sources: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]
    library: str
    mark: str = ""


class LinkerPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linker that is not the system's default. `tool` is its name among the facts' tools.

    `folder` is where a link called ld has to lead to `program`, for compilers that cannot be told its
    name ("" where they can). A `demanded` one is not given up when it does not link; `trial` is None
    where it has proved itself in the last build.
    """

    name: str
    tool: str
    program: str
    folder: str = ""
    demanded: bool = False
    trial: LinkTrial | None = None


# ---------------- the compiler cache, its statistics, and distributed compiles


class Distribution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The use of a scheduler: `compiler` is the compiler of the trial.

    `jobs` are the parallel jobs once that trial has come back from a server; before, and
    without it, they are as many as without a cluster.
    """

    url: str
    conf: str
    compiler: str
    jobs: int


class CacheTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cache program of a plan: `name` is ccache or sccache, `program` its path.

    `folder` is where it keeps results ("" for its own default folder). `settings` are those of its
    settings that decide whether a result fits, without anything that differs between checkouts.
    """

    name: str
    program: str
    version: str
    folder: str = ""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)


class CachePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan for running the caches of a build.

    `remotes` are the addresses of shared caches, as they may be shown. `size` is the least number
    of bytes that a cache may fill. `memory` is the file in which our store keeps which settings a
    folder was filled with, and which folders we made.
    """

    tools: tuple[CacheTool, ...]
    remotes: tuple[str, ...] = ()
    read_only: bool = False
    distribution: Distribution | None = None
    size: int = 0
    memory: str = ""


class CacheReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The statistics of one cache in one build: hits and misses by language.

    `not_cached` are commands that it passed on, by the cache's own reason; `shared` are the hits
    that came from a shared cache; `errors` are failures of the cache, none of the compiler. `away` are
    the compiles that servers of a cluster made, by address, `given_back` those that should have been.
    `links` are the links that were found, which are no compiles and count in nothing else.
    """

    tool: str
    hits: Mapping[str, int] = msgspec.field(default_factory=dict)
    misses: Mapping[str, int] = msgspec.field(default_factory=dict)
    not_cached: Mapping[str, int] = msgspec.field(default_factory=dict)
    shared: int = 0
    errors: int = 0
    away: Mapping[str, int] = msgspec.field(default_factory=dict)
    given_back: int = 0
    links: int = 0

    @property
    def found(self) -> int:
        """Return the hits of all languages."""
        return sum(self.hits.values())

    @property
    def looked(self) -> int:
        """Return the hits and the misses of all languages."""
        return self.found + sum(self.misses.values())


class CacheState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of one cache: bytes used, and its limit (None if unknown).

    `made` says whether a build of ours made the folder.
    """

    tool: str
    version: str
    program: str
    folder: str
    used: int | None = None
    limit: int | None = None
    made: bool = False


# ---------------- companions, built after torch


class Companion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One project to build against the torch that was built.

    Its source lies in `folder`; where `url` is not empty it is first cloned there, at `ref`, and where
    `requirement` (PEP 508) is not, its sdist is first unpacked there. `argv` makes a wheel of it in `wheels`,
    with the variables `set`, in which `{torch}` is the version of the torch that was built; `before` is run
    in a source that was fetched. `state` tells whether it must be built again ("" always). Of an `extension`
    what its metadata ask for is installed, too; `module` is what it is imported as ("" for all in its wheel).
    """

    name: str
    version: str
    folder: str
    url: str = ""
    ref: str = ""
    requirement: str = ""
    wheels: str = ""
    before: tuple[str, ...] = ()
    extension: bool = False
    module: str = ""
    argv: tuple[str, ...]
    set: Mapping[str, str] = msgspec.field(default_factory=dict)
    state: str = ""
    because: str = ""


# ---------------- the plan


class BuildPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All decisions of a build. `verdict` is refuse if any finding is an error."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    choices: tuple[Choice, ...]
    source: str
    build_dir: str
    era: Era
    mode: str
    environment: Environment
    artifacts: tuple[Artifact, ...] = ()
    toolkit: ManagedToolkit | None = None
    patches: tuple[Patch, ...] = ()
    preflight: Preflight | None = None
    cache: CachePlan | None = None
    jobserver: Jobserver | None = None
    linker: LinkerPlan | None = None
    companions: tuple[Companion, ...] = ()
    env: tuple[EnvOp, ...]
    env_files: tuple[EnvFile, ...]
    freshness: Freshness
    inputs: Mapping[str, str]
    way: Way
    compile: Command
    expectations: tuple[Expectation, ...]

    @property
    def decided(self) -> dict[str, str]:
        """The value of each choice by its name."""
        return {choice.name: choice.value for choice in self.choices}

    @property
    def told(self) -> tuple[Finding, ...]:
        """The warnings that a build tells; none where only sources have changed since one that told them."""
        warnings = tuple(finding for finding in self.findings if finding.status == "warn")
        return () if self.way.name == "install" else warnings
