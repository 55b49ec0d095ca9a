"""Check cuDNN: its version against torch, toolkit and GPUs, and what is lost without one."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from torchbuild_tasks.catalog.cuda import CudnnRow
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.model import Finding, Status
from torchbuild_tasks.plan.cuda.archs import capability, wanted_devices
from torchbuild_tasks.plan.cuda.devices import visible_devices
from torchbuild_tasks.plan.cuda.toolkit import torch_rows
from torchbuild_tasks.plan.cuda.values import OR_ADVISED, ChosenToolkit, Device
from torchbuild_tasks.plan.cuda.variables import (
    cudnn_misfit,
    cudnn_row,
    cudnn_version,
    has_library,
    is_named,
)
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off


def check_cudnn(question: Question, chosen: ChosenToolkit, gpus: tuple[Device, ...]) -> tuple[Finding, ...]:
    """Check cuDNN's version against torch, toolkit and GPUs, and warn where there is no cuDNN.

    One that does not fit is left out; where it is asked for, the build would end with it.
    """
    spec = cudnn_of_torch(question)
    asked = decide(question, "USE_CUDNN")
    if question.facts.tree.sample or (asked and is_off(asked.value)):
        return ()
    if not has_library(question, chosen, "cudnn"):
        return (_no_cudnn(question, spec),)
    version = cudnn_version(question, chosen)
    row = cudnn_row(question, version)
    text = cudnn_misfit(question, chosen)
    status: Status = "warn"
    seen = wanted_devices(question, chosen.version, visible_devices(question, gpus))
    left_out = [each for each in seen if row and not _has_code(row, each)]
    if text and (asked or is_named(question, "cudnn")):
        status = "error"
    elif text:
        text += ". Torch is built without it, and its convolutions are slow"
    elif left_out and row:
        text = f"cuDNN {version} holds no code for {left_out[0].name} ({left_out[0].capability}), only "
        text += f"{_range_of(row)}: convolutions would fail there"
    if not text:
        return ()
    rows = [
        each
        for each in question.catalog.cudnn
        if chosen.version and admits(each.cuda, chosen.version) and _overlap(each.cudnn, spec)
    ]
    able = [each.cudnn for each in rows if all(_has_code(each, device) for device in left_out)]
    fix = "Do without it: --set USE_CUDNN=0"
    if able or not rows:
        here = _join(able) or spec
        wanted = f"{spec} (for this torch), {here}" if spec and here != spec else here or "any"
        fix = f"Name the folder of a cuDNN {wanted} (for {chosen.name} and the GPUs here): "
        fix += "--set CUDNN_ROOT=FOLDER; or do without it: --set USE_CUDNN=0"
    elif left_out:
        text += f"; no cuDNN for this torch and {chosen.name} holds any for it"
    return (Finding(id="cudnn", status=status, text=text, fix=fix + OR_ADVISED),)


def cudnn_of_torch(question: Question) -> str:
    """Return the versions of cuDNN that this torch takes; "" where no row says."""
    return next((row.cudnn for row in torch_rows(question) if row.cudnn), "")


def _join(specs: list[str]) -> str:
    """Return ranges as one text; where one ends as the next begins (>=8.8,<9 and >=9), they are one."""
    joined: list[str] = []
    for spec in specs:
        before, _, end = joined[-1].rpartition(",<") if joined else ("", "", "")
        start, _, rest = spec.partition(",")
        if before and start == f">={end}":
            joined[-1] = f"{before},{rest}".rstrip(",")
        else:
            joined.append(spec)
    return " or ".join(joined)


def _overlap(one: str, other: str) -> bool:
    """Say whether some version is in two ranges: then the beginning of one is in the other."""
    begins = [
        next((each.version for each in SpecifierSet(spec) if each.operator == ">="), "0")
        for spec in (one, other)
    ]
    return bool(admits(one, begins[1]) or admits(other, begins[0]))


def _has_code(row: CudnnRow, device: Device) -> bool:
    """Say whether these versions of cuDNN run on a device; true where nothing says no.

    Machine code of one major generation runs on all newer GPUs of it.
    """
    if not device.capability:
        return True
    here = capability(str(device.capability))
    too_old = row.oldest and here < capability(row.oldest)
    too_new = row.newest and here[0] > capability(row.newest)[0]
    return not (too_old or too_new)


def _range_of(row: CudnnRow) -> str:
    """Return the compute capabilities of a row as words."""
    if row.oldest and row.newest:
        return f"from {row.oldest} to {row.newest}"
    return f"up to {row.newest}" if row.newest else f"from {row.oldest} on"


def _no_cudnn(question: Question, wanted: str) -> Finding:
    looked = "the toolkit, the folders that variables name, those of the system, conda and NVIDIA's wheels"
    text = (
        f"no cuDNN was found (looked in {looked}): torch is built without it, and its convolutions are slow"
    )
    half = next((each for each in question.cuda.libraries if each.name == "cudnn"), None)
    if half:
        part = "headers" if half.include else "library"
        text = f"cuDNN in {half.include or half.library} has its {part} alone, and CMake wants both: "
        text += "torch is built without it, and its convolutions are slow"
    elif decide(question, "USE_CUDNN"):
        text = f"USE_CUDNN is on, and no cuDNN was found (looked in {looked}): CMake turns it off with a "
        text += "warning, torch is built without it, and its convolutions are slow"
    version = f" {wanted}" if wanted else ""
    fix = f"Name the folder of a cuDNN{version}: --set CUDNN_ROOT=FOLDER; or do without it: --set USE_CUDNN=0"
    fix += OR_ADVISED
    return Finding.warn("cudnn", text, fix)
