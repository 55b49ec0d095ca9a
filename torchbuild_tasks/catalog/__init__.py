"""What is known and changes with releases: rows of `data/*.toml` in frozen dataclasses.

Everything that changes with a PyTorch release is a row, read by `Row(**item)`: an unknown
key is an error that names file and row. A row applies by fixed columns only (`era`, `torch`,
`os`, `mode`); there is no expression language, an "or" is two rows. Constant package data,
so a leaf like model.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from typing import Any, TypeVar

from torchbuild_tasks.catalog.companions import CompanionReleaseRow, CompanionRow
from torchbuild_tasks.catalog.cuda import (
    ArchRow,
    BoardRow,
    CudaDriverRow,
    CudaRow,
    CudaTorchRow,
    FamilyRow,
    GpuRow,
    JetpackRow,
    PartRow,
    PatchRow,
)
from torchbuild_tasks.catalog.doctor import ManagerRow, OptionRow, WantRow
from torchbuild_tasks.catalog.failures import FailureRow, PackageRow
from torchbuild_tasks.catalog.libraries import LibraryRow
from torchbuild_tasks.catalog.rows import (
    BackportRow,
    CharacterRow,
    CheckRow,
    EntryRow,
    FrontEndRow,
    GateRow,
    HelperRow,
    InputRow,
    LeftOutRow,
    MsvcRow,
    OutputRow,
    PresetRow,
    SubmoduleRow,
    SwitchRow,
    TorchRow,
    VariableRow,
    make_row,
)
from torchbuild_tasks.catalog.speed import (
    CacheRow,
    InstallerRow,
    JobserverRow,
    LinkerRow,
    MemoryRow,
)
from torchbuild_tasks.values import replace

R = TypeVar("R")
GIB = 1 << 30

__all__ = [
    "ArchRow",
    "BackportRow",
    "BoardRow",
    "CacheRow",
    "Catalog",
    "CharacterRow",
    "CheckRow",
    "CompanionReleaseRow",
    "CompanionRow",
    "CudaDriverRow",
    "CudaRow",
    "CudaTorchRow",
    "EntryRow",
    "FailureRow",
    "FamilyRow",
    "FrontEndRow",
    "GIB",
    "GpuRow",
    "HelperRow",
    "InputRow",
    "JobserverRow",
    "InstallerRow",
    "JetpackRow",
    "LibraryRow",
    "LinkerRow",
    "ManagerRow",
    "MemoryRow",
    "MsvcRow",
    "OptionRow",
    "OutputRow",
    "PackageRow",
    "PartRow",
    "PatchRow",
    "PresetRow",
    "SubmoduleRow",
    "SwitchRow",
    "TorchRow",
    "VariableRow",
    "WantRow",
    "load_catalog",
    "make_row",
]


class Catalog:
    """All rows. A table is read when it is first asked for: a CPU build never reads those of CUDA.

    Raises:
        TypeError: when a table is asked for, a row of it has an unknown or a missing column; the
            text names file and row.
    """

    torch: tuple[TorchRow, ...]
    entry: tuple[EntryRow, ...]
    preset: tuple[PresetRow, ...]
    variable: tuple[VariableRow, ...]
    input: tuple[InputRow, ...]
    check: tuple[CheckRow, ...]
    front_end: tuple[FrontEndRow, ...]
    memory: tuple[MemoryRow, ...]
    jobserver: tuple[JobserverRow, ...]
    output: tuple[OutputRow, ...]
    submodule: tuple[SubmoduleRow, ...]
    backport: tuple[BackportRow, ...]
    gate: tuple[GateRow, ...]
    left_out: tuple[LeftOutRow, ...]
    character: tuple[CharacterRow, ...]
    helper: tuple[HelperRow, ...]
    msvc: tuple[MsvcRow, ...]
    cuda: tuple[CudaRow, ...]
    cuda_driver: tuple[CudaDriverRow, ...]
    cuda_torch: tuple[CudaTorchRow, ...]
    gpu: tuple[GpuRow, ...]
    family: tuple[FamilyRow, ...]
    arch: tuple[ArchRow, ...]
    board: tuple[BoardRow, ...]
    jetpack: tuple[JetpackRow, ...]
    patch: tuple[PatchRow, ...]
    part: tuple[PartRow, ...]
    cache: tuple[CacheRow, ...]
    linker: tuple[LinkerRow, ...]
    switch: tuple[SwitchRow, ...]
    installer: tuple[InstallerRow, ...]
    failure: tuple[FailureRow, ...]
    package: tuple[PackageRow, ...]
    companion: tuple[CompanionRow, ...]
    companion_release: tuple[CompanionReleaseRow, ...]
    option: tuple[OptionRow, ...]
    manager: tuple[ManagerRow, ...]
    want: tuple[WantRow, ...]
    library: tuple[LibraryRow, ...]

    def __init__(self, **tables: tuple[Any, ...]) -> None:
        """Tables that are given here are not read."""
        self.__dict__.update(tables)

    def __getattr__(self, table: str) -> tuple[Any, ...]:
        """Read a table, once."""
        if table not in TABLES:
            raise AttributeError(table)
        rows = self.__dict__[table] = _table(table)
        return rows


TABLES: Mapping[str, tuple[str, type[Any]]] = {
    "torch": ("torch.toml", TorchRow),
    "entry": ("entries.toml", EntryRow),
    "preset": ("presets.toml", PresetRow),
    "variable": ("variables.toml", VariableRow),
    "input": ("inputs.toml", InputRow),
    "check": ("checks.toml", CheckRow),
    "front_end": ("front_end.toml", FrontEndRow),
    "memory": ("memory.toml", MemoryRow),
    "jobserver": ("jobserver.toml", JobserverRow),
    "output": ("outputs.toml", OutputRow),
    "submodule": ("submodules.toml", SubmoduleRow),
    "backport": ("backports.toml", BackportRow),
    "gate": ("gates.toml", GateRow),
    "left_out": ("gates.toml", LeftOutRow),
    "character": ("characters.toml", CharacterRow),
    "helper": ("helpers.toml", HelperRow),
    "msvc": ("msvc.toml", MsvcRow),
    "cuda": ("cuda.toml", CudaRow),
    "cuda_driver": ("cuda.toml", CudaDriverRow),
    "cuda_torch": ("cuda.toml", CudaTorchRow),
    "gpu": ("gpus.toml", GpuRow),
    "family": ("archs.toml", FamilyRow),
    "arch": ("archs.toml", ArchRow),
    "board": ("jetson.toml", BoardRow),
    "jetpack": ("jetson.toml", JetpackRow),
    "patch": ("patches.toml", PatchRow),
    "part": ("toolkits.toml", PartRow),
    "cache": ("caches.toml", CacheRow),
    "switch": ("presets.toml", SwitchRow),
    "linker": ("linkers.toml", LinkerRow),
    "installer": ("linkers.toml", InstallerRow),
    "failure": ("failures/{}.toml", FailureRow),
    "package": ("packages.toml", PackageRow),
    "companion": ("companions.toml", CompanionRow),
    "companion_release": ("companions.toml", CompanionReleaseRow),
    "manager": ("packages.toml", ManagerRow),
    "want": ("packages.toml", WantRow),
    "option": ("doctor.toml", OptionRow),
    "library": ("libraries.toml", LibraryRow),
}


# The files of the failure rows, one for each phase of a build.
PHASES = ("checkout", "python", "configure", "compile", "link", "install", "import", "runtime")


@functools.cache
def load_catalog() -> Catalog:
    """The rows of `data/`, the same value at every call."""
    return Catalog()


def _table(table: str) -> tuple[Any, ...]:
    if table == "part":
        from torchbuild_tasks.catalog.parts import part_rows  # for toolkits of NVIDIA's wheels only

        return part_rows(_table_file("toolkits.toml"))
    file, kind = TABLES[table]
    if table == "failure":
        return tuple(row for phase in PHASES for row in _rows(file.format(phase), kind, table))
    rows = _rows(file, kind, table)
    if table != "patch":
        return rows
    # `core` reads no files, so a patch's row carries the text of its diff.
    return tuple(replace(row, text=_text(f"patches/{row.diff}")) for row in rows)


def _text(file: str) -> str:
    return importlib.resources.files("torchbuild_tasks.data").joinpath(file).read_text("utf-8")


@functools.cache
def _table_file(file: str) -> Mapping[str, Any]:
    import tomllib

    return tomllib.loads(_text(file))


def _rows(file: str, kind: type[R], table: str) -> tuple[R, ...]:
    return tuple(
        make_row(kind, item, f"data/{file}, [[{table}]] row {number}")
        for number, item in enumerate(_table_file(file)[table], start=1)
    )
