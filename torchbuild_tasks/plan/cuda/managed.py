"""Toolkits put together from NVIDIA's wheels and archives: their parts and their folders.

Such a toolkit's folder is named after its release, the machine, and a digest of its parts:
another torch may want another cuDNN in it, and then it is another folder.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import PartRow
from torchbuild_tasks.catalog.match import admits, row_version, series
from torchbuild_tasks.model import Artifact, ManagedToolkit
from torchbuild_tasks.plan.artifacts import artifact_of, download_size, in_store
from torchbuild_tasks.plan.question import Question

TOOLKITS = "toolkits"
COMPILE = "compile"


class ManagedChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A toolkit and what it is made of; `problem` says why there is none."""

    toolkit: ManagedToolkit | None = None
    artifacts: tuple[Artifact, ...] = ()
    problem: str = ""


def managed_toolkit(question: Question, version: str) -> ManagedChoice:
    """Return the toolkit of a release for the machine that is planned for.

    The sample gets what compiles a kernel, PyTorch every library that it links, cuDNN, NCCL
    and cuSPARSELt as its version wants them.

    Args:
        version: a series ("13.0") or a release of one ("12.4.1").
    """
    rows = _machine_rows(question)
    releases = sorted({row.cuda for row in rows if "." in row.cuda}, key=row_version)
    release = next((one for one in releases if version in (one, series(one))), None)
    if release is None:
        return ManagedChoice(problem=_none(question, version, releases))
    fitting = [row for row in rows if row.cuda in (release, release.split(".")[0])]
    chosen = _parts(question, fitting)
    artifacts = tuple(
        artifact_of(question, row, part_id(row), f"a part of CUDA {row.cuda}") for row in chosen
    )
    ids = tuple(artifact.id for artifact in artifacts)
    folder = _folder(question, release, ids)
    toolkit = ManagedToolkit(
        folder=folder,
        version=release,
        parts=ids,
        here=any(
            found.managed and folder in (found.path, *found.aliases) for found in question.cuda.toolkits
        ),
        because=f"{len(ids)} parts of CUDA {release} from NVIDIA, "
        f"{download_size(artifacts) or 'of unknown size'}"
        f"{_without(question, fitting, chosen)}",
    )
    return ManagedChoice(toolkit=toolkit, artifacts=artifacts)


def managed_series(question: Question) -> list[str]:
    """Return the series of which there are parts for the machine, ascending."""
    return sorted({series(row.cuda) for row in _machine_rows(question) if "." in row.cuda}, key=row_version)


def part_id(row: PartRow) -> str:
    """Return the permanent id of a part, which is also its folder in the store."""
    if row.project:
        return f"{row.project}-{row.version}-{row.tag}"
    return f"cuda-{row.name}-{row.version}-{row.os}-{row.arch}"


def part_folders(rows: Iterable[PartRow]) -> Mapping[str, str]:
    """Return the folder inside each part whose content belongs into the toolkit, by the part's id."""
    return {part_id(row): row.folder for row in rows}


def _machine_rows(question: Question) -> tuple[PartRow, ...]:
    return _rows_for(question.catalog, question.facts.host.os, question.facts.host.arch)


@functools.lru_cache(maxsize=64)
def _rows_for(catalog: Catalog, os: str, arch: str) -> tuple[PartRow, ...]:
    return tuple(row for row in catalog.part if (row.os, row.arch) == (os, arch))


def _parts(question: Question, rows: list[PartRow]) -> list[PartRow]:
    """Return one row for each part that this build needs."""
    version = question.version or Version(question.row.version)
    if question.facts.tree.sample:
        return [row for row in rows if row.needed == COMPILE]
    return [row for row in rows if not row.torch or admits(row.torch, version)]


def _without(question: Question, fitting: list[PartRow], chosen: list[PartRow]) -> str:
    """Name the parts that exist only for other versions of torch."""
    if question.facts.tree.sample:
        return ""
    lacking = sorted({row.name for row in fitting} - {row.name for row in chosen})
    return f"; for this torch there is no {' and no '.join(lacking)}" if lacking else ""


def _none(question: Question, version: str, releases: list[str]) -> str:
    """Say why there is no toolkit of this version."""
    host = question.facts.host
    if not releases:
        return f"no CUDA toolkit can be put together for {host.os} {host.arch}"
    have = ", ".join(releases)
    return f"no parts are known of CUDA {version or 'without a version'}; there are those of {have}"


def _folder(question: Question, release: str, ids: tuple[str, ...]) -> str:
    host = question.facts.host
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:8]
    kind = f"-{COMPILE}" if question.facts.tree.sample else ""
    name = f"cuda-{release}-{host.os}-{host.arch}{kind}-{digest}"
    return in_store(question, TOOLKITS, name)
