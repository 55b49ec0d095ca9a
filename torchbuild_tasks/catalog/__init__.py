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
from typing import Any, Final, Generic, TypeVar, overload

from torchbuild_tasks.catalog.cuda import (
    ArchRow,
    BoardRow,
    CudaDriverRow,
    CudaLibcRow,
    CudaOffRow,
    CudaRow,
    CudaTorchRow,
    CudaWheelRow,
    CudnnRow,
    DriverBranchRow,
    FamilyRow,
    FlagRow,
    GpuNameRow,
    GpuRow,
    JetpackRow,
    PartRow,
    PatchRow,
    part_rows,
)
from torchbuild_tasks.catalog.diagnosis import (
    CompilerOptionRow,
    ComponentRow,
    FailureRow,
    FetcherRow,
    GoneRow,
    KindRow,
    MessageRow,
    ShapeRow,
    SignRow,
    StandsForRow,
    StdNameRow,
    SystemWordRow,
    TorchNameRow,
)
from torchbuild_tasks.catalog.packaging import (
    BaseRow,
    CompressRow,
    CondaNameRow,
    EngineRow,
    IndexLimitRow,
    LicenceRow,
    PlatformRow,
    RpathRow,
    SharedRow,
    SmallerRow,
    WheelInputRow,
)
from torchbuild_tasks.catalog.rows import (
    BackportRow,
    BlasRow,
    BringRow,
    CacheRow,
    CharacterRow,
    CheckRow,
    ClashRow,
    CMakeRow,
    DatedRow,
    DemandRow,
    EntryRow,
    FrontEndRow,
    GateRow,
    HelperRow,
    InputRow,
    InstallerRow,
    JobserverRow,
    LeftOutRow,
    LibraryRow,
    LinkedRow,
    LinkerRow,
    ManagerRow,
    MemoryRow,
    MsvcRow,
    NeedRow,
    OptionRow,
    OutputRow,
    OverruledRow,
    PackageRow,
    PresetRow,
    ReaderRow,
    RenamedRow,
    SecretFormRow,
    SecretNameRow,
    StepCostRow,
    SwitchRow,
    SwitchSourceRow,
    TorchRow,
    VariableRow,
    WantRow,
    row_place,
)
from torchbuild_tasks.catalog.source import (
    CompanionReleaseRow,
    CompanionRow,
    HelperSourceRow,
    PinRow,
    RecipeRow,
    SubmoduleRow,
)
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

    def __init__(
        self,
        kind: type[R],
        *files: str,
        build: Callable[[], tuple[R, ...]] | None = None,
    ) -> None:
        self.kind = kind
        self.files = files
        self.build = build
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, catalog: Catalog, owner: type) -> tuple[R, ...]:
        if self.build is not None:
            rows = self.build()
        else:
            rows = tuple(row for file in self.files for row in _rows(self.kind, file, self.name))
        catalog.__dict__[self.name] = rows  # an instance attribute, which hides this descriptor from now on
        return rows


def _parts() -> tuple[PartRow, ...]:
    return part_rows(_content("toolkits.toml"))


def _with_diffs() -> tuple[PatchRow, ...]:
    """Return the patches with the text of their diffs, because decisions read no files."""
    rows = _rows(PatchRow, "patches.toml", "patch")
    return tuple(replace(row, text=_text(f"patches/{row.diff}")) for row in rows)


def _table(file: str, columns: int) -> list[list[str]]:
    """Return the lines of a table with tabs, each with so many columns; one with # is a remark."""
    lines = (line.split("\t") for line in _text(file).splitlines() if not line.startswith("#"))
    return [[*line, *[""] * (columns - len(line))] for line in lines]


def _packaged() -> tuple[ComponentRow, ...]:
    """Return the parts that are known only as a package of Debian; others have the same .pc file."""
    return tuple(
        ComponentRow(
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


def _torch_names() -> tuple[TorchNameRow, ...]:
    return tuple(
        TorchNameRow(name=name, first=first, last=last) for name, first, last in _table("torch_names.tsv", 3)
    )


class Catalog:
    """All rows. A table is read at the first access: a CPU build never reads those of CUDA.

    Raises:
        UsageError: a row of an accessed table is wrong; the message names file, row and column.
    """

    torch = Table(TorchRow, "torch.toml")
    platform = Table(PlatformRow, "torch.toml")
    entry = Table(EntryRow, "entries.toml")
    preset = Table(PresetRow, "presets.toml")
    variable = Table(VariableRow, "variables.toml")
    reader = Table(ReaderRow, "readers.toml")
    renamed = Table(RenamedRow, "readers.toml")
    demand = Table(DemandRow, "needs.toml")
    dated = Table(DatedRow, "readers.toml")
    clash = Table(ClashRow, "needs.toml")
    overruled = Table(OverruledRow, "readers.toml")
    need = Table(NeedRow, "needs.toml")
    blas = Table(BlasRow, "blas.toml")
    linked = Table(LinkedRow, "linked.toml")
    cmake = Table(CMakeRow, "cmake.toml")
    input = Table(InputRow, "inputs.toml")
    check = Table(CheckRow, "checks.toml")
    front_end = Table(FrontEndRow, "front_end.toml")
    memory = Table(MemoryRow, "memory.toml")
    step_cost = Table(StepCostRow, "step_costs.toml")
    switch_source = Table(SwitchSourceRow, "switch_sources.toml")
    jobserver = Table(JobserverRow, "jobserver.toml")
    output = Table(OutputRow, "outputs.toml")
    submodule = Table(SubmoduleRow, "submodules.toml")
    pin = Table(PinRow, "pins.toml")
    backport = Table(BackportRow, "backports.toml")
    gate = Table(GateRow, "gates.toml")
    flag = Table(FlagRow, "flags.toml")
    bring = Table(BringRow, "gates.toml")
    left_out = Table(LeftOutRow, "gates.toml")
    character = Table(CharacterRow, "characters.toml")
    helper = Table(HelperRow, "helpers.toml")
    helper_source = Table(HelperSourceRow, "recipes.toml")
    recipe = Table(RecipeRow, "recipes.toml")
    msvc = Table(MsvcRow, "msvc.toml")
    cuda = Table(CudaRow, "cuda.toml")
    cuda_driver = Table(CudaDriverRow, "cuda.toml")
    cuda_libc = Table(CudaLibcRow, "cuda.toml")
    cudnn = Table(CudnnRow, "cuda.toml")
    driver_branch = Table(DriverBranchRow, "cuda.toml")
    cuda_off = Table(CudaOffRow, "cuda.toml")
    cuda_wheel = Table(CudaWheelRow, "cuda.toml")
    cuda_torch = Table(CudaTorchRow, "cuda.toml")
    gpu = Table(GpuRow, "gpus.toml")
    gpu_name = Table(GpuNameRow, "gpus.toml")
    family = Table(FamilyRow, "archs.toml")
    arch = Table(ArchRow, "archs.toml")
    board = Table(BoardRow, "jetson.toml")
    jetpack = Table(JetpackRow, "jetson.toml")
    patch = Table(PatchRow, "patches.toml", build=_with_diffs)
    part = Table(PartRow, "toolkits.toml", build=_parts)
    cache = Table(CacheRow, "caches.toml")
    linker = Table(LinkerRow, "linkers.toml")
    switch = Table(SwitchRow, "presets.toml")
    installer = Table(InstallerRow, "linkers.toml")
    secret_name = Table(SecretNameRow, "secrets.toml")
    secret_form = Table(SecretFormRow, "secrets.toml")
    failure = Table(FailureRow, *(f"failures/{phase}.toml" for phase in PHASES))
    kind = Table(KindRow, "kinds.toml")
    shape = Table(ShapeRow, "kinds.toml")
    message = Table(MessageRow, "messages.toml")
    component = Table(ComponentRow, "components.toml")
    packaged = Table(ComponentRow, "components.toml", build=_packaged)
    gone = Table(GoneRow, "gone.toml")
    stands_for = Table(StandsForRow, "gone.toml")
    sign = Table(SignRow, "signs.toml")
    system_word = Table(SystemWordRow, "system_words.toml")
    fetcher = Table(FetcherRow, "fetchers.toml")
    compiler_option = Table(CompilerOptionRow, "options.toml")
    std_name = Table(StdNameRow, "std_names.toml")
    torch_name = Table(TorchNameRow, "components.toml", build=_torch_names)
    package = Table(PackageRow, "packages.toml")
    companion = Table(CompanionRow, "companions.toml")
    companion_release = Table(CompanionReleaseRow, "companions.toml")
    option = Table(OptionRow, "doctor.toml")
    manager = Table(ManagerRow, "packages.toml")
    want = Table(WantRow, "packages.toml")
    library = Table(LibraryRow, "libraries.toml")
    wheel_input = Table(WheelInputRow, "wheel_inputs.toml")
    shared = Table(SharedRow, "packaging.toml")
    rpath = Table(RpathRow, "packaging.toml")
    compress = Table(CompressRow, "packaging.toml")
    index_limit = Table(IndexLimitRow, "packaging.toml")
    smaller = Table(SmallerRow, "packaging.toml")
    conda_name = Table(CondaNameRow, "packaging.toml")
    base = Table(BaseRow, "container.toml")
    engine = Table(EngineRow, "container.toml")
    licence = Table(LicenceRow, "licences.toml")

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
