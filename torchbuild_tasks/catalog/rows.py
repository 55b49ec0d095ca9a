"""The rows of the tables that have no module of their own here, with the meaning of each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from torchbuild_tasks.model import Need

Unpack = Literal["7z", "zip", "tar.bz2", "tar.xz", "tar.gz", "conda", "file"]


class TorchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release series, `latest` its last release; torch.toml explains the columns."""

    version: str
    latest: str
    released: str
    python: str
    cxx: int
    gcc: str
    msvc: str
    cmake: str
    requires: tuple[str, ...]
    source: str
    python_linux: str = ""
    python_tried: str = ""
    python_advised: str = ""
    free_threaded: str = ""
    clang: str = ""
    triton: str = ""
    note: str = ""


class EntryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that starts a build; `{python}` is replaced by the interpreter that gets torch."""

    era: str
    mode: str
    torch: str
    argv: tuple[str, ...]
    because: str


class PresetRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named set of build variables. `disk` is GiB for a finished tree of build type `build_type`."""

    name: str
    summary: str
    build_type: str
    disk: float
    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    os: str = ""


class SwitchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value of a build variable for presets: its effect, and its measured savings.

    `compiles` are the files that are not compiled then, `of` those of a CPU build of `torch` with upstream's
    defaults, `cpu` the per cent of their CPU time (0: not measured). Without `compiles` nothing is left out.
    """

    variable: str
    value: str
    what: str
    compiles: int = 0
    of: int = 0
    cpu: float = 0.0
    torch: str = ""


class VariableRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A variable, or a pattern of names, that a PyTorch build reads.

    `needs` says what an existing build tree needs when it changes. `refused` gives the reason why it must not
    be in the environment of a build, `instead` what to do, with {value} for what it was given. `kind` and
    `values` say what it may be, as variables.toml explains; with `stops` anything else ends a build.
    """

    name: str
    era: str = ""
    torch: str = ""
    needs: Need = "reconfigure"
    refused: str = ""
    instead: str = ""
    kind: Literal["", "switch", "number", "count", "version", "word", "flags"] = ""
    values: tuple[str, ...] = ()
    linux: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    stops: bool = False
    source: str = ""


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables (names or patterns) that another program of a build reads, which are not reported as unread.

    With `environment` they are known there only: set for a build, nothing of it reads them. `kept` is why no
    build may replace them, on the system `os` (none: every one), `instead` what to do.
    """

    program: str
    names: tuple[str, ...]
    environment: bool = False
    kept: str = ""
    instead: str = ""
    os: str = ""
    source: str


class OverruledRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compiler flags (or patterns) that torch's own build overrides or fails with, and a fix."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    torch: str = ""
    os: str = ""
    arch: str = ""
    because: str
    fix: str
    source: str


class RenamedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name in recipes that no torch reads, and its replacement."""

    old: str
    new: str
    source: str


class ClashRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two switches that cannot both be on: the build of these torch versions (PEP 440) stops."""

    names: tuple[str, str]
    torch: str
    source: str


class DemandRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables with which a build of these torch versions (PEP 440) stops, unless `needs` is set.

    They are switches that are on, or have this `value`. Without `needs` nothing provides it. `fix` is another
    way, behind "Drop it, or". With `off` it is only where that switch is off, and the build ends: a warning.
    """

    names: tuple[str, ...]
    value: str = ""
    needs: str = ""
    off: str = ""
    torch: str = ""
    because: str
    fix: str = ""
    source: str


class DatedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Switches that only some torch versions (PEP 440) read; `why` says what they are for."""

    names: tuple[str, ...]
    torch: str
    why: str = ""
    source: str


class NeedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A switch that PyTorch's build turns off unless one of the switches `any` is on.

    An "and" is two rows. `os` are the systems on which it can be on at all (none: every one), `against`
    the switches beside which it cannot be on.
    """

    names: tuple[str, ...]
    source: str
    any: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    os: str = ""
    torch: str = ""


class FilesRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library outside of the checkout: the files by which it is there, and what names its folder."""

    name: str
    source: str
    libraries: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    torch: str = ""


class BlasRow(FilesRow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library for BLAS and LAPACK: its names for `BLAS=` and in torch."""

    info: str
    named: bool = False


class LinkedRow(FilesRow, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `switches` link with where one of `any` is not off; "NAME=0" links with it where NAME is off.

    A package `python` brings it, too. `without` is what happens where it is missing, `own` the folder of the
    checkout's own. With `toolkit` it is looked for among CUDA's libraries and parts. `only` is the one
    variable to name it by, where CMAKE_PREFIX_PATH leads not every module, or not every layout, to it.
    `nvidia` is its package in NVIDIA's repository, as apt calls it.
    """

    switches: tuple[str, ...]
    without: Literal["off", "own", "stops", "fails"]
    any: tuple[str, ...] = ()
    python: str = ""
    package: str = ""
    nvidia: str = ""
    os: str = ""
    own: str = ""
    only: str = ""
    toolkit: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.partition("=")[0] for each in self.switches)


class CMakeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CMake's own variables, some with a place for a language or a build type in their name."""

    names: tuple[str, ...]
    source: str


class InputRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input of a build other than a variable, and the effect of its change, in builds of `mode`."""

    name: str
    needs: Need
    because: str
    mode: str = ""


class FrontEndRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or folder that ties a build to the Python front end; front_end.toml explains the roles."""

    path: str
    role: Literal["reads", "makes", "carries", "holds"]
    because: str
    era: str = ""
    torch: str = ""


class CheckRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One promise of the verification.

    `key` with `wanted` (a template over the plan's promises) or `variable` (a build
    variable whose planned value torch must report under `key`); neither: the check
    itself must pass. `sample` says why the sample cannot show it. A row with `when`, a
    build variable, is there only where that is planned on; `unless` makes the check not
    possible where a variable is planned off. One of a `companion` is there only where that
    is a companion's.
    """

    check: str
    because: str
    key: str = ""
    wanted: str = ""
    variable: str = ""
    spelled: tuple[str, ...] = ()
    sample: str = ""
    unless: str = ""
    when: str = ""
    companion: str = ""


class OutputRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern of files that a build of `era` writes inside the checkout.

    With `named` only what something of the build names is claimed. `tag` is the file by which its maker knows
    a folder that it empties at each install.
    """

    pattern: str
    what: str
    era: str = ""
    named: bool = False
    tag: str = ""


class BackportRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that the Pythons of `python` include, so that it is not installed there."""

    name: str
    python: str
    because: str


class GateRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Releases of a build tool: only those of `fits` (PEP 440) build torch on `os` ("" is every one)."""

    name: str
    fits: str
    os: str = ""
    because: str
    source: str


class BringRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An optional build program that PyPI has for these systems ("linux x86_64").

    `fits` are the releases that do what is wanted, `python` the Pythons that their wheels install into.
    """

    name: str
    fits: str = ""
    python: str = ""
    systems: tuple[str, ...]
    libc: str = ""
    lacks: str
    source: str


class LeftOutRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that checkouts require and neither a build nor a test needs."""

    name: str
    because: str


class CharacterRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A character not allowed in the checkout's path, in CUDA builds with `switch` on, `unless` off.

    `upstream` says that PyTorch's own files break at it, and those of the sample do not.
    """

    character: str
    breaks: str
    os: str = ""
    torch: str = ""
    switch: str = ""
    unless: str = ""
    kernel: str = ""
    upstream: bool = False
    status: Literal["warn", "error"] = "error"
    fix: str = "Move the checkout to a folder without that character."


class MsvcRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on MSVC toolsets: the CUDA versions that support one, or why one is `refused` or `doubted`.

    `install` is its name in the Installer of its own Visual Studio, `later` what later ones add.
    """

    toolset: str
    source: str
    name: str = ""
    cuda: str = ""
    torch: str = ""
    visual_studio: str = ""
    refused: str = ""
    doubted: str = ""
    with_cuda: str = ""
    install: str = ""
    later: str = ""


class HelperRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One artifact of one helper; of several that fit, the newest `version` is used.

    `cuda` is a CUDA version in the digits that file names carry ("124"), `configuration`
    release or debug, where only such builds can use it, `archs` the GPU architectures that it has code for
    ("8.0", "9.0+PTX"), where that is known. `needed` says which builds want it
    (build: every one; cuda; distributed; asked: only with --helper), `unless` names
    variables with which a user says to have it already. In `set`, `prepend` and `check`
    (a command that checks it) `{folder}` is its folder. `holds` are paths inside that
    must be there. `requires` (PEP 508) goes into the Python that gets torch: what torch
    needs of the helper when it is imported. `refused` says why it is not taken, where a build
    has found that it cannot be had.
    """

    name: str
    version: str
    os: str
    needed: Literal["build", "cuda", "distributed", "asked"]
    unpack: Unpack
    source: str
    arch: str = ""
    torch: str = ""
    cuda: str = ""
    configuration: str = ""
    archs: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    project: str = ""
    tag: str = ""
    sha256: str = ""
    size: int = 0
    holds: tuple[str, ...] = ()
    set: Mapping[str, str] = msgspec.field(default_factory=dict)
    prepend: Mapping[str, str] = msgspec.field(default_factory=dict)
    check: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    because: str = ""
    refused: str = ""


# ---------------- memory, jobserver, caches, linkers


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes that one compile job may need at its peak, in GiB."""

    kind: str
    gib: float
    source: str


class StepCostRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The relative cost of steps of this kind, for sources whose path begins with `path`."""

    path: str
    kind: str
    seconds: float
    source: str


class SwitchSourceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sources that are not compiled without this switch: by the beginning of their path, or a kind."""

    variable: str
    path: str = ""
    kind: str = ""
    source: str


class JobserverRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `program` (`version`: PEP 440) that takes jobs from a jobserver, or why that is `off`."""

    source: str
    era: str = ""
    torch: str = ""
    generator: str = ""
    os: str = ""
    program: str = ""
    version: str = ""
    off: str = ""


class CacheRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The measurements of a compiler cache for one language (c++, which includes C, or cuda) on one system.

    `cold` and `warm` are the CPU time of a build that fills it and of one that finds everything, to
    the same build without (0 where it was not measured), `least` the seconds that a hit takes at least. `bad`
    are versions that are not used at all,
    `remote` those that can share their results by a server (PEP 440, "" for none). `because` says
    what is wrong with the bad ones. `clash` are versions that are not used with the toolkits of `cuda`,
    for the reason `clash_because`.
    """

    tool: str
    os: str
    language: str
    source: str
    cold: float = 0.0
    warm: float = 0.0
    least: float = 0.0
    bad: str = ""
    because: str = ""
    remote: str = ""
    clash: str = ""
    cuda: str = ""
    clash_because: str = ""


class LinkerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linker, and the compiler options that select it.

    `tool` is its name among the facts' tools, `command` its program's name where a compiler can find it
    by `-fuse-ld=name`, which the versions of `gcc` and `clang` can be told (PEP 440). `library` and
    `debug` are its wall time to that of GNU ld (0 where it was not measured): linking libtorch_cpu.so, and
    100 objects with debug information. `mark` is what it leaves in what it links, `asked` why it
    is taken only where it is asked for; `refused`, which no file says, why it does not link here.
    """

    name: str
    os: str
    tool: str
    source: str
    command: str = ""
    gcc: str = ""
    clang: str = ""
    library: float = 0.0
    debug: float = 0.0
    mark: str = ""
    asked: str = ""
    refused: str = ""
    package: str = ""


# ---------------- rows for the doctor


class OptionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of build options that PyTorch passes on by a pattern, so that no variable row has them."""

    names: tuple[str, ...]
    source: str


# ---------------- secrets in what is handed on


class SecretNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words in the names of variables, keys and flags that make their values secrets, or `harmless`.

    `where` they stand in a name; data/secrets.toml says how a name is cut.
    """

    words: tuple[str, ...]
    where: Literal["anywhere", "last", "end", "whole", "first of key", "behind key"]
    harmless: bool = False
    samples: tuple[str, ...] = ()
    near: tuple[str, ...] = ()


class SecretFormRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a secret: a pattern of `re` (`flags`: its letters), and the replacement.

    One that is `about` a person goes only where a text is handed on. In `samples` {S} is a secret.
    """

    id: str
    what: str
    pattern: str
    source: str
    instead: str = "REDACTED"
    flags: Literal["", "i", "m"] = ""
    about: Literal["secret", "person"] = "secret"
    samples: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
