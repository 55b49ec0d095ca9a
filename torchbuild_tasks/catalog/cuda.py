"""The rows about CUDA: toolkits, drivers, GPUs, boards, parts of toolkits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec

from torchbuild_tasks.catalog.rows import Unpack
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.values import replace


class CudaRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One toolkit series: its architectures, its host compilers, and the driver that it needs.

    `archs` are compute capabilities; `deprecated` ones still compile, with a warning. `gcc`
    and `clang` are the newest majors taken; MSVC has rows of its own (`MsvcRow`). `gcc_works` is the newest
    release ("10", "11.2.0") where the header takes a GCC whose C++ library its front end cannot read.
    The drivers are those that the release came with ("" where not known).
    """

    version: str
    archs: tuple[str, ...]
    gcc: int
    clang: int
    source: str
    gcc_works: str = ""
    deprecated: tuple[str, ...] = ()
    driver_linux: str = ""
    driver_windows: str = ""
    note: str = ""


class CudaDriverRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The oldest driver that runs programs of a whole major release (minor-version compatibility)."""

    cuda: str
    linux: str
    windows: str
    source: str


class CudaTorchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The CUDA toolkits that a torch series builds with (`cuda`, `torch`: PEP 440), and cuDNN's versions.

    A toolkit outside of `cuda` is refused where `refuse` is true (the build stops by itself),
    else warned about. `best` is the series that upstream builds its own binaries with, `built` are all of
    those. `os` limits the row to linux or windows.
    """

    torch: str
    cuda: str
    source: str
    os: str = ""
    cudnn: str = ""
    best: str = ""
    built: tuple[str, ...] = ()
    refuse: bool = False
    because: str = ""


class CudaLibcRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Toolkits (`cuda`) whose headers declare `function` differently from the C library (`glibc`).

    Both are PEP 440; a toolkit whose header was corrected is none of them.
    """

    glibc: str
    cuda: str
    function: str
    because: str
    source: str


class CudnnRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The CUDA toolkits that NVIDIA made these versions of cuDNN for (both PEP 440).

    `oldest` and `newest` are the compute capabilities that they hold code for ("" where not known or, from
    9.0 on, where newer GPUs run it as well).
    """

    cudnn: str
    cuda: str
    source: str
    oldest: str = ""
    newest: str = ""


class DriverBranchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last driver branch for compute capabilities below `below`; branch `without` ignores the GPU."""

    below: str
    last: str
    without: str
    source: str


class CudaOffRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A switch of a CUDA build that is off for torch versions of `torch` unless requested."""

    variable: str
    torch: str
    because: str
    source: str


class CudaWheelRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The oldest compute capability that upstream's own binaries for torch versions of `torch` serve."""

    torch: str
    oldest: str
    because: str
    source: str


class GpuRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chip: its compute capability, and its PCI device ids as hexadecimal ranges ("2203-2238").

    `datacenter` ids are those of cards for servers, on which forward compatibility works.
    """

    chip: str
    capability: str
    ids: tuple[str, ...] = ()
    datacenter: tuple[str, ...] = ()
    source: str = ""


class GpuNameRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The names of products of a compute capability (patterns); the first row that fits counts."""

    capability: str
    names: tuple[str, ...]
    source: str = ""


class FamilyRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name for architectures in TORCH_CUDA_ARCH_LIST, as torch versions of `torch` read it.

    `archs` is what the build itself makes of it (its CMake files), `ptx` what "+PTX" after the
    name adds to that; `arch` is the processor that the row is for, "" for all.
    """

    name: str
    archs: str
    ptx: str = ""
    torch: str = ""
    arch: str = ""
    source: str = ""


class ArchNumberRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most architectures with which libtorch_cuda of `torch` can be linked, for toolkits of `cuda`.

    `off` is the switch that must be off for the row to count, "" for none: it splits the library.
    """

    most: int
    torch: str
    cuda: str
    source: str
    os: str = ""
    off: str = ""


class ArchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A compute capability: the torch versions that support it, and its name before or after a rename.

    `torch` are those whose extensions take it, `build` those whose own build can read it ("" for all).
    `cuda` limits the row to toolkits; `renamed` is the capability that those use instead.
    """

    capability: str
    torch: str
    source: str
    build: str = ""
    cuda: str = ""
    renamed: str = ""
    note: str = ""


class BoardRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Jetson board, or any board with its chip (the last row of the chip).

    `compatible` are patterns (fnmatch) of the names in the device tree, `models` parts of its model's
    text; `capability` is that of the chip. `launch_bounds` says that its registers do not
    suffice for blocks of 1024 threads, `sbsa` that it runs NVIDIA's software for Arm servers (the
    wheels, NCCL); older boards have packages of their own.
    """

    name: str
    compatible: tuple[str, ...]
    capability: str
    source: str
    models: tuple[str, ...] = ()
    launch_bounds: bool = False
    sbsa: bool = False
    note: str = ""


class JetpackRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JetPack release: its L4T (PEP 440 on "35.4.1"), the CUDA it carries, and the boards it runs on.

    `newer_cuda` says whether later toolkits run on it with NVIDIA's package cuda-compat, `guessed` that its
    CUDA is only that of the releases around it.
    """

    name: str
    l4t: str
    cuda: str
    boards: tuple[str, ...]
    source: str
    newer_cuda: bool = False
    guessed: bool = False


class FlagRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of CXXFLAGS without which these releases of a compiler do not compile these torches.

    Without `flags` it is only doubted that they do, and `fix` says what to do then. Without one of the
    switches `off`, or where one of `on` is not set, it does not come up; nor with
    other `binutils` than these. With `older_first` an older compiler that is here is taken before.
    """

    compiler: str
    fits: str
    torch: str
    os: str = ""
    arch: str = ""
    distributions: tuple[str, ...] = ()
    off: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    binutils: str = ""
    flags: tuple[str, ...] = ()
    because: str
    fix: str = ""
    source: str
    older_first: bool = False


class PatchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A patch of the source for some machines; `diff` is a file of `data/patches/`, `text` its content.

    It is for torch versions of `torch`, on `os` and `arch`, where `needs` says: launch-bounds
    (boards whose registers do not suffice for 1024 threads). One `of` a helper that is built from source is
    for `versions` of that, with the CUDA versions of `cuda`.
    """

    id: str
    diff: str
    because: str
    source: str
    torch: str = ""
    of: str = ""
    versions: str = ""
    cuda: str = ""
    os: str = ""
    arch: str = ""
    needs: Literal["", "launch-bounds"] = ""
    text: str = ""


class PartRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of the toolkit of `cuda`: a wheel by `project` and `version`, or a file by `urls`.

    `cuda` is the release ("12.4.1"), or "12" for a part that fits all of them. `needed` is
    compile (nvcc and what every compilation needs) or torch (libraries that PyTorch links);
    `torch` limits it to versions of torch. `folder` is the folder inside the archive whose
    content belongs into the toolkit, `holds` are paths inside the archive.
    """

    cuda: str
    name: str
    version: str
    needed: str
    folder: str
    source: str
    project: str = ""
    tag: str = ""
    os: str = ""
    arch: str = ""
    torch: str = ""
    urls: tuple[str, ...] = ()
    unpack: Unpack = "zip"
    sha256: str = ""
    size: int = 0
    holds: tuple[str, ...] = ()


# ---------------- the parts of toolkits: their kind in all releases of a major, and their files in each


# NVIDIA's archives: a folder for each component and machine, and one pattern of names.
REDIST: Final = "https://developer.download.nvidia.com/compute/cuda/redist"


class PartKindRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part in all releases of the major `cuda`: wheels of `project`, or NVIDIA's `archive`.

    `needed` is compile (nvcc and what every compilation needs) or torch (libraries that PyTorch
    links). `folder` is the folder inside a wheel whose content belongs into the toolkit, `holds`
    are paths in it that must be there (`holds_windows` where others are on Windows).
    """

    cuda: str
    name: str
    needed: str
    project: str = ""
    folder: str = ""
    archive: str = ""
    holds: tuple[str, ...]
    holds_windows: tuple[str, ...] = ()


class ToolkitRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of the release `cuda` ("12.4.1"), or "12" for parts that fit all of that major.

    Each has a name, a version and files (see `toolkits.toml`); `source` is theirs where they name none.
    """

    cuda: str
    parts: tuple[_Part, ...]
    source: str = ""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of a release; empty fields have the values of its kind, or of the release.

    `project` makes it a wheel in a release whose other ones have an archive.
    """

    name: str
    version: str
    files: tuple[_File, ...]
    torch: str = ""
    project: str = ""
    folder: str = ""
    source: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a part for one machine: a wheel's `tag`, or the folder that NVIDIA has archives in."""

    tag: str
    sha256: str
    size: int = 0


def part_rows(kinds: Iterable[PartKindRow], toolkits: Iterable[ToolkitRow]) -> tuple[PartRow, ...]:
    """Return one row for each file of each part, in the order of the file.

    Raises:
        UsageError: a part is of no kind; the text says where.
    """
    known = {(kind.cuda, kind.name): kind for kind in kinds}
    return tuple(row for toolkit in toolkits for row in _rows_of(known, toolkit))


def _rows_of(kinds: Mapping[tuple[str, str], PartKindRow], toolkit: ToolkitRow) -> Iterator[PartRow]:
    for number, part in enumerate(toolkit.parts, start=1):
        kind = kinds.get((toolkit.cuda.partition(".")[0], part.name))
        if kind is None:
            place = f"data/toolkits.toml, CUDA {toolkit.cuda}, part {number}"
            raise UsageError(f"{place}: no part_kind is called {part.name}")
        if part.project:
            kind = replace(kind, project=part.project, archive="")
        for file in part.files:
            yield _row(toolkit, kind, part, file)


def _row(toolkit: ToolkitRow, kind: PartKindRow, part: _Part, file: _File) -> PartRow:
    os = "windows" if file.tag.startswith("win") else "linux"
    arch = "aarch64" if file.tag.endswith(("aarch64", "sbsa")) else "x86_64"
    unpack: Unpack = "tar.xz" if kind.archive and os == "linux" else "zip"
    folder = part.folder or kind.folder
    urls = tuple[str, ...]()
    if kind.archive:
        folder = f"{kind.archive}-{file.tag}-{part.version}-archive"
        urls = (f"{REDIST}/{kind.archive}/{file.tag}/{folder}.{unpack}",)
    holds = kind.holds_windows if os == "windows" and kind.holds_windows else kind.holds
    return PartRow(
        cuda=toolkit.cuda,
        name=part.name,
        version=part.version,
        needed=kind.needed,
        folder=folder,
        source=part.source or toolkit.source,
        project=kind.project,
        tag=file.tag if kind.project else "",
        os=os,
        arch=arch,
        torch=part.torch,
        urls=urls,
        unpack=unpack,
        sha256=file.sha256,
        size=file.size,
        holds=tuple(f"{folder}/{path}" for path in holds),
    )
