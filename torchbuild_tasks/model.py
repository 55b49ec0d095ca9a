"""The values everything is made of: frozen, keyword-only, JSON both ways (`codec.py`).

Facts are what the machine is, a plan is what will be done and why (what was done
stands in `record.py`). Paths are strings in the style of the host that the facts describe, so a
plan for one machine can be made and tested on another. Sizes are bytes, times seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "warn", "error", "unknown"]
Source = Literal["flag", "environment", "torchbuild.toml", "preset", "helper", "default"]
Era = Literal["setuptools", "scikit-build-core"]
Need = Literal["first", "nothing", "build", "reconfigure", "clean"]

FACTS_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A program that was looked for; `path` is None when it was not found.

    `found_via` says how ("PATH", "environment CXX" ...), `looked` where, `aliases` other
    paths to it; `version` is None when it did not say one that could be read.
    """

    name: str
    path: str | None = None
    version: str | None = None
    found_via: str | None = None
    looked: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Host:
    """The machine: `os` is linux or windows, `arch` x86_64, aarch64 or what uname says."""

    os: str
    arch: str
    distribution: str | None = None
    kernel: str | None = None
    libc: str | None = None


@dataclass(frozen=True, kw_only=True)
class Cpu:
    """Cores of the machine, cores this process may run on, and the cgroup quota in cores."""

    cores: int
    affinity: int | None = None
    quota: float | None = None
    quota_via: str | None = None


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes: of the machine, free for new programs, and the tightest cgroup's limit and use."""

    total: int | None = None
    available: int | None = None
    swap_free: int | None = None
    limit: int | None = None
    used_in_limit: int | None = None
    limit_via: str | None = None


@dataclass(frozen=True, kw_only=True)
class Disk:
    """Free and total bytes of the mount that holds `path`."""

    path: str
    mount: str | None = None
    free: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class Python:
    """An interpreter that could get torch.

    `environment` is venv, conda or base; `managed` is true for a venv that this tool
    made inside the checkout. `problem` says why the interpreter could not be read.
    `torch` is the installed torch distribution's version, `torch_from` the folder an
    editable install of it points to.
    """

    executable: str
    found_via: str
    version: str | None = None
    implementation: str | None = None
    abi: str | None = None
    bits: int | None = None
    environment: Literal["venv", "conda", "base"] | None = None
    managed: bool = False
    externally_managed: bool = False
    prefix: str | None = None
    scripts: str | None = None
    include: str | None = None
    headers: bool | None = None
    venv: bool | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    torch_from: str | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class CMakeCache:
    """What an existing build tree remembers of its making."""

    home: str | None = None
    generator: str | None = None
    build_type: str | None = None
    python: str | None = None
    compiler: str | None = None


@dataclass(frozen=True, kw_only=True)
class Previous:
    """The last build's record, as far as the next plan needs it."""

    result: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    finished: str | None = None
    verified: bool = False


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The source tree: `problem` is None when it is a torch checkout that can be read.

    `empty` lists third_party folders that .gitmodules (or the folder itself) names and
    that hold nothing. `commit` is None outside git; `dirty` counts tracked files only.
    """

    root: str
    problem: str | None = None
    looked: tuple[str, ...] = ()
    sample: bool = False
    version: str | None = None
    era: Era | None = None
    backend: str | None = None
    build_dir: str | None = None
    requires: tuple[str, ...] = ()
    git: bool = False
    commit: str | None = None
    dirty: bool | None = None
    empty: tuple[str, ...] = ()
    writable: bool | None = None
    digests: Mapping[str, str] = field(default_factory=dict)
    cache: CMakeCache | None = None
    previous: Previous | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that was looked at, and nothing that was concluded from it.

    `environ` holds only the variables of the user's environment that a PyTorch build
    reads (rows of data/variables.toml), so a dump never carries unrelated secrets.
    """

    schema: int = FACTS_SCHEMA
    host: Host
    cpu: Cpu
    memory: Memory
    disk: Disk
    compilers: tuple[Tool, ...] = ()
    tools: tuple[Tool, ...] = ()
    pythons: tuple[Python, ...] = ()
    tree: Tree
    environ: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One decision: its value, why, and which layer of the precedence decided it."""

    name: str
    value: str
    because: str
    source: Source = "default"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was checked; `fix` says what to do when `status` is not ok."""

    id: str
    status: Status
    text: str
    fix: str = ""


@dataclass(frozen=True, kw_only=True)
class EnvOp:
    """One operation on one variable.

    `set` gives it `value`, `prepend` puts `value` (a path) before what is there, `unset`
    removes it. In cmd empty and unset are the same, so an empty `set` is refused there.
    """

    op: Literal["set", "prepend", "unset"]
    name: str
    value: str = ""
    because: str = ""


@dataclass(frozen=True, kw_only=True)
class EnvFile:
    """The finished text of an env file, before it is written."""

    shell: str
    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Command:
    """A process to run: argv as a list, never a shell string."""

    argv: tuple[str, ...]
    cwd: str
    because: str


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The Python that gets torch, and how it comes to be complete.

    `create` makes the managed venv when it is not there yet, `remove` takes away a torch
    that would be imported instead, `install` brings in missing requirements; `foreign` is
    true when that changes an environment which the user made, so that it needs a yes.
    """

    python: str
    version: str | None = None
    create: Command | None = None
    remove: Command | None = None
    install: Command | None = None
    foreign: bool = False


@dataclass(frozen=True, kw_only=True)
class Change:
    """One input that differs from the last build, and what that needs."""

    name: str
    before: str
    after: str
    needs: Need


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """What the existing build tree needs before it is right again."""

    needs: Need
    because: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Expectation:
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


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """The whole decision. `verdict` is refuse when any finding is an error."""

    verdict: Literal["ok", "warn", "refuse"]
    findings: tuple[Finding, ...]
    choices: tuple[Choice, ...]
    source: str
    build_dir: str
    era: Era
    mode: str
    environment: Environment
    env: tuple[EnvOp, ...]
    env_files: tuple[EnvFile, ...]
    freshness: Freshness
    inputs: Mapping[str, str]
    quick: Command | None
    compile: Command
    expectations: tuple[Expectation, ...]
