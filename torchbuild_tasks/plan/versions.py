"""The torch that --torch names, held against what the checkout is."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import Catalog, CompanionReleaseRow, TorchRow
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.features.companions.choose import newest_release
from torchbuild_tasks.model import Facts, Finding, Source, Status
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.cuda.toolkit import torch_rows, unfit, usable
from torchbuild_tasks.plan.environment import fits
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.toolset import choose_toolset
from torchbuild_tasks.plan.torch_ref import TorchRef, read_word, release_of
from torchbuild_tasks.values import replace


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a series needs, and whether this machine has it; `needs` is the row's own text.

    One that is not `needed` for every build says nothing about the series as a whole.
    """

    what: str
    needs: str
    status: Status
    because: str
    needed: bool = True


class VersionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One series: its row's figures, what belongs to it, and whether this machine fits it.

    `here` marks the series of the checkout that was looked at, `newest_fit` the one to take on this
    machine. `cuda` and `cudnn` are specifiers, `cuda_best` is what upstream's own binaries use.
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


def version_lines(catalog: Catalog, facts: Facts) -> tuple[VersionLine, ...]:
    """Every series, newest first."""
    newest = newest_fit(catalog, facts)
    return tuple(_line(row, catalog, facts, newest) for row in _ordered(catalog))


def newest_fit(catalog: Catalog, facts: Facts) -> TorchRow | None:
    """The newest series that fits this machine, else the newest of which that is not known."""
    ordered = _ordered(catalog)
    states = {row.version: _whole(_needed(_as_if(row, catalog, facts)))[0] for row in ordered}
    for wanted in ("ok", "unknown"):
        for row in ordered:
            if states[row.version] == wanted:
                return row
    return None


def _ordered(catalog: Catalog) -> list[TorchRow]:
    return sorted(catalog.torch, key=lambda row: Version(row.version), reverse=True)


def _as_if(row: TorchRow, catalog: Catalog, facts: Facts) -> Question:
    """The question that a checkout of the series' last release would be."""
    tree = replace(facts.tree, version=row.latest)
    return Question(BuildRequest(), replace(facts, tree=tree), catalog)


def _line(row: TorchRow, catalog: Catalog, facts: Facts, newest: TorchRow | None) -> VersionLine:
    question = _as_if(row, catalog, facts)
    checkout = Question(BuildRequest(), facts, catalog).version
    parts = (*_needed(question), _cmake(question), _toolkit(question))
    status, because = _whole(parts)
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
    )


def _version(row: CompanionReleaseRow | None) -> str:
    return row.version if row else ""


def _whole(parts: Iterable[Fit]) -> tuple[Status, str]:
    """Error when a needed part is missing, unknown when one could not be compared."""
    needed = [part for part in parts if part.needed]
    for status in ("error", "unknown"):
        if found := [part.because for part in needed if part.status == status]:
            return status, "; ".join(found)
    return "ok", f"a fitting {' and '.join(part.what for part in needed if part.what != 'CMake')} are here"


def _needed(question: Question) -> tuple[Fit, ...]:
    windows = question.facts.host.os == "windows"
    return (_python(question), _toolset(question) if windows else _gcc(question))


def _python(question: Question) -> Fit:
    spec, known = question.row.python, [p for p in question.facts.pythons if not p.problem]
    answers = [(fits(question, python), python) for python in known]
    for fit, python in answers:
        if fit:
            because = f"{python.executable} is {python.version}"
            return Fit(what="Python", needs=spec, status="ok", because=because)
    if not known or None in [fit for fit, _ in answers]:
        because = "no Python of known version to compare with"
        return Fit(what="Python", needs=spec, status="unknown", because=because)
    return Fit(what="Python", needs=spec, status="error", because=f"no Python {spec} here")


def _gcc(question: Question) -> Fit:
    """Only GCC has a least version; clang is known to build torch, and no release says from which on."""
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
    """MSVC has no least version in the table, only toolsets that are refused."""
    usual, chosen = question.row.msvc, choose_toolset(question)
    if chosen.toolset:
        because = f"{chosen.toolset.cl} is of toolset {chosen.toolset.version}"
        return Fit(what="MSVC", needs=usual, status="ok", because=because)
    refused = "".join(f"; {reason}" for reason in chosen.passed_over)
    return Fit(what="MSVC", needs=usual, status="error", because=f"no MSVC toolset here that fits{refused}")


def _cmake(question: Question) -> Fit:
    spec = question.row.cmake
    found = [tool for tool in question.facts.tools if tool.name == "cmake" and tool.path]
    for tool in found:
        if admits(spec, tool.version):
            return Fit(what="CMake", needs=spec, status="ok", because=f"{tool.path} is {tool.version}")
    has = f"{found[0].path} is {found[0].version}" if found else "none here"
    because = f"{has}; one from PyPI goes into the Python of the build"
    return Fit(what="CMake", needs=spec, status="ok", because=because)


def _toolkit(question: Question) -> Fit:
    """Whether a CUDA toolkit that is here fits; only builds with --cuda need one."""
    spec = next((row.cuda for row in torch_rows(question) if row.best), "")
    able = [toolkit for toolkit in question.cuda.toolkits if not usable(toolkit)]
    status: Status = "unknown"
    because = "no CUDA toolkit here to compare with; --cuda-toolkit pypi:VERSION makes one"
    for toolkit in able:
        why = unfit(question, toolkit)
        if not why:
            status, because = "ok", f"{toolkit.path} is {toolkit.version}"
            break
        status, because = "error", f"{toolkit.path} is {toolkit.version}"
    return Fit(what="CUDA", needs=spec, status=status, because=because, needed=False)


# ----------------


class WantedTorch(msgspec.Struct, frozen=True, kw_only=True):
    """The torch to build, with the reason and the layer that decided it."""

    ref: TorchRef
    because: str
    source: Source = "default"


def wanted_torch(question: Question) -> WantedTorch | None:
    """What --torch says; without it the newest that fits this machine, None when none does.

    Raises:
        UsageError: --torch, or torch in torchbuild.toml, names no torch that is known.
    """
    if given := question.given("torch"):
        word, source, because = given
        said = "--torch" if source == "flag" else because
        return WantedTorch(ref=read_word(word, question.catalog, said), because=because, source=source)
    row = newest_fit(question.catalog, question.facts)
    if row is None:
        return None
    return WantedTorch(ref=release_of(row), because="the newest that fits this machine")


def check_torch(question: Question) -> tuple[Finding, ...]:
    """Whether the checkout is the torch that was asked for; nothing where nobody asked."""
    wanted = wanted_torch(question) if question.given("torch") else None
    if wanted is None:
        return ()
    status, text = _held(question, wanted.ref)
    fix = _ways_out(question, wanted) if status != "ok" else ""
    return (Finding(id="torch", status=status, text=text, fix=fix),)


def _ways_out(question: Question, wanted: WantedTorch) -> str:
    tree, ref = question.facts.tree, wanted.ref.ref
    ways = [f"Get that one: source get {wanted.ref.word}"]
    if tree.git:
        ways.append(f"Or move this one and its submodules there: source update {ref} --source {tree.root}")
    if wanted.source == "flag":
        ways.append("Or leave --torch out, to build what is here")
    return ". ".join(ways)


def _held(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    is_here = f"{tree.root} is torch {tree.version}"
    if ref.kind == "commit":
        return _commit(question, ref)
    if ref.kind == "ref":
        text = f"whether {tree.root} is {ref.ref} is not known; its version.txt says {tree.version}"
        return "unknown", text
    version = question.version
    if version is None:
        return "unknown", f"{is_here}, which cannot be compared with {ref.ref}"
    if ref.kind == "branch":
        newest = Version(ref.row.version).release
        ahead = version.is_prerelease and version.release[:2] >= newest
        fits = f"{is_here}, as far as version.txt tells a tree of {ref.ref}"
        return ("ok", fits) if ahead else ("error", f"{is_here}, and --torch asks for {ref.ref}")
    return _release(question, ref, version)


def _commit(question: Question, ref: TorchRef) -> tuple[Status, str]:
    tree = question.facts.tree
    if tree.commit is None:
        return "unknown", f"{tree.root} does not say its commit, and --torch asks for {ref.ref}"
    if tree.commit.startswith(ref.ref):
        return "ok", f"{tree.root} is at commit {tree.commit}"
    return "error", f"{tree.root} is at commit {tree.commit[:10]}, and --torch asks for {ref.ref}"


def _release(question: Question, ref: TorchRef, version: Version) -> tuple[Status, str]:
    """A release branch keeps 2.9.0a0 in version.txt to the end; only a tag tells its releases apart."""
    tree = question.facts.tree
    name = ref.row.version if ref.kind == "series" else ref.version
    is_here, asks = f"{tree.root} is torch {version}", f"and --torch asks for {name}"
    if version.release[:2] != Version(ref.version).release[:2]:
        return "error", f"{is_here}, {asks}"
    if ref.kind == "series":
        return "ok", f"{is_here}, of series {name}"
    if ref.ref in (tree.tags or ()):
        return "ok", f"{is_here}, tag {ref.ref}"
    others = [tag for tag in tree.tags or () if parse_version(tag)]
    if others:
        return "error", f"{tree.root} is tag {others[0]}, {asks}"
    if not version.is_prerelease:
        exact = version.base_version == ref.version
        return ("ok", is_here) if exact else ("error", f"{is_here}, {asks}")
    return "unknown", f"{is_here}, {asks}; its commit has no tag that would tell"
