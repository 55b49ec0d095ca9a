"""Judge whether the driver of this machine can run what the toolkit makes.

A build needs no driver, so an old one only warns. Three numbers count: the driver that came with
the toolkit runs all of it, the oldest of its major release runs it without PTX (minor-version
compatibility), and below that only NVIDIA's package cuda-compat helps, on cards for data centres.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from torchbuild_tasks.catalog.cuda import CudaRow
from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.model import Driver, Finding
from torchbuild_tasks.plan.cuda.archs import (
    arch_list,
    are_named,
    capability,
    missing_devices,
    wanted_devices,
)
from torchbuild_tasks.plan.cuda.devices import (
    branch_of,
    driver_version,
    served_devices,
    visible_devices,
)
from torchbuild_tasks.plan.cuda.toolkit import cuda_row
from torchbuild_tasks.plan.cuda.values import ADVISED, OR_ADVISED, Arch, Device
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace

ID = "driver"
MISMATCH = "version mismatch"
IN_WINDOWS = " in Windows, not in WSL"
_DRIVERS_OWN = ("nvml", "nvidia-smi")  # the probes that ask the driver
# What an error of NVML or nvidia-smi means on Linux (nvml.h, nvmlErrorString; "Unknown Error": NVIDIA's
# Container Toolkit, Troubleshooting, Containers losing access to GPUs).
_WAYS = {
    "not loaded|couldn't communicate": "Load its module: sudo modprobe nvidia. Where that fails, the running "
    "kernel has none (install the driver's package again, or its DKMS), or Secure Boot refuses it "
    "(mokutil --sb-state).",
    "permission": "See who may open its devices: ls -l /dev/nvidia*; a container is started with its GPUs.",
    "is lost|fallen off": "Restart the machine; the system's log (dmesg) has the reason as an Xid.",
    "unknown error": "Restart the container, which has lost its devices (systemctl daemon-reload takes "
    "them); without a container, reboot.",
}


def check_driver(
    question: Question, cuda: Version | None, gpus: tuple[Device, ...], archs: tuple[Arch, ...] = ()
) -> tuple[Finding, ...]:
    """Check the driver for programs of `cuda` (major and minor; None where not known) for these `archs`."""
    facts, gpus = question.cuda, wanted_devices(question, cuda, gpus)
    driver = facts.driver or Driver()
    if facts.driver is None and facts.tegra is None:
        return (_no_driver(question, cuda, gpus, archs),)
    if mismatch := _mismatch(question, driver):
        return mismatch
    reported = (_driver_problem(question, driver.problem),) if driver.problem else ()
    if facts.tegra is not None:
        return reported or (_of_jetson(question, driver),)
    version = driver_version(question)
    if version is None:
        return reported or (_no_driver(question, cuda, gpus, archs),)
    unknown = (*_check_unknown(question, gpus, version, cuda, archs),)
    compared = _compare(question, gpus, driver, version, cuda, archs)
    return (
        *reported,
        *_compat_library(question, gpus, driver),
        *unknown,
        *_check_left_out(question, gpus, version),
        # An older toolkit does not help a GPU that the driver does not know.
        replace(compared, fix=unknown[-1].fix) if unknown and compared.status == "warn" else compared,
    )


def _check_unknown(
    question: Question, gpus: tuple[Device, ...], version: str, cuda: Version | None, archs: tuple[Arch, ...]
) -> Iterator[Finding]:
    """Report GPUs that are newer than the driver, with one that knows them all and runs `cuda`, too."""
    needs = {device: _first_driver(question, device) for device in gpus}
    unknown = {device: each for device, each in needs.items() if each and not _is_from(version, each)}
    update = _update_for(question, cuda, gpus, archs, *unknown.values())
    for device in unknown:
        text = (
            f"driver {version} is older than {device.name} ({device.capability}) and does not know it: "
            "torch can be built, but would not find it here"
        )
        yield Finding.warn(ID, text, f"{update}.")


def _first_driver(question: Question, device: Device) -> str:
    """Return the first driver that knows a GPU, that of the first CUDA that compiles for it ("" for none)."""
    wanted = str(capability(device.capability).plain) if device.capability else ""
    row = next((row for row in question.catalog.cuda if wanted in row.archs), None)
    needed = _own(question, Version(row.version)) if row else ""
    if any(seen.probe in _DRIVERS_OWN for seen in device.answers):
        return needed.partition(".")[0]  # some releases of that branch came before that CUDA
    return needed


def _check_left_out(question: Question, gpus: tuple[Device, ...], version: str) -> Iterator[Finding]:
    """Report GPUs that a driver of this branch does not serve any more.

    Beside one that it serves nothing is compiled for them unless that is asked for.
    """
    served = served_devices(question, gpus)
    for device in gpus:
        row = branch_of(question, device)
        if row is None or not _is_from(version, row.without):
            continue
        text = f"driver {version} leaves out {device.name} ({device.capability}), "
        text += f"whose last branch is {row.last}"
        if device not in served and not are_named(question):
            yield Finding.ok(ID, f"{text}: nothing is compiled for it")
            continue
        text += ": torch can be built, but would not find that GPU here"
        fix = f"Install a driver of the branch {row.last}."
        if newer := [each for each in served if not _is_from(row.without, _first_driver(question, each))]:
            fix = f"No driver serves it and {newer[0].name}: leave {device.capability} out of --arch."
        yield Finding.warn(ID, text, fix)


def _no_driver(
    question: Question, cuda: Version | None, gpus: tuple[Device, ...], archs: tuple[Arch, ...]
) -> Finding:
    """Report that there is no driver: a warning where there is a GPU."""
    limit = _oldest(question, cuda) or _own(question, cuda)
    needed = f"running the result needs {limit} or later" if limit else "running needs one"
    text = f"no NVIDIA driver was found; the build works without one, and {needed}"
    fix = ""
    if gpus:
        text = f"{gpus[0].name} is here, and {text}"
        update = _update_for(question, cuda, gpus, archs)
        fix = f"{update}; a container has the host's, when it is started with its GPUs."
    if question.cuda.wsl:
        text += ". In WSL it is that of Windows, whose libraries lie in /usr/lib/wsl/lib"
        fix = "Install NVIDIA's driver in Windows, and none in this Linux; then: wsl --shutdown"
    return Finding(id=ID, status="warn" if gpus else "unknown", text=text, fix=fix)


def _driver_problem(question: Question, problem: str) -> Finding:
    text = f"the driver says: {problem}. Torch can be built, but it will not run here like this"
    fix = "Look at nvidia-smi, and at the system's log (dmesg)."
    if question.facts.host.os == "linux" and not question.cuda.wsl:
        fix = next((way for words, way in _WAYS.items() if re.search(words, problem, re.IGNORECASE)), fix)
    return Finding.warn(ID, text, fix)


def _of_jetson(question: Question, driver: Driver) -> Finding:
    tegra = question.cuda.tegra
    release = f"L4T {tegra.l4t}" if tegra and tegra.l4t else "the board's system software"
    text = f"driver {driver.version or ''} belongs to {release}, whose JetPack decides which CUDA runs"
    return Finding.ok(ID, " ".join(text.split()))


def _mismatch(question: Question, driver: Driver) -> tuple[Finding, ...]:
    """Report a kernel module of another version than the library: an update without a reboot."""
    is_reported = MISMATCH in (driver.problem or "").casefold()
    if not is_reported and (not _differs(driver) or _answers(question)):
        return ()
    versions = f"the kernel has loaded {driver.module or 'another version'}, and the library is "
    versions += driver.library or "of another one"
    text = (
        f"the parts of the NVIDIA driver do not match: {versions}. Torch can be built, but no CUDA program "
        'runs here: NVML says "Driver/library version mismatch", torch says '
        '"Error 803: system has unsupported display driver / cuda driver combination"'
    )
    if driver.problem:
        text += f". The driver itself says: {driver.problem}"
    fix = (
        "Reboot; or end every program that uses the GPU, then "
        "sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"
    )
    return (Finding.warn(ID, text, fix),)


def _differs(driver: Driver) -> bool:
    module = parse_version(driver.module)
    library = parse_version(driver.library)
    return module is not None and library is not None and module != library


def _answers(question: Question) -> bool:
    """Say whether the driver answers; then the library of another version is that of cuda-compat."""
    return any(seen.probe in _DRIVERS_OWN for seen in question.cuda.gpus)


def _compat_library(question: Question, gpus: tuple[Device, ...], driver: Driver) -> tuple[Finding, ...]:
    """Check NVIDIA's cuda-compat where it is in use: a later libcuda on an older kernel module."""
    if not _differs(driver):
        return ()
    text = f"libcuda {driver.library} of cuda-compat stands before the driver's own ({driver.module})"
    if other := _not_for_datacenter(question, gpus):
        text += f": {_error_804(other)}"
        fix = "Remove the folder of cuda-compat from LD_LIBRARY_PATH, and update the driver instead."
        return (Finding.warn(ID, text, fix),)
    return (Finding.ok(ID, text),)


def _error_804(other: list[Device]) -> str:
    names = ", ".join(dict.fromkeys(device.name for device in other))
    return (
        f"forward compatibility works on cards for data centres only, and {names} is none: torch would say "
        '"Error 804: forward compatibility was attempted on non supported HW"'
    )


def _not_for_datacenter(question: Question, gpus: tuple[Device, ...]) -> list[Device]:
    return [device for device in visible_devices(question, gpus) if device.datacenter is False]


def _compare(
    question: Question,
    gpus: tuple[Device, ...],
    driver: Driver,
    version: str,
    cuda: Version | None,
    archs: tuple[Arch, ...],
) -> Finding:
    own = _own(question, cuda)
    oldest = _oldest(question, cuda)
    if cuda is None or not (own or oldest):
        newest = f", which runs CUDA up to {driver.cuda}" if driver.cuda else ""
        return Finding.ok(ID, f"driver {version}{newest}")
    if _is_from(version, own) or _runs(driver, cuda):
        return Finding.ok(ID, f"driver {version} runs all of CUDA {cuda}")
    if _is_from(version, oldest or own):
        return _without_ptx(question, gpus, version, own, cuda, archs)
    return _too_old(question, gpus, version, cuda, archs)


def _is_from(version: str, limit: str) -> bool:
    """Say whether a driver is of this version or later; false where no limit is known."""
    first = parse_version(version)
    wanted = parse_version(limit)
    return first is not None and wanted is not None and first >= wanted


def _without_ptx(
    question: Question,
    gpus: tuple[Device, ...],
    version: str,
    own: str,
    cuda: Version,
    archs: tuple[Arch, ...],
) -> Finding:
    since = f"came with {own}" if own else "is of a later release"
    text = (
        f"driver {version} is older than CUDA {cuda}, which {since}: programs run by minor-version "
        f"compatibility, but PTX does not"
    )
    if newer := _needs_ptx(gpus, cuda_row(question, cuda)):
        text += (
            f". {newer.name} ({newer.capability}) is newer than this toolkit and could only run PTX: "
            '"the provided PTX was compiled with an unsupported toolchain"'
        )
        fix = f"{_update(question, own)}{OR_ADVISED}."
        return Finding.warn(ID, text, fix)
    if bare := _without_cubin(question, gpus, cuda, archs):
        text += (
            f". {bare.name} ({bare.capability}) has no code of its own in {arch_list(archs)} and could only "
        )
        text += 'run PTX: "the provided PTX was compiled with an unsupported toolchain"'
        return Finding.warn(ID, text, f"{_update(question, own)}, or compile for it: --arch auto.")
    return Finding.ok(ID, f"{text}; the GPUs here have code of their own")


def _without_cubin(
    question: Question, gpus: tuple[Device, ...], cuda: Version, archs: tuple[Arch, ...]
) -> Device | None:
    """Return the first GPU for which the list has PTX alone."""
    cubins = tuple(Arch(capability=arch.capability) for arch in archs)
    return next(missing_devices(question, cubins, cuda, gpus), None) if cubins else None


def _needs_ptx(gpus: tuple[Device, ...], row: CudaRow | None) -> Device | None:
    """Return the first GPU for which the toolkit compiles no binary code, so that only PTX is left."""
    if row is None:
        return None
    archs = [capability(text).plain for text in row.archs]
    for device in gpus:
        if device.capability:
            wanted = capability(device.capability).plain
            if wanted > max(archs) and not any(each.major == wanted.major for each in archs):
                return device
    return None


def _too_old(
    question: Question, gpus: tuple[Device, ...], version: str, cuda: Version, archs: tuple[Arch, ...]
) -> Finding:
    needed = _oldest(question, cuda) or _own(question, cuda)
    text = (
        f"driver {version} is too old for CUDA {cuda}, which needs {needed} or later: torch can be "
        'built, but here it would say "CUDA driver version is insufficient for CUDA runtime version"'
    )
    if question.facts.host.os != "windows" and not question.cuda.wsl:
        text += f". {_forward(question, gpus, cuda)}"
    fix = f"{_update_for(question, cuda, gpus, archs)}{OR_ADVISED}."
    if last := _last_branch(question, gpus, needed):
        text += f". {last[0].name} is served up to the branch {last[1]} only: no driver runs that CUDA there"
        fix = ADVISED
    return Finding.warn(ID, text, fix)


def _last_branch(question: Question, gpus: tuple[Device, ...], needed: str) -> tuple[Device, str] | None:
    """Return a GPU that no driver from `needed` on serves any more, and its last branch."""
    for device in gpus:
        if (row := branch_of(question, device)) and _is_from(needed, row.without):
            return device, row.last
    return None


def _update_for(
    question: Question, cuda: Version | None, gpus: tuple[Device, ...], archs: tuple[Arch, ...], *others: str
) -> str:
    """Advise a driver that runs what is made for these GPUs, and is none of `others` too old.

    PTX needs that of the toolkit itself; where its number is not known, only the newest is sure to do.
    """
    own = _own(question, cuda)
    oldest = _oldest(question, cuda)
    ptx = (
        cuda
        and oldest
        and (_needs_ptx(gpus, cuda_row(question, cuda)) or _without_cubin(question, gpus, cuda, archs))
    )
    runs = own if ptx and own else oldest or own
    least = max(filter(None, (*others, runs)), key=Version, default="")
    return _update(question, least, "the newest driver," if ptx and not own else "driver")


def _update(question: Question, version: str, driver: str = "driver") -> str:
    update = f"Install {driver} {version} or later" if version else "Install or update the driver"
    return update + (IN_WINDOWS if question.cuda.wsl else "")


def _forward(question: Question, gpus: tuple[Device, ...], cuda: Version) -> str:
    package = f"NVIDIA's package cuda-compat-{cuda.major}-{cuda.minor}"
    if other := _not_for_datacenter(question, gpus):
        return f"{package} does not help: {_error_804(other)}"
    if any(device.datacenter for device in visible_devices(question, gpus)):
        return f"{package} would let it run (forward compatibility: the cards here are for data centres)"
    return f"{package} helps on cards for data centres only; on others it ends with Error 804"


def _runs(driver: Driver, cuda: Version) -> bool:
    """Say whether the driver reports that it runs this series."""
    newest = parse_version(driver.cuda)
    return newest is not None and newest.release[:2] >= cuda.release[:2]


def _own(question: Question, cuda: Version | None) -> str:
    """Return the driver that the series came with; "" where that is not known."""
    row = cuda_row(question, cuda) if cuda else None
    return _for_host(question, row.driver_linux, row.driver_windows) if row else ""


def _oldest(question: Question, cuda: Version | None) -> str:
    """Return the oldest driver of the major release; "" where there is no minor-version compatibility."""
    for row in question.catalog.cuda_driver:
        if cuda and row.cuda == str(cuda.major):
            return _for_host(question, row.linux, row.windows)
    return ""


def _for_host(question: Question, linux: str, windows: str) -> str:
    """Return the number of this system; WSL uses the driver of Windows."""
    return windows if question.cuda.wsl or question.facts.host.os == "windows" else linux
