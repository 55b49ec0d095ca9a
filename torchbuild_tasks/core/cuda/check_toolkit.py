"""Whether there is a toolkit for this build, and whether it goes with this torch."""

from __future__ import annotations

from packaging.version import Version

from torchbuild_tasks.core.cuda.parts import cudnn_version
from torchbuild_tasks.core.cuda.toolkit import MANAGED, ROOTS, ChosenToolkit, torch_rows, usable
from torchbuild_tasks.core.cuda.wanted import is_cuda
from torchbuild_tasks.core.jetson import board
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import admits, series
from torchbuild_tasks.model import Finding

ID = "cuda-toolkit"


def check_toolkit(question: Question, chosen: ChosenToolkit) -> tuple[Finding, ...]:
    """Every finding about the toolkit; nothing in a CPU build."""
    if not is_cuda(question):
        return ()
    if chosen.problem:
        fix = f"{_others(question)}Name one with --cuda-toolkit PATH, or {_suggested(question)}"
        return (Finding(id=ID, status="error", text=chosen.problem, fix=fix),)
    if chosen.choice is None:
        return (_none(question, chosen),)
    findings = [*_contradictions(question, chosen), *_check_torch(question, chosen)]
    if not findings:
        text = f"CUDA {chosen.version or 'of unknown version'} ({chosen.choice.value})"
        findings.append(Finding(id=ID, status="ok", text=text))
    return (*findings, *_check_cudnn(question, chosen))


def _none(question: Question, chosen: ChosenToolkit) -> Finding:
    looked = f" (looked in {'; '.join(question.cuda.looked)})" if question.cuda.looked else ""
    text = f"no CUDA toolkit with nvcc was found{looked}"
    if chosen.passed_over:
        text = f"no CUDA toolkit here can compile: {'; '.join(chosen.passed_over)}"
    fix = f"Name one with --cuda-toolkit PATH, or {_suggested(question)}"
    return Finding(id=ID, status="error", text=text, fix=fix)


def _others(question: Question) -> str:
    able = [t for t in question.cuda.toolkits if not usable(t)]
    if not able:
        return ""
    return f"Usable here: {', '.join(f'{t.version} ({t.path})' for t in able)}. "


def _suggested(question: Question) -> str:
    """How to get a fitting toolkit: without an administrator, but for boards that have CUDA of their own."""
    known = board(question)
    if known is not None and not known.sbsa:
        return "install JetPack's: sudo apt install nvidia-jetpack"
    best = next((row.best for row in torch_rows(question) if row.best), "")
    releases = {row.cuda for row in question.catalog.part if "." in row.cuda}
    made = [str(one) for one in sorted({Version(series(release)) for release in releases})]
    return f"have one made: --cuda-toolkit {MANAGED}{best if best in made else made[-1] if made else ''}"


def _contradictions(question: Question, chosen: ChosenToolkit) -> list[Finding]:
    if not question.request.cuda_toolkit:
        return []
    said = question.assignments
    return [
        Finding(
            id=ID,
            status="error",
            text=f"--cuda-toolkit {question.request.cuda_toolkit} and --set {name}={said[name]} contradict",
            fix="Give one of them.",
        )
        for name in ROOTS
        if name in said and said[name] != chosen.root
    ]


def _check_torch(question: Question, chosen: ChosenToolkit) -> list[Finding]:
    findings = []
    for row in torch_rows(question):
        if chosen.version is None or admits(row.cuda, chosen.version):
            continue
        text = f"torch {question.row.version} builds with CUDA {row.cuda}, and this is {chosen.version}"
        if row.because:
            text += f": {row.because}"
        fix = f"Take another toolkit, or {_suggested(question)}"
        findings.append(Finding(id=ID, status="error" if row.refuse else "warn", text=text, fix=fix))
    return findings


def _check_cudnn(question: Question, chosen: ChosenToolkit) -> list[Finding]:
    """cuDNN's version against what this torch was made for."""
    version = cudnn_version(question, chosen)
    for row in torch_rows(question):
        if row.cudnn and version and not admits(row.cudnn, version):
            text = f"torch {question.row.version} is made for cuDNN {row.cudnn}, and {version} was found"
            fix = "Name another one with CUDNN_ROOT, or --set USE_CUDNN=0."
            return [Finding(id="cudnn", status="warn", text=text, fix=fix)]
    return []
