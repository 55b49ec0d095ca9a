"""NVIDIA's GPUs on the PCI bus, which needs no driver: sysfs on Linux."""

from __future__ import annotations

from torchbuild_tasks.facts.cuda.pci_ids import names_of
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
# VGA controller, 3D controller (GPUs without a display), other display controller.
CLASSES = ("0x0300", "0x0302", "0x0380")


def look_at_pci(probe: Probe) -> tuple[GpuSeen, ...]:
    """Every display controller of NVIDIA's; chip and name where the system has a list of PCI ids."""
    found = {bus: ids for bus in probe.children(DEVICES) if (ids := _device(probe, bus))}
    known = names_of(probe, set(found.values())) if found else {}
    return tuple(
        GpuSeen(
            probe="pci",
            bus=bus.lower(),
            pci_id=f"10de:{device}",
            chip=known.get(device, (None, None))[0],
            name=known.get(device, (None, None))[1],
        )
        for bus, device in found.items()
    )


def _device(probe: Probe, bus: str) -> str | None:
    """The device id of an NVIDIA GPU ("2204"); None for anything else."""
    folder = probe.join(DEVICES, bus)
    vendor, kind, device = (
        (probe.read(probe.join(folder, file)) or "").strip().lower() for file in ("vendor", "class", "device")
    )
    is_gpu = vendor == NVIDIA and kind.startswith(CLASSES) and device.startswith("0x")
    return device.removeprefix("0x").zfill(4) if is_gpu else None
