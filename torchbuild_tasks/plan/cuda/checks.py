"""Checks of a CUDA build: its list of architectures, its toolkit, and whether these go with this torch."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from torchbuild_tasks.catalog.match import admits, series
from torchbuild_tasks.model import Finding
from torchbuild_tasks.plan.cuda.archs import (
    MANY,
    NAME,
    arch_list,
    capability,
    capability_for,
    is_known,
    known_archs,
    missing_devices,
)
from torchbuild_tasks.plan.cuda.chosen import Arch, Capability, ChosenArchs, ChosenToolkit, Device
from torchbuild_tasks.plan.cuda.toolkit import MANAGED, ROOTS, cuda_row, torch_rows, why_unusable
from torchbuild_tasks.plan.cuda.variables import cudnn_version
from torchbuild_tasks.plan.jetson import board
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import is_cuda

ARCHS_ID = "architectures"
TOOLKIT_ID = "cuda-toolkit"


def check_archs(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> tuple[Finding, ...]:
    """Report every problem of the list at once."""
    if archs.problem:
        fix = "Write for example --arch '8.6;9.0+PTX', a family such as Ampere, or auto, native or common."
        return (Finding(id=ARCHS_ID, status="error", text=archs.problem, fix=fix),)
    if archs.choice is None:
        return ()
    found = [finding for arch in archs.archs for finding in _check_one(question, chosen, arch)]
    found += _check_devices(question, chosen, archs, gpus)
    if len(archs.archs) > MANY:
        text = (
            f"{len(archs.archs)} architectures: libtorch_cuda may grow too large to be linked "
            '("relocation truncated to fit")'
        )
        found.append(Finding(id=ARCHS_ID, status="warn", text=text, fix="Name fewer of them: --arch auto"))
    if archs.guessed:
        text = f"no GPU is known here; {archs.choice.value} are compiled"
        fix = "Name that of the GPU which will run it, and save most of the time: --arch 8.6"
        found.append(Finding(id=ARCHS_ID, status="warn", text=text, fix=fix))
    if not found:
        text = f"CUDA {chosen.version} compiles for {archs.choice.value}"
        found.append(Finding(id=ARCHS_ID, status="ok", text=text))
    return tuple(found)


def _check_one(question: Question, chosen: ChosenToolkit, arch: Arch) -> Iterator[Finding]:
    known, code = known_archs(question, chosen), arch.capability
    if known and code.plain not in known:
        yield _not_compiled(question, chosen, code, known)
        return
    row = cuda_row(question, chosen.version)
    if row and str(code.plain) in row.deprecated:
        text = f"CUDA {chosen.version} compiles for {code.plain} with a warning, and a later one will not"
        yield Finding(id=ARCHS_ID, status="warn", text=text)
    if not is_known(question, code, "build"):
        text = f"the build of torch {question.row.version} cannot read {code} in {NAME}"
        fix = "Take a newer torch, or PTX of an older architecture: --arch 9.0+PTX"
        yield Finding(id=ARCHS_ID, status="error", text=text, fix=fix)
    elif not is_known(question, code, "torch"):
        text = f"torch {question.row.version} does not know {code}; its extensions will refuse it"
        fix = "Take a newer torch, or PTX of an older architecture: --arch 9.0+PTX"
        yield Finding(id=ARCHS_ID, status="warn", text=text, fix=fix)


def _not_compiled(
    question: Question, chosen: ChosenToolkit, code: Capability, known: tuple[Capability, ...]
) -> Finding:
    span = f"CUDA {chosen.version} compiles for {', '.join(map(str, known))}"
    able = _able(question, code)
    if not able:
        text = f"no CUDA toolkit that is known compiles for {code}; {span}"
        return Finding(
            id=ARCHS_ID, status="error", text=text, fix="Look up the compute capability of the GPU."
        )
    first, last = able[0], able[-1]
    text = f"CUDA {chosen.version} does not compile for {code}; CUDA {first} to {last} do. {span}"
    wanted = last if chosen.version and last < chosen.version else first
    fix = f"Use such a toolkit, for example --cuda-toolkit pypi:{wanted}, or another --arch."
    if code.plain < known[-1]:
        return Finding(id=ARCHS_ID, status="error", text=text, fix=fix)
    below = [each for each in known if each.major == code.major] or list(known)
    return Finding(id=ARCHS_ID, status="error", text=text, fix=f"{fix} Or PTX: --arch {below[-1]}+PTX")


def _able(question: Question, code: Capability) -> list[Version]:
    """Return the toolkits that compile for a capability, under the name that each has for it."""
    return sorted(
        Version(row.version)
        for row in question.catalog.cuda
        if capability_for(question, code, Version(row.version)).plain
        in {capability(a).plain for a in row.archs}
    )


def _check_devices(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> Iterator[Finding]:
    for device in missing_devices(question, archs.archs, chosen.version, gpus):
        text = (
            f"{device.name} has compute capability {device.capability}, and {NAME}={arch_list(archs.archs)} "
            'holds nothing that it can run: torch would say "no kernel image is available"'
        )
        yield Finding(
            id=ARCHS_ID,
            status="warn",
            text=text,
            fix="Add it unless torch is for another machine: --arch auto",
        )


# ---------------- the toolkit


def check_toolkit(question: Question, chosen: ChosenToolkit) -> tuple[Finding, ...]:
    """Report every finding about the toolkit; nothing in a CPU build."""
    if not is_cuda(question):
        return ()
    if chosen.problem:
        fix = f"{_others(question)}Name one with --cuda-toolkit PATH, or {_suggested(question)}"
        return (Finding(id=TOOLKIT_ID, status="error", text=chosen.problem, fix=fix),)
    if chosen.choice is None:
        return (_none(question, chosen),)
    findings = [*_contradictions(question, chosen), *_check_torch(question, chosen)]
    if not findings:
        text = f"CUDA {chosen.version or 'of unknown version'} ({chosen.choice.value})"
        findings.append(Finding(id=TOOLKIT_ID, status="ok", text=text))
    return (*findings, *_check_cudnn(question, chosen))


def _none(question: Question, chosen: ChosenToolkit) -> Finding:
    looked = f" (looked in {'; '.join(question.cuda.looked)})" if question.cuda.looked else ""
    text = f"no CUDA toolkit with nvcc was found{looked}"
    if chosen.passed_over:
        text = f"no CUDA toolkit here can compile: {'; '.join(chosen.passed_over)}"
    fix = f"Name one with --cuda-toolkit PATH, or {_suggested(question)}"
    return Finding(id=TOOLKIT_ID, status="error", text=text, fix=fix)


def _others(question: Question) -> str:
    able = [t for t in question.cuda.toolkits if not why_unusable(t)]
    if not able:
        return ""
    return f"Usable here: {', '.join(f'{t.version} ({t.path})' for t in able)}. "


def _suggested(question: Question) -> str:
    """Say how to get a fitting toolkit without an administrator; on boards with CUDA of their own, theirs."""
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
            id=TOOLKIT_ID,
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
        findings.append(Finding(id=TOOLKIT_ID, status="error" if row.refuse else "warn", text=text, fix=fix))
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
