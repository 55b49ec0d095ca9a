"""The rows: what is known about versions, presets, variables, entries and checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from torchbuild_tasks.model import Need

Unpack = Literal["7z", "zip", "tar.bz2", "tar.xz", "conda", "file"]


class TorchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One release series, `latest` its last release; `requires` are PEP 508 requirements of its build."""

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
    triton: str = ""
    note: str = ""


class EntryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a build is started; `{python}` stands for the interpreter that gets torch."""

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
    """A value of a build variable that a preset may set, what that does, and what it was measured to save.

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

    `needs` says what an existing build tree needs when it changes. `refused` gives the
    reason why it must not be in the environment of a build.
    """

    name: str
    era: str = ""
    torch: str = ""
    needs: Need = "reconfigure"
    refused: str = ""
    source: str = ""


class InputRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An input of a build other than a variable, and what a change of it needs."""

    name: str
    needs: Need
    because: str


class FrontEndRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or folder that ties a build to the Python front end; the roles stand in front_end.toml."""

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
    is built beside torch.
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
    """A pattern of files that a build of `era` writes inside the checkout."""

    pattern: str
    what: str
    era: str = ""


class SubmoduleRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submodule that a build does without when `unless` is off (`default` when not set)."""

    path: str
    unless: str
    default: str
    source: str


class BackportRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that the Pythons of `python` have built in, so that it is never installed there."""

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


class LeftOutRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A package that checkouts ask for and neither a build nor a test needs."""

    name: str
    because: str


class CharacterRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A character that the checkout's path must not hold."""

    character: str
    breaks: str
    os: str = ""


class MsvcRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on MSVC toolsets: the CUDA versions that take one, or why one is `refused`."""

    toolset: str
    source: str
    name: str = ""
    cuda: str = ""
    torch: str = ""
    visual_studio: str = ""
    refused: str = ""
    install: str = ""


class HelperRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One artifact of one helper; of several that fit, the newest `version` is taken.

    `cuda` is a CUDA version in the digits that file names carry ("124"), `configuration`
    release or debug, where only such builds can use it. `needed` says which builds want it
    (build: every one; cuda; distributed; asked: only with --helper), `unless` names
    variables with which a user says to have it already. In `set`, `prepend` and `check`
    (a command that proves it) `{folder}` is where it lies. `holds` are paths inside that
    must be there. `requires` (PEP 508) goes into the Python that gets torch: what torch
    needs of the helper when it is imported.
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


def row_place(file: str, table: str, number: int, item: Mapping[str, Any]) -> str:
    """Return how an error calls a row: by file, table, number from 1, and its id, name or first column."""
    own = item.get("id") or item.get("name") or next(iter(item.values()), "")
    return f"{file}, [[{table}]] row {number}" + (f" ({own})" if own else "")
