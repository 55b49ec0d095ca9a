"""The torch series of the catalog, each compared with what this machine has: the table of `versions`.

From it comes the torch that is taken where none is named: the newest series that fits.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.rows import TorchRow
from torchbuild_tasks.catalog.source import CompanionReleaseRow
from torchbuild_tasks.features.companions.choose import newest_release
from torchbuild_tasks.model import Facts, Status
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.cuda.toolkit import torch_rows, why_unfit, why_unusable
from torchbuild_tasks.plan.environment import fits
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import choose_toolset
from torchbuild_tasks.values import replace


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """One requirement of a series, and whether this machine meets it; `needs` is the row's own text.

    Only those `needed` for every build count for the status of the series.
    """

    what: str
    needs: str
    status: Status
    because: str
    needed: bool = True


class VersionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One series: its row's values, its companions, and whether this machine fits it.

    `here` marks the series of the checkout that was looked at, `newest_fit` the one to take on this
    machine. `cuda` and `cudnn` are specifiers, `cuda_best` is what upstream's own binaries use, and
    `oldest_gpu` the least compute capability that they serve, where a row says one.
    """

    version: str
    latest: str
    released: str
    python: str
    cxx: int
    gcc: str
    msvc: str
    cmake: str
    cuda: str
    cuda_best: str
    cudnn: str
    torchvision: str
    torchaudio: str
    triton: str
    requires: tuple[str, ...]
    note: str
    source: str
    here: bool
    newest_fit: bool
    status: Status
    because: str
    fits: tuple[Fit, ...]
    oldest_gpu: str = ""


def version_lines(catalog: Catalog, facts: Facts) -> tuple[VersionLine, ...]:
    """Return every series, newest first."""
    newest = newest_fit(catalog, facts)
    return tuple(_line(row, catalog, facts, newest) for row in _sort_rows(catalog))


def newest_fit(catalog: Catalog, facts: Facts) -> TorchRow | None:
    """Return the newest series that fits this machine, else the newest for which that is unknown."""
    ordered = _sort_rows(catalog)
    states = {row.version: _overall(_list_needs(_as_if(row, catalog, facts)))[0] for row in ordered}
    for wanted in ("ok", "unknown"):
        for row in ordered:
            if states[row.version] == wanted:
                return row
    return None


def _sort_rows(catalog: Catalog) -> list[TorchRow]:
    return sorted(catalog.torch, key=lambda row: Version(row.version), reverse=True)


def _as_if(row: TorchRow, catalog: Catalog, facts: Facts) -> Question:
    """Return the question that a checkout of the series' last release would be."""
    tree = replace(facts.tree, version=row.latest)
    return Question(BuildRequest(), replace(facts, tree=tree), catalog)


def _line(row: TorchRow, catalog: Catalog, facts: Facts, newest: TorchRow | None) -> VersionLine:
    question = _as_if(row, catalog, facts)
    checkout = Question(BuildRequest(), facts, catalog).read_version
    parts = (*_list_needs(question), _cmake(question), _toolkit(question))
    status, because = _overall(parts)
    best = next((each for each in torch_rows(question) if each.best), None)
    release = Version(row.latest)
    return VersionLine(
        version=row.version,
        latest=row.latest,
        released=row.released,
        python=row.python,
        cxx=row.cxx,
        gcc=row.gcc,
        msvc=row.msvc,
        cmake=row.cmake,
        cuda=best.cuda if best else "",
        cuda_best=best.best if best else "",
        cudnn=best.cudnn if best else "",
        torchvision=_version(newest_release(catalog, "torchvision", release)),
        torchaudio=_version(newest_release(catalog, "torchaudio", release)),
        triton=row.triton,
        requires=row.requires,
        note=row.note,
        source=row.source,
        here=checkout is not None and checkout.release[:2] == release.release[:2],
        newest_fit=row is newest,
        status=status,
        because=because,
        fits=parts,
        oldest_gpu=next((each.oldest for each in catalog.cuda_wheel if admits(each.torch, release)), ""),
    )


def _version(row: CompanionReleaseRow | None) -> str:
    return row.version if row else ""


def _overall(parts: Iterable[Fit]) -> tuple[Status, str]:
    """Return error where a needed part is missing, unknown where one could not be compared, else ok."""
    needed = [part for part in parts if part.needed]
    for status in ("error", "unknown"):
        if found := [part.because for part in needed if part.status == status]:
            return status, "; ".join(found)
    return "ok", f"a fitting {' and '.join(part.what for part in needed if part.what != 'CMake')} are here"


def _list_needs(question: Question) -> tuple[Fit, ...]:
    windows = question.facts.host.os == "windows"
    return (_python(question), _toolset(question) if windows else _gcc(question))


def _python(question: Question) -> Fit:
    spec, known = question.row.python, [p for p in question.facts.pythons if not p.problem]
    answers = [(fits(question, python), python) for python in known]
    for fit, python in answers:
        if fit:
            because = f"{python.executable} is {python.version}"
            return Fit(what="Python", needs=spec, status="ok", because=because)
    doubtful = next((python for fit, python in answers if fit is None), None)
    if doubtful is not None and doubtful.version:
        because = f"whether Python {doubtful.version} ({doubtful.executable}) builds it is not known"
        return Fit(what="Python", needs=spec, status="unknown", because=because)
    if not known or doubtful is not None:
        because = "no Python of known version to compare with"
        return Fit(what="Python", needs=spec, status="unknown", because=because)
    return Fit(what="Python", needs=spec, status="error", because=f"no Python {spec} here")


def _gcc(question: Question) -> Fit:
    """Compare g++: only GCC has a least version; no release states one of clang."""
    spec = question.row.gcc
    found = [tool for tool in question.facts.compilers if tool.name == "g++" and tool.path]
    answers = [(admits(spec, tool.version), tool) for tool in found]
    for fit, tool in answers:
        if fit:
            return Fit(what="g++", needs=spec, status="ok", because=f"{tool.path} is {tool.version}")
    if not found or None in [fit for fit, _ in answers]:
        because = "no g++ of known version to compare with"
        return Fit(what="g++", needs=spec, status="unknown", because=because)
    return Fit(what="g++", needs=spec, status="error", because=f"no g++ {spec} here")


def _toolset(question: Question) -> Fit:
    """Compare MSVC: it has no least version in the table, only toolsets that are refused."""
    usual, chosen = question.row.msvc, choose_toolset(question)
    if chosen.toolset:
        because = f"{chosen.toolset.cl} is of toolset {chosen.toolset.version}"
        return Fit(what="MSVC", needs=usual, status="ok", because=because)
    refused = "".join(f"; {reason}" for reason in chosen.passed_over)
    return Fit(what="MSVC", needs=usual, status="error", because=f"no MSVC toolset here that fits{refused}")


def _cmake(question: Question) -> Fit:
    spec = question.row.cmake
    tool = question.facts.tool("cmake")
    because = f"{tool.path} is {tool.version}" if tool else "none here"
    if tool is None or not admits(spec, tool.version):
        because += "; one from PyPI goes into the Python of the build"
    return Fit(what="CMake", needs=spec, status="ok", because=because)


def _toolkit(question: Question) -> Fit:
    """Say whether a CUDA toolkit that is here fits; only builds with --cuda need one."""
    spec = next((row.cuda for row in torch_rows(question) if row.best), "")
    able = [toolkit for toolkit in question.cuda.toolkits if not why_unusable(toolkit)]
    status: Status = "unknown"
    because = "no CUDA toolkit here to compare with; --cuda-toolkit pypi:VERSION makes one"
    for toolkit in able:
        why = why_unfit(question, toolkit)
        if not why:
            status, because = "ok", f"{toolkit.path} is {toolkit.version}"
            break
        status, because = "error", f"{toolkit.path} is {toolkit.version}"
    return Fit(what="CUDA", needs=spec, status=status, because=because, needed=False)
