"""The parts of CUDA toolkits: what a part is in all releases of a major, and its files in each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from torchbuild_tasks.catalog.cuda import PartRow
from torchbuild_tasks.catalog.rows import Unpack, row_place
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.values import from_json

R = TypeVar("R")
FILE: Final = "data/toolkits.toml"
# NVIDIA's archives: a folder for each component and machine, and one pattern of names.
REDIST: Final = "https://developer.download.nvidia.com/compute/cuda/redist"


class _Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part is in all releases of the major `cuda`: wheels of `project`, or NVIDIA's `archive`.

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


class _Toolkit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of the release `cuda` ("12.4.1"), or "12" for parts that fit all of that major.

    Each has a name, a version and files (see `toolkits.toml`); `source` is theirs where they name none.
    """

    cuda: str
    parts: tuple[_Part, ...]
    source: str = ""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of a release; what is empty is as in its kind, or as in the release."""

    name: str
    version: str
    files: tuple[_File, ...]
    torch: str = ""
    folder: str = ""
    source: str = ""


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file of a part for one machine: a wheel's `tag`, or the folder that NVIDIA has archives in."""

    tag: str
    sha256: str
    size: int = 0


def part_rows(tables: Mapping[str, Any]) -> tuple[PartRow, ...]:
    """One row for each file of each part, in the order of the file.

    Args:
        tables: the content of `toolkits.toml`.

    Raises:
        UsageError: a column is unknown or missing, or a part is of no kind; the text says where.
    """
    kinds = _rows(_Kind, tables, "part_kind")
    toolkits = _rows(_Toolkit, tables, "toolkit")
    known = {(kind.cuda, kind.name): kind for kind in kinds}
    return tuple(row for toolkit in toolkits for row in _rows_of(known, toolkit))


def _rows(kind: type[R], tables: Mapping[str, Any], table: str) -> list[R]:
    items = enumerate(tables[table], start=1)
    return [from_json(kind, item, row_place(FILE, table, n, item)) for n, item in items]


def _rows_of(kinds: Mapping[tuple[str, str], _Kind], toolkit: _Toolkit) -> Iterator[PartRow]:
    for number, part in enumerate(toolkit.parts, start=1):
        kind = kinds.get((toolkit.cuda.partition(".")[0], part.name))
        if kind is None:
            place = f"{FILE}, CUDA {toolkit.cuda}, part {number}"
            raise UsageError(f"{place}: no part_kind is called {part.name}")
        for file in part.files:
            yield _row(toolkit, kind, part, file)


def _row(toolkit: _Toolkit, kind: _Kind, part: _Part, file: _File) -> PartRow:
    os = "windows" if file.tag.startswith("win") else "linux"
    arch = "aarch64" if file.tag.endswith(("aarch64", "sbsa")) else "x86_64"
    unpack: Unpack = "tar.xz" if kind.archive and os == "linux" else "zip"
    folder, urls = part.folder or kind.folder, tuple[str, ...]()
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
