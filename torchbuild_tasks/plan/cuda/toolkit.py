"""Choose the CUDA toolkit: the one asked for, else the one the environment names, else the first that fits.

Also the host compilers that its nvcc accepts: by its own header, else by the row of its version.
"""

from __future__ import annotations

import functools
import re

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.cuda import CudaRow, CudaTorchRow
from torchbuild_tasks.catalog.match import admits, parse_version, row_version
from torchbuild_tasks.model import Choice, Source, Toolkit
from torchbuild_tasks.plan.cuda.values import ChosenToolkit, HostLimits
from torchbuild_tasks.plan.names import CUDA_ROOTS
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_cuda
from torchbuild_tasks.text.paths import names_same, path_key

_INSTALLER = "CUDA_PATH"
_FIELD = "cuda_toolkit"
FOLDER = "CUDAToolkit_ROOT"  # CMake's own name: it is set to the toolkit's, and chooses none
# nvcc may be named in any of these; one outside of every found toolkit is left alone (it may be a wrapper).
NVCC_NAMES = ("CUDACXX", "CMAKE_CUDA_COMPILER", "CUDA_NVCC_EXECUTABLE")
MANAGED = "pypi:"
# A version as it is typed (12.6), as folders are called, and as torch's indexes and wheels (cu126).
_VERSION = re.compile(r"(?:cuda[- ]?|v)?(\d+(?:\.\d+)*)|cu(\d+)(\d)", re.IGNORECASE)
_IN_PATH = re.compile(r"(?:[\\/]v|cuda-)(\d+\.\d+)(?:[\\/]|$)", re.IGNORECASE)
# nvcc's own switch, with which the user takes the risk.
ALLOW = "-allow-unsupported-compiler"
NVCC_FLAGS = ("TORCH_NVCC_FLAGS", "CMAKE_CUDA_FLAGS", "CUDAFLAGS", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


def choose_toolkit(question: Question) -> ChosenToolkit:
    """Decide the toolkit of a CUDA build."""
    if not is_cuda(question):
        return ChosenToolkit()
    asked = asked_toolkit(question)
    if asked is None:
        return _first_that_fits(question)
    if asked.name == _FIELD:
        return _choose_asked(question, asked.value.strip(), asked.because, asked.source)
    return _choose_named(question, asked)


def asked_toolkit(question: Question) -> Choice | None:
    """Return what names the toolkit by the precedence: --cuda-toolkit or its key, or a variable.

    On Windows every installer of CUDA sets CUDA_PATH: it is nobody's word against a settings file.
    """
    path = decide(question, _INSTALLER)
    by_installer = path is not None and path.source == "environment" and question.facts.host.os == "windows"
    roots = [name for name in CUDA_ROOTS if name != _INSTALLER or not by_installer]
    is_named = any(choice and choice.value for choice in map(question.decided.get, CUDA_ROOTS))
    names = roots if is_named else [choice.name for choice, _ in named_nvcc(question)]
    return question.asked(_FIELD, *names) or question.asked(_FIELD, *CUDA_ROOTS)


def named_nvcc(question: Question) -> list[tuple[Choice, Toolkit]]:
    """Return the variables that name the nvcc of a toolkit that was found, each with that toolkit."""
    named = filter(None, (decide(question, name) for name in NVCC_NAMES))
    found = ((choice, each) for choice in named for each in question.cuda.toolkits)
    return [(choice, each) for choice, each in found if _is_called(choice.value, each)]


def cuda_row(question: Question, version: Version | None) -> CudaRow | None:
    """Return the row of a toolkit's series."""
    return None if version is None else _rows_by_version(question.catalog).get(version)


@functools.lru_cache(maxsize=16)  # advice plans with each toolkit, and asks a thousand times
def _rows_by_version(catalog: Catalog) -> dict[Version, CudaRow]:
    return {row_version(row.version): row for row in reversed(catalog.cuda)}


def torch_rows(question: Question) -> tuple[CudaTorchRow, ...]:
    """Return the rows about CUDA for the torch version of the checkout."""
    version = question.version or Version(question.row.version)
    return _torch_rows(question.catalog, version, question.facts.host.os)


def is_outside(question: Question, cuda: Version) -> bool:
    """Say whether torch is not known to build with a toolkit."""
    return not all(admits(row.cuda, cuda) for row in torch_rows(question))


@functools.lru_cache(maxsize=1024)
def _torch_rows(catalog: Catalog, version: Version, system: str) -> tuple[CudaTorchRow, ...]:
    rows = (row for row in catalog.cuda_torch if row.os in ("", system))
    return tuple(row for row in rows if admits(row.torch, version))


def why_unusable(toolkit: Toolkit) -> str:
    """Say why a toolkit compiles nothing; empty when it can."""
    if toolkit.problem:
        return toolkit.problem
    if toolkit.nvcc is None:
        return "there is no nvcc in it"
    if toolkit.headers and not (toolkit.libraries or toolkit.managed):
        return "its runtime to link with (libcudart.so, cudart.lib) is missing"
    return "" if toolkit.headers else "its headers (cuda_runtime.h) are missing"


def series_of(version: str | None) -> Version | None:
    """Return major and minor of a toolkit's version: 12.4 for 12.4.1."""
    parsed = parse_version(version)
    return Version(f"{parsed.major}.{parsed.minor}") if parsed else None


def _choose_asked(question: Question, wanted: str, because: str, source: Source) -> ChosenToolkit:
    if wanted.startswith(MANAGED):
        return _choose_managed(question, wanted.removeprefix(MANAGED), because, source)
    if called := next((t for t in question.cuda.toolkits if _is_called(wanted, t)), None):
        return _choose_found(called, because, source)
    if not (version := _in_digits(wanted)):
        return ChosenToolkit(problem=f"no CUDA toolkit was found in {wanted} ({because})")
    wanted = version
    matching = [t for t in question.cuda.toolkits if f"{t.version}.".startswith(f"{wanted}.")]
    able = [toolkit for toolkit in matching if not why_unusable(toolkit)]
    if len(able) == 1:
        return _choose_found(able[0], because, source)
    if able:
        places = " and ".join(toolkit.path for toolkit in able)
        problem = f"there are {len(able)} CUDA toolkits of version {wanted}: {places}"
        return ChosenToolkit(problem=problem)
    return ChosenToolkit(problem=_none_of(question, wanted, because, matching), broken=(*matching,))


def _in_digits(word: str) -> str:
    """Return a version in any of its spellings as 12.6; "" for what is none."""
    found = _VERSION.fullmatch(word)
    return "" if found is None else found[1] or f"{found[2]}.{found[3]}"


def asked_series(question: Question) -> Version | None:
    """Return the series of the toolkit that is asked for, by its version or in the name of its folder.

    A major alone (12) is none.
    """
    asked = asked_toolkit(question)
    word = asked.value.strip().removeprefix(MANAGED) if asked else ""
    folder = _IN_PATH.search(word)
    version = _in_digits(word) or (folder[1] if folder else "")
    return series_of(version) if "." in version else None


def _none_of(question: Question, wanted: str, because: str, matching: list[Toolkit]) -> str:
    if matching:
        reasons = "; ".join(f"{toolkit.path}: {why_unusable(toolkit)}" for toolkit in matching)
        return f"CUDA {wanted} ({because}) cannot be used: {reasons}"
    have = ", ".join(f"{t.version} ({t.path})" for t in question.cuda.toolkits if t.version)
    return f"no CUDA {wanted} ({because}) is here; found: {have or 'none'}"


def _choose_managed(question: Question, wanted: str, because: str, source: Source) -> ChosenToolkit:
    from torchbuild_tasks.plan.cuda.managed import managed_toolkit  # few have one made

    wanted = _in_digits(wanted) or wanted
    made = managed_toolkit(question, wanted)
    if made.toolkit is None:
        return ChosenToolkit(problem=f"{MANAGED}{wanted} ({because}): {made.problem}")
    version = series_of(made.toolkit.version)
    folder = made.toolkit.folder
    here = next(
        (t for t in question.cuda.toolkits if folder in (t.path, *t.aliases) and not why_unusable(t)), None
    )
    text = f"CUDA {made.toolkit.version}, put together from NVIDIA's wheels; {because}"
    choice = Choice(name="CUDA toolkit", value=made.toolkit.folder, because=text, source=source)
    return ChosenToolkit(
        choice=choice, toolkit=here, managed=made.toolkit, artifacts=made.artifacts, version=version
    )


def _choose_named(question: Question, named: Choice) -> ChosenToolkit:
    """Return the toolkit that a variable names; one that was not looked at has the version in its name."""
    matching = next((t for t in question.cuda.toolkits if _is_called(named.value, t)), None)
    given = question.given(_FIELD)
    before = f", which counts before {given[2]}" if given else ""
    because = f"{named.name}: {named.because}{before}{_unlike(question, named, matching)}"
    if matching is not None:
        return _choose_found(matching, because, named.source)
    version = _IN_PATH.search(named.value)
    if question.facts.cuda is not None:
        return ChosenToolkit(problem=f"{named.value} ({because}) is not a CUDA toolkit")
    choice = Choice(name="CUDA toolkit", value=named.value, because=because, source=named.source)
    return ChosenToolkit(choice=choice, version=parse_version(version[1]) if version else None)


def _unlike(question: Question, named: Choice, matching: Toolkit | None) -> str:
    """Say which other variables of the same kind name another folder: they are replaced."""
    others = filter(None, (decide(question, name) for name in CUDA_ROOTS if name != named.name))
    known = (named.value, *((matching.path, *matching.aliases) if matching else ()))
    unlike = [each for each in others if each.value and not any(names_same(each.value, one) for one in known)]
    return "".join(f"; {each.name}={each.value}, another folder, is replaced" for each in unlike)


def _choose_found(toolkit: Toolkit, because: str, source: Source) -> ChosenToolkit:
    if reason := why_unusable(toolkit):
        problem = f"{toolkit.path} ({because}) cannot be used: {reason}"
        return ChosenToolkit(problem=problem, broken=(toolkit,))
    text = f"{toolkit.name}, found via {toolkit.found_via}; {because}"
    choice = Choice(name="CUDA toolkit", value=toolkit.path, because=text, source=source)
    return ChosenToolkit(choice=choice, toolkit=toolkit, version=series_of(toolkit.version))


def _first_that_fits(question: Question) -> ChosenToolkit:
    found = question.cuda.toolkits
    reasons = {toolkit.path: why_unusable(toolkit) or why_unfit(question, toolkit) for toolkit in found}
    passed_over = tuple(f"{t.path}: {reasons[t.path]}" for t in found if reasons[t.path])
    able = [toolkit for toolkit in found if not why_unusable(toolkit)]
    if not able:
        return ChosenToolkit(passed_over=passed_over, broken=found)
    best = _nearest(question, [toolkit for toolkit in able if not reasons[toolkit.path]] or able[:1])
    skipped = f"; passed over {'; '.join(passed_over)}" if passed_over and best is not able[0] else ""
    text = f"{best.name}, found via {best.found_via}{skipped}"
    choice = Choice(name="CUDA toolkit", value=best.path, because=text)
    return ChosenToolkit(
        choice=choice, toolkit=best, version=series_of(best.version), passed_over=passed_over
    )


def _nearest(question: Question, fitting: list[Toolkit]) -> Toolkit:
    """Return the first; where nobody has chosen it, the nearest to upstream's of those beside it."""
    first = fitting[0]
    if is_picked(first):
        return first
    beside = [toolkit for toolkit in fitting if toolkit.found_via == first.found_via]
    return min(beside, key=lambda each: distance(question, series_of(each.version)))


def is_picked(toolkit: Toolkit) -> bool:
    """Say whether somebody has chosen a toolkit for this machine.

    PATH is a choice, and so is a folder without a number (/usr/local/cuda, which leads to one of them).
    """
    names = (toolkit.path, *toolkit.aliases)
    return toolkit.found_via == "PATH" or not all(path[-1:].isdigit() for path in names)


def distance(question: Question, version: Version | None) -> int:
    """Return how far a release is from the one asked for, else from that of upstream's own binaries."""
    asked = asked_series(question)
    best = next((row.best for row in torch_rows(question) if row.best), "99.0")
    wanted, found = asked or Version(best), version or Version("0.0")
    return abs((wanted.major - found.major) * 100 + wanted.minor - found.minor)


def why_unfit(question: Question, toolkit: Toolkit) -> str:
    """Say why another toolkit would be better for this torch; empty where no row says so."""
    version = series_of(toolkit.version)
    if toolkit.lacks and not question.facts.tree.sample:
        return f"it lacks what torch links with: {', '.join(toolkit.lacks)}"
    for row in torch_rows(question):
        if version is not None and not admits(row.cuda, version):
            return f"torch {question.row.version} is known to build with CUDA {row.cuda}"
    return ""


def _is_called(wanted: str, toolkit: Toolkit) -> bool:
    """Say whether a path means this toolkit: its folder under any of its names, or its nvcc."""
    names = (toolkit.path, *toolkit.aliases, toolkit.nvcc or "")
    return path_key(wanted) in map(path_key, names)


def is_called(folder: str, chosen: ChosenToolkit) -> bool:
    """Say whether a folder is that of the chosen toolkit, under any of its names."""
    made = chosen.toolkit is not None and _is_called(folder, chosen.toolkit)
    return made or names_same(folder, chosen.root)


def host_limits(question: Question, chosen: ChosenToolkit) -> HostLimits:
    """Return the limits of the chosen toolkit."""
    row, found = cuda_row(question, chosen.version), chosen.toolkit
    gcc = (found.gcc if found else None) or (row.gcc if row else None)
    return HostLimits(
        cuda=chosen.version,
        gcc=_older_of(gcc, row.gcc_works if row else ""),
        clang=str((found.clang if found else None) or (row.clang if row else "")),
        msc=found.msc if found else None,
        allowed=_allows_unsupported(question),
    )


def _older_of(taken: int | None, works: str) -> str:
    """Return the newest GCC that the header takes and the front end can read."""
    return works if works and (taken is None or Version(works).major <= taken) else str(taken or "")


def _allows_unsupported(question: Question) -> bool:
    flags = (decide(question, name) for name in NVCC_FLAGS)
    return any(ALLOW in choice.value for choice in flags if choice)
