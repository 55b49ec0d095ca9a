"""Whether the architectures can be compiled, run where they shall, and are not too many."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from torchbuild_tasks.core.cuda.arch_list import Arch, Capability, capability, spelled
from torchbuild_tasks.core.cuda.archs import (
    MANY,
    NAME,
    ChosenArchs,
    is_known,
    known_archs,
    missing_devices,
    renamed,
)
from torchbuild_tasks.core.cuda.devices import Device
from torchbuild_tasks.core.cuda.toolkit import ChosenToolkit, cuda_row
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.model import Finding

ID = "architectures"


def check_archs(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> tuple[Finding, ...]:
    """Every problem of the list at once."""
    if archs.problem:
        fix = "Write for example --arch '8.6;9.0+PTX', a family such as Ampere, or auto, native or common."
        return (Finding(id=ID, status="error", text=archs.problem, fix=fix),)
    if archs.choice is None:
        return ()
    found = [finding for arch in archs.archs for finding in _check_one(question, chosen, arch)]
    found += _check_devices(question, chosen, archs, gpus)
    if len(archs.archs) > MANY:
        text = (
            f"{len(archs.archs)} architectures: libtorch_cuda may grow too large to be linked "
            '("relocation truncated to fit")'
        )
        found.append(Finding(id=ID, status="warn", text=text, fix="Name fewer of them: --arch auto"))
    if archs.guessed:
        text = f"no GPU is known here; {archs.choice.value} are compiled"
        fix = "Name that of the GPU which will run it, and save most of the time: --arch 8.6"
        found.append(Finding(id=ID, status="warn", text=text, fix=fix))
    if not found:
        text = f"CUDA {chosen.version} compiles for {archs.choice.value}"
        found.append(Finding(id=ID, status="ok", text=text))
    return tuple(found)


def _check_one(question: Question, chosen: ChosenToolkit, arch: Arch) -> Iterator[Finding]:
    known, code = known_archs(question, chosen), arch.capability
    if known and code.plain not in known:
        yield _not_compiled(question, chosen, code, known)
        return
    row = cuda_row(question, chosen.version)
    if row and str(code.plain) in row.deprecated:
        text = f"CUDA {chosen.version} compiles for {code.plain} with a warning, and a later one will not"
        yield Finding(id=ID, status="warn", text=text)
    if not is_known(question, code, "build"):
        text = f"the build of torch {question.row.version} cannot read {code} in {NAME}"
        fix = "Take a newer torch, or PTX of an older architecture: --arch 9.0+PTX"
        yield Finding(id=ID, status="error", text=text, fix=fix)
    elif not is_known(question, code, "torch"):
        text = f"torch {question.row.version} does not know {code}; its extensions will refuse it"
        fix = "Take a newer torch, or PTX of an older architecture: --arch 9.0+PTX"
        yield Finding(id=ID, status="warn", text=text, fix=fix)


def _not_compiled(
    question: Question, chosen: ChosenToolkit, code: Capability, known: tuple[Capability, ...]
) -> Finding:
    span = f"CUDA {chosen.version} compiles for {', '.join(map(str, known))}"
    able = _able(question, code)
    if not able:
        text = f"no CUDA toolkit that is known compiles for {code}; {span}"
        return Finding(id=ID, status="error", text=text, fix="Look up the compute capability of the GPU.")
    first, last = able[0], able[-1]
    text = f"CUDA {chosen.version} does not compile for {code}; CUDA {first} to {last} do. {span}"
    wanted = last if chosen.version and last < chosen.version else first
    fix = f"Use such a toolkit, for example --cuda-toolkit pypi:{wanted}, or another --arch."
    if code.plain < known[-1]:
        return Finding(id=ID, status="error", text=text, fix=fix)
    below = [each for each in known if each.major == code.major] or list(known)
    return Finding(id=ID, status="error", text=text, fix=f"{fix} Or PTX: --arch {below[-1]}+PTX")


def _able(question: Question, code: Capability) -> list[Version]:
    """The toolkits that compile for a capability, under the name that each has for it."""
    return sorted(
        Version(row.version)
        for row in question.catalog.cuda
        if renamed(question, code, Version(row.version)).plain in {capability(a).plain for a in row.archs}
    )


def _check_devices(
    question: Question, chosen: ChosenToolkit, archs: ChosenArchs, gpus: tuple[Device, ...]
) -> Iterator[Finding]:
    for device in missing_devices(question, archs.archs, chosen.version, gpus):
        text = (
            f"{device.name} has compute capability {device.capability}, and {NAME}={spelled(archs.archs)} "
            'holds nothing that it can run: torch would say "no kernel image is available"'
        )
        yield Finding(
            id=ID, status="warn", text=text, fix="Add it unless torch is for another machine: --arch auto"
        )
