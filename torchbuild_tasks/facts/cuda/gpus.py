"""The GPUs and their driver, asked in every way that does not trust another."""

from __future__ import annotations

import msgspec

from torchbuild_tasks.facts.cuda import pci, pci_windows
from torchbuild_tasks.facts.cuda.kernel import Kernel, look_at_kernel
from torchbuild_tasks.facts.cuda.nvml import Answer, ask_nvml, count
from torchbuild_tasks.facts.cuda.smi import ask_smi
from torchbuild_tasks.facts.cuda.tegra import look_at_tegra
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Driver, GpuSeen, Tegra

WSL = "/usr/lib/wsl"


class Gpus(msgspec.Struct, frozen=True, kw_only=True):
    """What all probes saw, the driver, and how each of them ended."""

    seen: tuple[GpuSeen, ...] = ()
    driver: Driver | None = None
    tegra: Tegra | None = None
    wsl: bool = False
    probes: dict[str, str] = msgspec.field(default_factory=dict)


def look_for_gpus(probe: Probe) -> Gpus:
    """Ask the driver, and look at files meanwhile; nvidia-smi only where NVML saw nothing."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(_ask_driver, probe)
        kernel = look_at_kernel(probe)
        on_bus = pci_windows.look_at_pci(probe) if probe.windows else pci.look_at_pci(probe)
        tegra = None if probe.windows else look_at_tegra(probe)
        return _together(probe, asked.result(), kernel, on_bus, tegra)


def _ask_driver(probe: Probe) -> tuple[Answer, Answer | None]:
    """NVML, then nvidia-smi, which asks NVML as well and so would hang with it."""
    first = ask_nvml(probe)
    return first, None if first.gpus or first.hung else ask_smi(probe)


def _together(
    probe: Probe,
    asked: tuple[Answer, Answer | None],
    kernel: Kernel,
    on_bus: tuple[GpuSeen, ...],
    tegra: Tegra | None,
) -> Gpus:
    nvml, smi = asked
    board = (GpuSeen(probe="device tree", name=tegra.model),) if tegra and tegra.model else ()
    probes = {"nvml": nvml.said}
    if smi is not None:
        probes["nvidia-smi"] = smi.said
    if not probe.windows:
        probes["proc"] = count(len(kernel.gpus))
        probes["device tree"] = tegra.model or "hidden" if tegra else "no Jetson board"
    probes["pci"] = count(len(on_bus))
    release = (probe.uname().release or "").lower()
    return Gpus(
        seen=(*nvml.gpus, *(smi.gpus if smi else ()), *kernel.gpus, *on_bus, *board),
        driver=_driver(nvml, smi, kernel),
        tegra=tegra,
        wsl=not probe.windows and ("microsoft" in release or probe.is_dir(WSL)),
        probes=probes,
    )


def _driver(nvml: Answer, smi: Answer | None, kernel: Kernel) -> Driver | None:
    """The driver by the best that knows its version; None when nothing speaks of one."""
    sources = (
        (nvml.driver, "nvml"),
        (smi.driver if smi else None, "nvidia-smi"),
        (kernel.module, kernel.module_via),
        (kernel.library, "the name of its library"),
    )
    version, found_via = next((source for source in sources if source[0]), (None, ""))
    problem = nvml.problem or (smi.problem if smi else None)
    if version is None and problem is None:
        return None
    return Driver(
        version=version,
        found_via=found_via,
        module=kernel.module,
        library=kernel.library,
        cuda=nvml.cuda or (smi.cuda if smi else None),
        problem=problem,
    )
