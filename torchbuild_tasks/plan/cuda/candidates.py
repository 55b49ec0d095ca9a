"""The CUDA toolkits that are to be had, each with what the checks of a plan say of it.

Installed ones, those that can be put together, and those of NVIDIA's archive; `advice` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog.match import row_version
from torchbuild_tasks.model import Finding, Toolkit
from torchbuild_tasks.plan.compiler import Compilers, check_host, choose_compilers
from torchbuild_tasks.plan.cuda.archs import choose_archs
from torchbuild_tasks.plan.cuda.checks import SEARCH_ID, check_archs, check_toolkit
from torchbuild_tasks.plan.cuda.devices import devices
from torchbuild_tasks.plan.cuda.driver import check_driver
from torchbuild_tasks.plan.cuda.managed import managed_series
from torchbuild_tasks.plan.cuda.toolkit import (
    FOLDER,
    MANAGED,
    NVCC_NAMES,
    choose_toolkit,
    host_limits,
    series_of,
    why_unusable,
)
from torchbuild_tasks.plan.cuda.values import ChosenToolkit, Device, HostLimits
from torchbuild_tasks.plan.jetson import COMPAT, JETPACK_ID, board, check_jetson
from torchbuild_tasks.plan.names import CUDA_ROOTS
from torchbuild_tasks.plan.packages import INSTALLABLE
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.settings import split_assignment
from torchbuild_tasks.plan.toolset import ChosenToolset, check_toolset, choose_toolset
from torchbuild_tasks.values import replace

# The weight of each kind of warning, to compare two toolkits: most for what does not run at all, less for
# what upstream never built with, even if its extensions do not know the GPU. An error weighs more than all.
WEIGHTS: Final = {
    "driver": 8,
    "gpu-code": 5,
    "cuda-toolkit": 3,
    JETPACK_ID: 8,
    "jetson-wheels": 8,
    "cudnn": 0,
    SEARCH_ID: 0,
}
_ERROR: Final = 100


class Trial(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A question that names one toolkit, what is chosen with it, and what the checks say of that."""

    question: Question
    gpus: tuple[Device, ...]

    @cached_property
    def _chosen(self) -> ChosenToolkit:
        return choose_toolkit(self.question)

    @cached_property
    def _limits(self) -> HostLimits:
        return host_limits(self.question, self._chosen)

    @cached_property
    def _toolset(self) -> ChosenToolset:
        return choose_toolset(self.question, self._limits)

    @cached_property
    def compilers(self) -> Compilers:
        return choose_compilers(self.question, self._toolset, self._limits)

    def list_findings(self) -> Iterator[Finding]:
        """Yield the warnings and errors, each check when it is asked for: most fail at the first."""
        return (each for found in self._check() for each in found if each.status in ("warn", "error"))

    def _check(self) -> Iterator[Iterable[Finding]]:
        asked, gpus = self.question, self.gpus
        yield check_toolkit(asked, self._chosen, gpus)
        yield check_host(asked, self.compilers, self._limits)
        yield check_toolset(asked, self._toolset, self._limits)
        archs = choose_archs(asked, self._chosen, gpus)
        yield check_driver(asked, self._chosen.version, gpus, archs.archs)
        yield check_archs(asked, self._chosen, archs, gpus)
        yield check_jetson(asked, self._chosen)


class Candidate(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """An obtainable toolkit: its value of --cuda-toolkit, and what the checks say with it, if one asks.

    `place` is 0 for one that is installed, 1 for one that can be put together, 2 for one that is only
    in NVIDIA's archive. `asked` is what the checks are asked with, on a machine that has it.
    """

    word: str
    version: Version
    place: int
    question: Question
    asked: str
    gpus: tuple[Device, ...]

    @cached_property
    def trial(self) -> Trial:
        return try_toolkit(self.question, self.asked, self.gpus)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self.trial.list_findings())

    @property
    def gcc(self) -> int | None:
        """Return the major of a host compiler that must be installed for it."""
        cxx = self.trial.compilers.tool
        return Version(str(cxx.version)).major if cxx and cxx.found_via == INSTALLABLE else None

    @property
    def weight(self) -> int:
        return weigh(self.findings)


def weigh(findings: Iterable[Finding]) -> int:
    """Return the sum of the weights of a toolkit's findings."""
    return sum(_ERROR if each.status == "error" else WEIGHTS.get(each.id, 1) for each in findings)


def common_errors(candidates: Iterable[Candidate]) -> set[tuple[str, str]]:
    """Return the errors (name and text) that all of them have, which count against none."""
    common: set[tuple[str, str]] | None = None
    for each in candidates:
        errors = {(f.id, f.text) for f in each.findings if f.status == "error"}
        common = errors if common is None else common & errors
        if not common:  # the others need not be judged for it
            break
    return common or set()


def candidates_for(question: Question) -> Iterator[Candidate]:
    """Return every obtainable toolkit for this machine.

    A series that is here is judged by what its files say, not by its row as one to install.
    """
    gpus = devices(question)
    able = [toolkit for toolkit in question.cuda.toolkits if not why_unusable(toolkit)]
    for toolkit in able:
        if version := series_of(toolkit.version):
            only = sum(f"{other.version}.".startswith(f"{version}.") for other in able) == 1
            word = str(version) if only else toolkit.path
            yield Candidate(
                word=word, version=version, place=0, question=question, asked=toolkit.path, gpus=gpus
            )
    known = board(question)
    if known is not None and not known.sbsa:
        return
    for text in managed_series(question):
        word = MANAGED + text
        yield Candidate(word=word, version=Version(text), place=1, question=question, asked=word, gpus=gpus)
    host, here = question.facts.host, {series_of(toolkit.version) for toolkit in able}
    for row in question.catalog.cuda:
        if row_version(row.version) in here:
            continue
        if host.arch == "x86_64" or (host.os == "linux" and row_version(row.version) >= row_version("11.0")):
            yield in_archive(question, row.version, gpus)


def in_archive(question: Question, version: str, gpus: tuple[Device, ...]) -> Candidate:
    """Return a release as if it were installed, by its row."""
    path = question.separator.join(("", "cuda", version))
    nvcc = question.separator.join((path, "bin", "nvcc"))
    libraries = question.separator.join((path, "lib64"))
    toolkit = Toolkit(
        path=path, found_via="archive", version=version, nvcc=nvcc, headers=True, libraries=libraries
    )
    cuda = replace(question.cuda, toolkits=(*question.cuda.toolkits, toolkit))
    as_if = question.with_cuda(cuda)
    return Candidate(word="", version=Version(version), place=2, question=as_if, asked=path, gpus=gpus)


def judge(question: Question, word: str, gpus: tuple[Device, ...]) -> tuple[Finding, ...]:
    """Return the warnings and errors of the checks with this value of --cuda-toolkit."""
    return tuple(try_toolkit(question, word, gpus).list_findings())


def try_toolkit(question: Question, word: str, gpus: tuple[Device, ...]) -> Trial:
    """Return the trial of this value of --cuda-toolkit, with nothing that names another one.

    The GPUs are the same whatever the toolkit and the torch, and merging them for each took a seventh.
    """
    named = (*CUDA_ROOTS, FOLDER, *NVCC_NAMES)
    kept = tuple(text for text in question.request.set if split_assignment(text)[0] not in named)
    return Trial(question=question.with_toolkit(word, kept), gpus=gpus)


def puts_right(candidate: Candidate, finding: Finding, common: set[tuple[str, str]]) -> bool:
    """Say whether a finding is gone with a candidate, and no error is the candidate's own.

    Of an error a warning may remain: the build is not refused any more.
    """
    if not ends(candidate, finding):
        return False
    for each in candidate.findings:
        if each.status == "error" and (each.id, each.text) not in common:
            return False
        if each.id == JETPACK_ID and COMPAT not in each.fix:  # the board's driver does not run it
            return False
    return True


def ends(candidate: Candidate, finding: Finding) -> bool:
    """Say whether a finding is gone with a candidate, or only its warning left of an error."""
    return not any(f.id == finding.id and f.status in (finding.status, "error") for f in candidate.findings)
