"""NVML: what the driver says of itself and of each GPU."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

SCRIPT: Final = Path(__file__).with_name("nvml_probe.py")
NVML_TIMEOUT: Final = 5.0
LIBRARY_NOT_FOUND: Final = 12  # NVML_ERROR_LIBRARY_NOT_FOUND of nvml.h

_BUS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """How a probe that asks the driver ended (`said`), and what it learnt.

    `problem` is an error of the driver itself, rather than that there is none; `hung` says
    that it gave no answer.
    """

    said: str
    gpus: tuple[GpuSeen, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    problem: str | None = None
    hung: bool = False


def ask_nvml(probe: Probe) -> Answer:
    """Ask in a process of its own, for at most `TIMEOUT` seconds."""
    folder = _package()
    if folder is None:
        return Answer(said="the package nvidia-ml-py is not installed")
    # Without -S Python would look at everything that is installed, which takes longer than NVML.
    output = probe.run((sys.executable, "-I", "-S", "-B", str(SCRIPT), folder), timeout=NVML_TIMEOUT)
    if output is None:
        said = f"no answer within {NVML_TIMEOUT:g} s"
        return Answer(said=said, problem=f"NVML gave {said}", hung=True)
    data = _object(output.stdout)
    if data is None:
        lines = (output.stderr.strip() or output.stdout.strip() or "without a word").splitlines()
        said = f"ended with {output.rc}: {lines[-1].strip()[:200]}"
        return Answer(said=said, problem=f"NVML {said}")
    return _read(data, probe.windows)


def bus_of(text: object) -> str | None:
    """A PCI address as the kernel writes it: 0000:01:00.0 for NVML's 00000000:01:00.0."""
    match = _BUS.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def count(number: int, what: str = "GPU") -> str:
    """ "no GPU", "1 GPU", "2 GPUs"."""
    return f"no {what}" if number == 0 else f"{number} {what}{'s' if number > 1 else ''}"


def _package() -> str | None:
    """The folder that pynvml is in, without loading it: a module, once a package."""
    spec = find_spec("pynvml")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent
    return str(path.parent if spec.submodule_search_locations else path)


def _object(stdout: str) -> Mapping[str, Any] | None:
    """The last line, when it is a JSON object."""
    lines = stdout.strip().splitlines()
    try:
        data = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _read(data: Mapping[str, Any], windows: bool) -> Answer:
    if error := data.get("error"):
        if data.get("code") == LIBRARY_NOT_FOUND:
            return Answer(said=f"{'nvml.dll' if windows else 'libnvidia-ml.so.1'} was not found")
        return Answer(said=str(error), problem=str(error))
    devices = data.get("devices")
    errors = data.get("errors")
    gpus = (
        tuple(_nvml_gpu(item) for item in devices if isinstance(item, dict))
        if isinstance(devices, list)
        else ()
    )
    said = count(len(gpus))
    faults = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
    driver = data.get("driver")
    cuda = data.get("cuda")
    return Answer(
        said=f"{said}; {faults}" if faults else said,
        gpus=gpus,
        driver=driver if isinstance(driver, str) else None,
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None,
        problem=faults or None,
    )


def _nvml_gpu(item: Mapping[str, Any]) -> GpuSeen:
    pci = item.get("pci")
    capability = item.get("capability")
    memory = item.get("memory")
    is_pair = isinstance(capability, list) and len(capability) == 2
    return GpuSeen(
        probe="nvml",
        bus=bus_of(item.get("bus")),
        # NVML's number holds the device in its upper half, the vendor in the lower.
        pci_id=f"{pci & 0xFFFF:04x}:{pci >> 16:04x}" if isinstance(pci, int) and pci > 0 else None,
        name=_text(item.get("name")),
        capability=f"{capability[0]}.{capability[1]}" if capability and is_pair else None,
        memory=memory if isinstance(memory, int) else None,
        uuid=_text(item.get("uuid")),
        mig=item.get("mig") is True,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
