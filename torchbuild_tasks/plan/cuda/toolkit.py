"""Toolkits that are put together from NVIDIA's wheels and archives: which parts, and where.

Such a toolkit's folder is named after its release, the machine, and a digest of its parts:
another torch may want another cuDNN in it, and then it is another folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog import CudaRow, CudaTorchRow, PartRow
from torchbuild_tasks.catalog.match import admits, parse_version, series
from torchbuild_tasks.model import Artifact, Choice, ManagedToolkit, Source, Tool, Toolkit
from torchbuild_tasks.plan.artifacts import artifact_of, in_store
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda

TOOLKITS = "toolkits"
COMPILE = "compile"


class ManagedChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A toolkit and what it is made of; `problem` says why there is none."""

    toolkit: ManagedToolkit | None = None
    artifacts: tuple[Artifact, ...] = ()
    problem: str = ""


def managed_toolkit(question: Question, version: str) -> ManagedChoice:
    """The toolkit of a release for the machine that is planned for.

    The sample gets what compiles a kernel, PyTorch every library that it links, cuDNN, NCCL
    and cuSPARSELt as its version wants them.

    Args:
        version: a series ("13.0") or a release of one ("12.4.1").
    """
    rows = _machine_rows(question)
    releases = sorted({row.cuda for row in rows if "." in row.cuda}, key=Version)
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
        because=f"{len(ids)} parts of CUDA {release} from NVIDIA, {_size(artifacts)}"
        f"{_without(question, fitting, chosen)}",
    )
    return ManagedChoice(toolkit=toolkit, artifacts=artifacts)


def part_id(row: PartRow) -> str:
    """What a part is called for good, and its folder in the store."""
    if row.project:
        return f"{row.project}-{row.version}-{row.tag}"
    return f"cuda-{row.name}-{row.version}-{row.os}-{row.arch}"


def part_folders(rows: Iterable[PartRow]) -> Mapping[str, str]:
    """The folder inside each part whose content belongs into the toolkit, by the part's id."""
    return {part_id(row): row.folder for row in rows}


def _machine_rows(question: Question) -> list[PartRow]:
    host = question.facts.host
    return [row for row in question.catalog.part if (row.os, row.arch) == (host.os, host.arch)]


def _parts(question: Question, rows: list[PartRow]) -> list[PartRow]:
    """One row for each part that this build needs."""
    version = question.version or Version(question.row.version)
    if question.facts.tree.sample:
        return [row for row in rows if row.needed == COMPILE]
    return [row for row in rows if not row.torch or admits(row.torch, version)]


def _without(question: Question, fitting: list[PartRow], chosen: list[PartRow]) -> str:
    """The parts that there are for other versions of torch alone."""
    if question.facts.tree.sample:
        return ""
    lacking = sorted({row.name for row in fitting} - {row.name for row in chosen})
    return f"; for this torch there is no {' and no '.join(lacking)}" if lacking else ""


def _none(question: Question, version: str, releases: list[str]) -> str:
    """Why there is no toolkit of this version, and which is the nearest."""
    host = question.facts.host
    if not releases:
        return f"no CUDA toolkit can be put together for {host.os} {host.arch}"
    have = ", ".join(releases)
    text = f"no parts are known of CUDA {version or 'without a version'}; there are those of {have}"
    wanted = _number(version)
    if wanted is None:
        return text
    nearest = min(releases, key=lambda one: abs((_number(one) or 0) - wanted))
    return f"{text}; the nearest is pypi:{series(nearest)}"


def _number(version: str) -> int | None:
    """A release as one number, to tell which of two is nearer; None when it is none."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts) or len(parts) > 3:
        return None
    major, minor, patch = (*map(int, parts), 0, 0)[:3]
    return (major * 1000 + minor) * 1000 + patch


def _folder(question: Question, release: str, ids: tuple[str, ...]) -> str:
    host = question.facts.host
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:8]
    kind = f"-{COMPILE}" if question.facts.tree.sample else ""
    name = f"cuda-{release}-{host.os}-{host.arch}{kind}-{digest}"
    return in_store(question, TOOLKITS, name)


def _size(artifacts: tuple[Artifact, ...]) -> str:
    sizes = [artifact.size for artifact in artifacts]
    known = sum(size for size in sizes if size)
    return f"{known / 1e6:.0f} MB{' and more' if None in sizes else ''}" if known else "of unknown size"


# ----------------
# which CUDA toolkit: the one asked for, else the one the environment names, else the first that fits


# The variables that name the toolkit; on Windows the installer sets CUDA_PATH, and PyTorch
# reads CUDA_HOME first in both systems (torch/utils/cpp_extension.py).
ROOTS = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
MANAGED = "pypi:"
_VERSION = re.compile(r"\d+(\.\d+)*")
_IN_PATH = re.compile(r"(?:[\\/]v|cuda-)(\d+\.\d+)(?:[\\/]|$)", re.IGNORECASE)


class ChosenToolkit(msgspec.Struct, frozen=True, kw_only=True):
    """The toolkit as a choice; everything is empty in a CPU build.

    `toolkit` is what was found in its folder; None for one that is still to be put together
    (`managed`, from `artifacts`). `root`, `nvcc` and `version` hold for both. `problem` says why what was
    asked for cannot be had, `passed_over` why others were not taken.
    """

    choice: Choice | None = None
    toolkit: Toolkit | None = None
    managed: ManagedToolkit | None = None
    artifacts: tuple[Artifact, ...] = ()
    version: Version | None = None
    problem: str = ""
    passed_over: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """Its folder; empty without one."""
        return self.toolkit.path if self.toolkit else self.managed.folder if self.managed else ""

    @property
    def kept(self) -> frozenset[str]:
        """What of the store it is made of, and what it is called there itself."""
        if self.managed is None:
            return frozenset()
        return frozenset((*self.managed.parts, re.split(r"[/\\]", self.managed.folder)[-1]))


def choose_toolkit(question: Question) -> ChosenToolkit:
    """Decide the toolkit of a CUDA build."""
    if not is_cuda(question):
        return ChosenToolkit()
    if given := question.given("cuda_toolkit"):
        return _asked(question, str(given[0]).strip(), given[2], given[1])
    for name in ROOTS:
        named = decide(question, name)
        if named and named.value:
            return _named(question, named)
    return _first_that_fits(question)


def cuda_row(question: Question, version: Version | None) -> CudaRow | None:
    """The row of a toolkit's series."""
    if version is None:
        return None
    return next((row for row in question.catalog.cuda if Version(row.version) == version), None)


def torch_rows(question: Question) -> tuple[CudaTorchRow, ...]:
    """What is known of CUDA for the torch version of the checkout."""
    version = question.version or Version(question.row.version)
    return tuple(
        row
        for row in question.catalog.cuda_torch
        if row.os in ("", question.facts.host.os) and admits(row.torch, version)
    )


def usable(toolkit: Toolkit) -> str:
    """Why a toolkit compiles nothing; empty when it can."""
    if toolkit.problem:
        return toolkit.problem
    if toolkit.nvcc is None:
        return "there is no nvcc in it"
    return "" if toolkit.headers else "its headers (cuda_runtime.h) are missing"


def series_of(version: str | None) -> Version | None:
    """Major and minor of a toolkit's version: 12.4 for 12.4.1."""
    parsed = parse_version(version)
    return Version(f"{parsed.major}.{parsed.minor}") if parsed else None


def _asked(question: Question, wanted: str, because: str, source: Source) -> ChosenToolkit:
    if wanted.startswith(MANAGED):
        return _managed(question, wanted.removeprefix(MANAGED), because, source)
    if not _VERSION.fullmatch(wanted):
        meant = [t for t in question.cuda.toolkits if _is_called(wanted, t)]
        if not meant:
            return ChosenToolkit(problem=f"{wanted} ({because}) was not looked at")
        return _taken(question, meant[0], because, source)
    meant = [t for t in question.cuda.toolkits if f"{t.version}.".startswith(f"{wanted}.")]
    able = [toolkit for toolkit in meant if not usable(toolkit)]
    if len(able) == 1:
        return _taken(question, able[0], because, source)
    if able:
        places = " and ".join(toolkit.path for toolkit in able)
        problem = f"there are {len(able)} CUDA toolkits of version {wanted}: {places}"
        return ChosenToolkit(problem=problem)
    return ChosenToolkit(problem=_none_of(question, wanted, because, meant))


def _none_of(question: Question, wanted: str, because: str, meant: list[Toolkit]) -> str:
    if meant:
        reasons = "; ".join(f"{toolkit.path}: {usable(toolkit)}" for toolkit in meant)
        return f"CUDA {wanted} ({because}) cannot be used: {reasons}"
    have = ", ".join(f"{t.version} ({t.path})" for t in question.cuda.toolkits if t.version)
    return f"no CUDA {wanted} ({because}) is here; found: {have or 'none'}"


def _managed(question: Question, wanted: str, because: str, source: Source) -> ChosenToolkit:
    made: ManagedChoice = managed_toolkit(question, wanted)
    if made.toolkit is None:
        return ChosenToolkit(problem=f"{MANAGED}{wanted} ({because}): {made.problem}")
    version = series_of(made.toolkit.version)
    folder = made.toolkit.folder
    here = next((t for t in question.cuda.toolkits if folder in (t.path, *t.aliases) and not usable(t)), None)
    text = f"CUDA {made.toolkit.version}, put together from NVIDIA's wheels; {because}"
    choice = Choice(name="CUDA toolkit", value=made.toolkit.folder, because=text, source=source)
    return ChosenToolkit(
        choice=choice, toolkit=here, managed=made.toolkit, artifacts=made.artifacts, version=version
    )


def _named(question: Question, named: Choice) -> ChosenToolkit:
    """The folder that a variable names; one that nobody looked at keeps the version in its name."""
    meant = next((t for t in question.cuda.toolkits if _is_called(named.value, t)), None)
    because = f"{named.name}: {named.because}"
    if meant is not None:
        return _taken(question, meant, because, named.source)
    version = _IN_PATH.search(named.value)
    if question.facts.cuda is not None:
        return ChosenToolkit(problem=f"{named.value} ({because}) is not a CUDA toolkit")
    choice = Choice(name="CUDA toolkit", value=named.value, because=because, source=named.source)
    return ChosenToolkit(choice=choice, version=parse_version(version[1]) if version else None)


def _taken(question: Question, toolkit: Toolkit, because: str, source: Source) -> ChosenToolkit:
    if reason := usable(toolkit):
        return ChosenToolkit(problem=f"{toolkit.path} ({because}) cannot be used: {reason}")
    text = f"CUDA {toolkit.version or 'of unknown version'}, found via {toolkit.found_via}; {because}"
    choice = Choice(name="CUDA toolkit", value=toolkit.path, because=text, source=source)
    return ChosenToolkit(choice=choice, toolkit=toolkit, version=series_of(toolkit.version))


def _first_that_fits(question: Question) -> ChosenToolkit:
    found = question.cuda.toolkits
    reasons = {toolkit.path: usable(toolkit) or unfit(question, toolkit) for toolkit in found}
    passed_over = tuple(f"{t.path}: {reasons[t.path]}" for t in found if reasons[t.path])
    able = [toolkit for toolkit in found if not usable(toolkit)]
    if not able:
        return ChosenToolkit(passed_over=passed_over)
    best = next((toolkit for toolkit in able if not reasons[toolkit.path]), able[0])
    skipped = f"; passed over {'; '.join(passed_over)}" if passed_over and best is not able[0] else ""
    text = f"CUDA {best.version or 'of unknown version'}, found via {best.found_via}{skipped}"
    choice = Choice(name="CUDA toolkit", value=best.path, because=text)
    return ChosenToolkit(
        choice=choice, toolkit=best, version=series_of(best.version), passed_over=passed_over
    )


def unfit(question: Question, toolkit: Toolkit) -> str:
    """Why another toolkit would be better for this torch; empty where nothing is known against it."""
    version = series_of(toolkit.version)
    for row in torch_rows(question):
        if version is not None and not admits(row.cuda, version):
            return f"torch {question.row.version} builds with CUDA {row.cuda}"
    return ""


def _is_called(wanted: str, toolkit: Toolkit) -> bool:
    """Whether a path means this toolkit: its folder under any of its names, or its nvcc."""
    names = (toolkit.path, *toolkit.aliases, toolkit.nvcc or "")
    return _plain(wanted) in map(_plain, names)


def _plain(path: str) -> str:
    return path.replace("\\", "/").rstrip("/")


# ----------------
# which host compilers nvcc takes: what the toolkit's own header says, else the row of its version


# nvcc's own switch; whoever sets it has been told what may happen.
ALLOW = "-allow-unsupported-compiler"
_GCC = ("g++", "gcc", "c++", "cc")
_CLANG = ("clang++", "clang")


class HostLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The newest GCC and clang majors, and the range of _MSC_VER, that the nvcc of `cuda` takes.

    All None where nothing is known, and without CUDA. `msc` is what the header says; without
    one the rows of msvc.toml hold. `allowed` is true when the user has told
    nvcc to take any.
    """

    cuda: Version | None = None
    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None
    allowed: bool = False


NO_LIMITS = HostLimits()


def host_limits(question: Question, chosen: ChosenToolkit) -> HostLimits:
    """The limits of the chosen toolkit."""
    row, found = cuda_row(question, chosen.version), chosen.toolkit
    return HostLimits(
        cuda=chosen.version,
        gcc=(found.gcc if found else None) or (row.gcc if row else None),
        clang=(found.clang if found else None) or (row.clang if row else None),
        msc=found.msc if found else None,
        allowed=_allowed(question),
    )


def refusal(limits: HostLimits, tool: Tool) -> str:
    """Why nvcc does not take a GCC or clang; empty when it does, or when nothing is known."""
    version = parse_version(tool.version)
    newest = limits.gcc if tool.name in _GCC else limits.clang if tool.name in _CLANG else None
    if version is None or newest is None or version.major <= newest:
        return ""
    family = "GCC" if tool.name in _GCC else "clang"
    return f"CUDA {limits.cuda} takes {family} up to {newest}"


def _allowed(question: Question) -> bool:
    flags = (decide(question, name) for name in ("TORCH_NVCC_FLAGS", "CMAKE_CUDA_FLAGS", "NVCC_APPEND_FLAGS"))
    return any(ALLOW in choice.value for choice in flags if choice)
