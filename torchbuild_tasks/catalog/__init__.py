"""The rows of `data/*.toml` as frozen values: the knowledge that changes with releases.

Everything that changes with a PyTorch release is a row: an unknown or missing column and a value of the
wrong type are errors that name file, row and column. A row applies by fixed columns only (`era`, `torch`,
`os`, `mode`); there is no expression language, an "or" is two rows. Constant package data, so a leaf like
model. A new table is a class of its rows and one line in `Catalog`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from torchbuild_tasks.catalog import cuda as of_cuda  # `Catalog.cuda` is a table
from torchbuild_tasks.catalog import diagnosis, packaging, rows, source
from torchbuild_tasks.values import from_json, replace

R = TypeVar("R")
# Not importlib.resources: it imports tempfile, and with that random, for folders inside archives.
_DATA: Final = Path(__file__).resolve().parents[1] / "data"
GIB = 1 << 30


# The files of the failure rows, one for each phase of a build.
PHASES: Final = ("checkout", "python", "configure", "compile", "link", "install", "import", "runtime")


class Table(Generic[R]):
    """One table of the catalog: a descriptor that reads its rows at the first access.

    Args:
        kind: the class of its rows.
        files: where its rows stand, in `data/`, as `[[name of the attribute]]`.
        build: builds the rows where they are more than what stands in the files.
    """

    def __init__(self, kind: type[R], *files: str, build: Callable[[], tuple[R, ...]] | None = None) -> None:
        self.kind = kind
        self.files = files
        self.build = build
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, catalog: Catalog, owner: type) -> tuple[R, ...]:
        if self.build is not None:
            found = self.build()
        else:
            found = tuple(row for file in self.files for row in _rows(self.kind, file, self.name))
        catalog.__dict__[self.name] = found  # an instance attribute, which hides this descriptor from now on
        return found


def _parts() -> tuple[of_cuda.PartRow, ...]:
    file = "toolkits.toml"
    kinds = _rows(of_cuda.PartKindRow, file, "part_kind")
    return of_cuda.part_rows(kinds, _rows(of_cuda.ToolkitRow, file, "toolkit"))


def _with_diffs() -> tuple[of_cuda.PatchRow, ...]:
    """Return the patches with the text of their diffs, because decisions read no files."""
    patches = _rows(of_cuda.PatchRow, "patches.toml", "patch")
    return tuple(replace(row, text=_text(f"patches/{row.diff}")) for row in patches)


def _table(file: str, columns: int) -> list[list[str]]:
    """Return the lines of a table with tabs, each with so many columns; one with # is a remark."""
    lines = (line.split("\t") for line in _text(file).splitlines() if not line.startswith("#"))
    return [[*line, *[""] * (columns - len(line))] for line in lines]


def _packaged() -> tuple[diagnosis.ComponentRow, ...]:
    """Return the parts that are known only as a package of Debian; others have the same .pc file."""
    return tuple(
        diagnosis.ComponentRow(
            name=package,
            headers=tuple(each if each.endswith("/") else f"{each}$" for each in headers.split()),
            libs=tuple(f"{each}$" for each in libs.split()),
            packages=tuple(f"{each}$" for each in (*cmake.split(), *pc.split())),
            tools=tuple(f"{each}$" for each in programs.split()),
            names={"apt": package}
            | ({each: f"'pkgconfig({pc.split()[0]})'" for each in ("dnf", "zypper")} if pc else {}),
        )
        for package, pc, headers, libs, cmake, programs in _table("packages_of.tsv", 6)
    )


def _torch_names() -> tuple[diagnosis.TorchNameRow, ...]:
    return tuple(
        diagnosis.TorchNameRow(name=name, first=first, last=last, header=header)
        for name, first, last, header in _table("torch_names.tsv", 4)
    )


class Catalog:
    """All rows. A table is read at the first access: a CPU build never reads those of CUDA.

    Raises:
        UsageError: a row of an accessed table is wrong; the message names file, row and column.
    """

    torch = Table(rows.TorchRow, "torch.toml")
    platform = Table(packaging.PlatformRow, "torch.toml")
    entry = Table(rows.EntryRow, "entries.toml")
    preset = Table(rows.PresetRow, "presets.toml")
    variable = Table(rows.VariableRow, "variables.toml")
    reader = Table(rows.ReaderRow, "readers.toml")
    renamed = Table(rows.RenamedRow, "readers.toml")
    demand = Table(rows.DemandRow, "needs.toml")
    dated = Table(rows.DatedRow, "readers.toml")
    clash = Table(rows.ClashRow, "needs.toml")
    overruled = Table(rows.OverruledRow, "readers.toml")
    need = Table(rows.NeedRow, "needs.toml")
    blas = Table(rows.BlasRow, "blas.toml")
    linked = Table(rows.LinkedRow, "linked.toml")
    cmake = Table(rows.CMakeRow, "cmake.toml")
    input = Table(rows.InputRow, "inputs.toml")
    check = Table(rows.CheckRow, "checks.toml")
    front_end = Table(rows.FrontEndRow, "front_end.toml")
    memory = Table(rows.MemoryRow, "memory.toml")
    step_cost = Table(rows.StepCostRow, "step_costs.toml")
    switch_source = Table(rows.SwitchSourceRow, "switch_sources.toml")
    jobserver = Table(rows.JobserverRow, "jobserver.toml")
    output = Table(rows.OutputRow, "outputs.toml")
    submodule = Table(source.SubmoduleRow, "submodules.toml")
    pin = Table(source.PinRow, "pins.toml")
    backport = Table(rows.BackportRow, "backports.toml")
    gate = Table(rows.GateRow, "gates.toml")
    flag = Table(of_cuda.FlagRow, "flags.toml")
    bring = Table(rows.BringRow, "gates.toml")
    left_out = Table(rows.LeftOutRow, "gates.toml")
    character = Table(rows.CharacterRow, "characters.toml")
    helper = Table(rows.HelperRow, "helpers.toml")
    helper_source = Table(source.HelperSourceRow, "recipes.toml")
    recipe = Table(source.RecipeRow, "recipes.toml")
    msvc = Table(rows.MsvcRow, "msvc.toml")
    cuda = Table(of_cuda.CudaRow, "cuda.toml")
    cuda_driver = Table(of_cuda.CudaDriverRow, "cuda.toml")
    cuda_libc = Table(of_cuda.CudaLibcRow, "cuda.toml")
    cudnn = Table(of_cuda.CudnnRow, "cuda.toml")
    driver_branch = Table(of_cuda.DriverBranchRow, "cuda.toml")
    cuda_off = Table(of_cuda.CudaOffRow, "cuda.toml")
    cuda_wheel = Table(of_cuda.CudaWheelRow, "cuda.toml")
    cuda_torch = Table(of_cuda.CudaTorchRow, "cuda.toml")
    gpu = Table(of_cuda.GpuRow, "gpus.toml")
    gpu_name = Table(of_cuda.GpuNameRow, "gpus.toml")
    family = Table(of_cuda.FamilyRow, "archs.toml")
    arch = Table(of_cuda.ArchRow, "archs.toml")
    arch_number = Table(of_cuda.ArchNumberRow, "archs.toml")
    board = Table(of_cuda.BoardRow, "jetson.toml")
    jetpack = Table(of_cuda.JetpackRow, "jetson.toml")
    patch = Table(of_cuda.PatchRow, "patches.toml", build=_with_diffs)
    part = Table(of_cuda.PartRow, "toolkits.toml", build=_parts)
    cache = Table(rows.CacheRow, "caches.toml")
    linker = Table(rows.LinkerRow, "linkers.toml")
    switch = Table(rows.SwitchRow, "presets.toml")
    installer = Table(packaging.InstallerRow, "linkers.toml")
    secret_name = Table(rows.SecretNameRow, "secrets.toml")
    secret_form = Table(rows.SecretFormRow, "secrets.toml")
    failure = Table(diagnosis.FailureRow, *(f"failures/{phase}.toml" for phase in PHASES))
    kind = Table(diagnosis.KindRow, "kinds.toml")
    shape = Table(diagnosis.ShapeRow, "kinds.toml")
    message = Table(diagnosis.MessageRow, "messages.toml")
    component = Table(diagnosis.ComponentRow, "components.toml")
    packaged = Table(diagnosis.ComponentRow, "components.toml", build=_packaged)
    gone = Table(diagnosis.GoneRow, "gone.toml")
    stands_for = Table(diagnosis.StandsForRow, "gone.toml")
    sign = Table(diagnosis.SignRow, "signs.toml")
    premise = Table(diagnosis.PremiseRow, "premises.toml")
    system_word = Table(diagnosis.SystemWordRow, "system_words.toml")
    own_word = Table(diagnosis.OwnWordRow, "system_words.toml")
    fetcher = Table(diagnosis.FetcherRow, "fetchers.toml")
    compiler_option = Table(diagnosis.CompilerOptionRow, "options.toml")
    std_name = Table(diagnosis.StdNameRow, "std_names.toml")
    torch_name = Table(diagnosis.TorchNameRow, "components.toml", build=_torch_names)
    package = Table(packaging.PackageRow, "packages.toml")
    companion = Table(source.CompanionRow, "companions.toml")
    builder_setting = Table(source.BuilderSettingRow, "companions.toml")
    companion_release = Table(source.CompanionReleaseRow, "companions.toml")
    option = Table(rows.OptionRow, "doctor.toml")
    manager = Table(packaging.ManagerRow, "packages.toml")
    want = Table(packaging.WantRow, "packages.toml")
    library = Table(packaging.LibraryRow, "libraries.toml")
    wheel_input = Table(packaging.WheelInputRow, "wheel_inputs.toml")
    shared = Table(packaging.SharedRow, "packaging.toml")
    rpath = Table(packaging.RpathRow, "packaging.toml")
    compress = Table(packaging.CompressRow, "packaging.toml")
    index_limit = Table(packaging.IndexLimitRow, "packaging.toml")
    smaller = Table(packaging.SmallerRow, "packaging.toml")
    conda_name = Table(packaging.CondaNameRow, "packaging.toml")
    base = Table(packaging.BaseRow, "container.toml")
    engine = Table(packaging.EngineRow, "container.toml")
    licence = Table(packaging.LicenceRow, "licences.toml")

    def __init__(self, **tables: tuple[Any, ...]) -> None:
        """Set tables that are then not read."""
        self.__dict__.update(tables)


TABLES: Final = tuple(name for name, value in vars(Catalog).items() if isinstance(value, Table))


@functools.cache
def load_catalog() -> Catalog:
    """Return the rows of `data/`, the same value at every call."""
    return Catalog()


def _text(file: str) -> str:
    return (_DATA / file).read_text("utf-8")


@functools.cache
def _content(file: str) -> Mapping[str, Any]:
    import tomli  # what others wrote is tomllib's, by `parse_toml`

    return tomli.loads(_text(file))


def _rows(kind: type[R], file: str, table: str) -> tuple[R, ...]:
    items = enumerate(_content(file)[table], start=1)
    return tuple(from_json(kind, item, row_place(f"data/{file}", table, n, item)) for n, item in items)


def row_place(file: str, table: str, number: int, item: Mapping[str, Any]) -> str:
    """Return the name of a row for errors: file, table, number from 1, and its id, name or first column."""
    own = item.get("id") or item.get("name") or next(iter(item.values()), "")
    return f"{file}, [[{table}]] row {number}" + (f" ({own})" if own else "")
