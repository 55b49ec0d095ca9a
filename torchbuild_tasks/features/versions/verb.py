"""`versions`: show the torch versions and which of them fit this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.verbs import Outcome

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter

from collections.abc import Iterator, Sequence

from torchbuild_tasks.plan.versions import VersionLine, version_lines
from torchbuild_tasks.text.show import MARK, columns

HEAD = (
    *("", "torch", "released", "Python", "C++", "GCC"),
    *("CMake", "CUDA", "vision", "audio", "triton", "here", ""),
)


def versions_text(lines: Sequence[VersionLine], *, detail: bool = False) -> str:
    """Return the table; with `detail` every line in full. `*` marks the checkout's series."""
    if detail:
        return "\n".join(map(_detail, lines))
    rows = [
        (
            *("*" if line.here else "", line.version, line.released, line.python, str(line.cxx), line.gcc),
            *(line.cmake, line.cuda_best, line.torchvision, line.torchaudio, line.triton),
            *(MARK[line.status], line.because),
        )
        for line in lines
    ]
    newest = [f"The newest that fits this machine: {line.latest}\n" for line in lines if line.newest_fit]
    one = "One row in detail, with pins and sources: versions --torch 2.9\n"
    return columns([HEAD, *rows], "") + "".join(newest) + one


def _detail(line: VersionLine) -> str:
    title = f"torch {line.version}, last release {line.latest}, first of {line.released}\n"
    needs = [
        (fit.what, fit.needs, MARK[fit.status], fit.because + ("" if fit.needed else "; only with --cuda"))
        for fit in line.fits
    ]
    return title + columns(needs) + columns(list(_figures(line))) + _verdict(line)


def _figures(line: VersionLine) -> Iterator[tuple[str, str]]:
    yield "C++", str(line.cxx)
    yield "CUDA of upstream's own", line.cuda_best or "not known"
    if line.oldest_gpu:
        built = "older ones (5.0 on) take CUDA 12.6 to 12.9: torchbuild build --cuda --preset old-gpu"
        yield "GPUs of upstream's own", f"compute capability {line.oldest_gpu} and later; {built}"
    yield "cuDNN", line.cudnn or "not known"
    yield "MSVC of upstream's own", line.msvc
    yield "clang", "no least version is stated"
    yield "torchvision", line.torchvision or "not known"
    yield "torchaudio", line.torchaudio or "not known"
    yield "triton", line.triton or "none"
    yield "build requires", ", ".join(line.requires)
    if line.note:
        yield "note", line.note
    yield "source", line.source


def _verdict(line: VersionLine) -> str:
    here = "; the checkout is of this series" if line.here else ""
    newest = "; the newest that fits" if line.newest_fit else ""
    return f"This machine: {MARK[line.status].strip()}: {line.because}{here}{newest}\n"


def run(request: BuildRequest, report: Reporter) -> Outcome:
    """Show the torch versions, each compared with this machine; with --torch only that one."""
    lines = list_versions(request)
    return Outcome({"versions": lines}, versions_text(lines, detail=bool(request.torch)))


def list_versions(request: BuildRequest) -> tuple[VersionLine, ...]:
    """Return the table of torch versions, or the row of the requested one."""
    from torchbuild_tasks.context import look
    from torchbuild_tasks.plan.torch_ref import read_word

    question = look(request)
    lines = version_lines(question.catalog, question.facts)
    if not request.torch:
        return lines
    row = read_word(request.torch, question.catalog).row
    return tuple(line for line in lines if line.version == row.version)
