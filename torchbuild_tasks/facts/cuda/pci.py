"""Find NVIDIA's GPUs on the PCI bus, which needs no driver: sysfs on Linux."""

from __future__ import annotations

import re
import zlib
from collections.abc import Set

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
# Class 03 of https://pci-ids.ucw.cz: VGA controller, 3D controller (GPUs without a display), any other.
CLASSES = ("0x0300", "0x0302", "0x0380")


def look_at_pci(probe: Probe) -> tuple[GpuSeen, ...]:
    """Return every display controller of NVIDIA's, with chip and name if the system has a list of PCI ids."""
    devices = {bus: ids for bus in probe.children(DEVICES) if (ids := _device(probe, bus))}
    known = read_names(probe, set(devices.values())) if devices else {}
    return tuple(
        GpuSeen(
            probe="pci",
            bus=bus.lower(),
            pci_id=f"10de:{device}",
            chip=known.get(device, (None, None))[0],
            name=known.get(device, (None, None))[1],
        )
        for bus, device in devices.items()
    )


def _device(probe: Probe, bus: str) -> str | None:
    """Return the device id of an NVIDIA GPU ("2204"); None for anything else."""
    folder = probe.join(DEVICES, bus)
    vendor, kind, device = (
        (probe.read(probe.join(folder, file)) or "").strip().lower() for file in ("vendor", "class", "device")
    )
    is_gpu = vendor == NVIDIA and kind.startswith(CLASSES) and device.startswith("0x")
    return device.removeprefix("0x").zfill(4) if is_gpu else None


# ---------------- names, where the system has the list of PCI ids

FILES = (
    "/usr/share/misc/pci.ids",
    "/usr/share/hwdata/pci.ids",
    "/usr/share/pci.ids",
    "/var/lib/pciutils/pci.ids",
    "/usr/share/misc/pci.ids.gz",
    "/usr/share/hwdata/pci.ids.gz",
)
LIMIT = 1 << 25  # bytes; the list has some 1.5 million
# Vendors begin a line, their devices follow after one tab, cards (subsystems) after two.
_NVIDIA = re.compile(r"^10de[ \t].*\n((?:(?:\t|#).*\n?|\n)*)", re.MULTILINE)
_DEVICE = re.compile(r"^\t([0-9a-f]{4})[ \t]+(.+?)[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r"([A-Za-z0-9]+)(?: \S+)* \[(.+)\]")


def read_names(probe: Probe, devices: Set[str]) -> dict[str, tuple[str | None, str]]:
    """Return chip and name of each device id: 2204 -> ("GA102", "GeForce RTX 3090")."""
    section = _NVIDIA.search(next(filter(None, (_text(probe, file) for file in FILES)), ""))
    if section is None:
        return {}
    return {device: _parts(text) for device, text in _DEVICE.findall(section[1]) if device in devices}


def _parts(text: str) -> tuple[str | None, str]:
    """Return the chip and the card in `GA102 [GeForce RTX 3090]`; a name without brackets has no chip."""
    match = _NAMED.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


def _text(probe: Probe, file: str) -> str:
    data = probe.read_bytes(file)
    if data is None:
        return ""
    if file.endswith(".gz"):
        try:
            data = zlib.decompressobj(wbits=31).decompress(data, LIMIT)  # 31: with gzip's header
        except zlib.error:
            return ""
    return data.decode("utf-8", "replace")
