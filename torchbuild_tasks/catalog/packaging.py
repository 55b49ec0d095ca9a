"""The rows about packages: wheels, their libraries and sizes, images, platforms, and those of systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class WheelInputRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files whose change has an effect on a torch from a wheel; wheel_inputs.toml explains the columns."""

    paths: tuple[str, ...]
    kind: Literal["native", "generated", "build", "python", "test", "docs"]
    part: str = ""


class SharedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Libraries that a wheel of torch needs and does not build, by patterns of their names.

    `way` is what a package does about them: graft (copied into torch/lib under their real names), target
    (every machine that the wheel is for has them), or cuda: what --cuda-libraries says. Those of CUDA name
    the `cuda` major that they are of, and the `project` on the package index that has them. `part` is that
    part in data/toolkits.toml, whose version belongs to a toolkit. `also` are patterns of files beside it
    that it loads by name, so that they go where it goes.
    """

    files: tuple[str, ...]
    what: str
    way: Literal["graft", "target", "cuda"]
    source: str
    cuda: str = ""
    project: str = ""
    part: str = ""
    also: tuple[str, ...] = ()


class RpathRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """RPATH folders to NVIDIA's libraries, below site-packages, for wheels of a `cuda` major."""

    cuda: str
    folders: tuple[str, ...]
    source: str


class CompressRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of nvcc that compress device code, for CUDA versions of `cuda` (a PEP 440 specifier)."""

    cuda: str
    flags: str
    because: str
    source: str


class IndexLimitRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The largest file, in bytes, that the index `place` accepts at `hosts`."""

    place: str
    hosts: tuple[str, ...] = ()
    size: int
    source: str


class SmallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way to make a wheel smaller: for files of these patterns, from `share` of its size on."""

    files: tuple[str, ...]
    what: str
    advice: str
    share: float = 0.02
    device: Literal["", "cuda"] = ""


class PlatformRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A system and processor that not every torch version supports.

    An empty `arch`, `libc`, `kernel` or `distribution` stands for every one; the latter three are the
    beginning of what the facts have. `bits` are those of the Pythons there, `torch` and `toolkit` versions
    (PEP 440), `cuda` whether the row is about builds for CUDA, `managed` whether about `pypi:` toolkits
    alone. `only_own`: no program that was made for another system starts there. The row counts only where no
    switch of `on` is off, and none of `off` is on.
    """

    os: Literal["linux", "windows"]
    status: Literal["ok", "warn", "unknown", "error"]
    text: str
    source: str
    arch: str = ""
    bits: int = 64
    libc: str = ""
    kernel: str = ""
    distribution: str = ""
    torch: str = ""
    cuda: bool = False
    managed: bool = False
    only_own: bool = False
    toolkit: str = ""
    on: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    fix: str = ""


class CondaNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `project` of the package index that has another `name` on conda-forge."""

    project: str
    name: str
    source: str


class BaseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An image for builds, and its content; container.toml explains the columns."""

    image: str
    archs: tuple[str, ...]
    system: str
    libc: str
    gcc: str
    python: str
    source: str
    install: tuple[str, ...] = ("python3", "python3-venv", "python3-dev")
    cuda: str = ""
    cudnn: str = ""
    l4t: str = ""


class EngineRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that builds or runs images, and its options; container.toml explains the columns."""

    name: str
    answer: tuple[str, ...]
    build: tuple[str, ...]
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    save: tuple[str, ...]
    load: tuple[str, ...]
    run: tuple[str, ...]
    offline: tuple[str, ...] = ()
    start: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    bind: str = ""
    volumes: bool = True
    ptrace: str = "SYS_PTRACE"
    limits: bool = True
    given: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    tegra: tuple[str, ...] = ()
    rootless: str = ""
    cdi: bool = False
    subids: bool = False


class LicenceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A licence by words of its text, in lower case and with single blanks; `id` is SPDX's."""

    id: str
    says: tuple[str, ...]


# ---------------- packages of the system: their names, what is in them, what installs them


class InstallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The command that installs `{package}` on distributions whose name begins with one of these.

    Whoever is made from one of `like` (identifiers of os-release) does so, too. `names` are packages (as in
    packages.toml) that it calls otherwise. `gcc` are majors of GCC that it has a package of ("" for unknown),
    `releases` which release one of them is, `more` commands that bring others. `before` leads to where its
    archive has moved. `repositories` are the commands that turn on those of its repositories that are off.
    """

    distributions: tuple[str, ...]
    command: str
    like: tuple[str, ...] = ()
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    gcc: str = ""
    releases: Mapping[str, str] = msgspec.field(default_factory=dict)
    more: Mapping[str, str] = msgspec.field(default_factory=dict)
    before: str = ""
    repositories: Mapping[str, str] = msgspec.field(default_factory=dict)


class PackageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name of a package in each package manager, with `options` for it; `*` is a version ("g++-*").

    `repository` is the one that has it where an installer's row says how to turn that one on.
    """

    name: str
    repository: str = ""
    names: Mapping[str, str] = msgspec.field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class LibraryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Libraries by the names of their files (patterns, in small letters for Windows).

    `what` says what it is, `packages` what it is called by package manager. Two of one `family` in one
    process are one too many. `fix` says what else is to be known.
    """

    files: tuple[str, ...]
    what: str
    source: str
    packages: Mapping[str, str] = msgspec.field(default_factory=dict)
    family: str = ""
    fix: str = ""


class ManagerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commands of a package manager: `install` precedes the names, `refresh` runs before it.

    One that is `single` takes one package a call; only `root` may call some.
    """

    name: str
    install: tuple[str, ...]
    refresh: tuple[str, ...] = ()
    single: bool = False
    root: bool = False


class WantRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that `bootstrap` installs if all `tools` are missing, or the `part` of Python or Windows."""

    package: str
    kind: Literal["needed", "faster"]
    because: str
    tools: tuple[str, ...] = ()
    part: Literal["", "python", "python headers", "python venv", "msvc"] = ""
    os: str = ""
