"""Find NVIDIA's GPUs on the PCI bus, which needs no driver: in sysfs on Linux, in the registry on Windows."""

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
    """Return every display controller of NVIDIA's that is present."""
    return _look_at_registry(probe) if probe.windows else _look_at_sysfs(probe)


def _look_at_sysfs(probe: Probe) -> tuple[GpuSeen, ...]:
    """Return them with chip and name, if the system has a list of PCI ids."""
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


# ---------------- names, where Linux has the list of PCI ids

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


# ---------------- Windows

ROOT = "HKLM\\SYSTEM\\CurrentControlSet"
REGISTRY_DEVICES = f"{ROOT}\\Enum\\PCI"
DISPLAY = "{4d36e968-e325-11ce-bfc1-08002be10318}"  # GUID_DEVCLASS_DISPLAY of devguid.h

_KEY_OF_DEVICE = re.compile(r"VEN_10DE&DEV_([0-9A-F]{4})(?:&.*)?", re.IGNORECASE)
_PLACE = re.compile(r"\((\d+),(\d+),(\d+)\)$")
# Windows' name of a GPU without a driver.
_UNKNOWN_GPU = re.compile(r"\b(?:3D|VGA|Video|Display)\b", re.IGNORECASE)


def _look_at_registry(probe: Probe) -> tuple[GpuSeen, ...]:
    keys = (
        (f"{REGISTRY_DEVICES}\\{device}\\{instance}", match[1].lower())
        for device in probe.registry_keys(REGISTRY_DEVICES)
        if (match := _KEY_OF_DEVICE.fullmatch(device))
        for instance in probe.registry_keys(f"{REGISTRY_DEVICES}\\{device}")
    )
    return tuple(_gpu(probe, key, id) for key, id in keys if _is_gpu(probe, key) and _is_present(probe, key))


def _gpu(probe: Probe, key: str, device: str) -> GpuSeen:
    place = _PLACE.search(_registry_text(probe, key, "LocationInformation"))
    bus = "0000:{:02x}:{:02x}.{:x}".format(*map(int, place.groups())) if place else None
    return GpuSeen(probe="pci", bus=bus, pci_id=f"10de:{device}", name=_description(probe, key) or None)


def _is_gpu(probe: Probe, key: str) -> bool:
    """Say whether its class is display: a card's audio is another device of the same vendor."""
    kind = _registry_text(probe, key, "ClassGUID").lower()
    return kind == DISPLAY if kind else bool(_UNKNOWN_GPU.search(_description(probe, key)))


def _is_present(probe: Probe, key: str) -> bool:
    """Say whether the device's driver lists it: removed cards stay in the registry.

    A device without a driver, and a driver that has no list, leave that open: it counts as present.
    """
    service = _registry_text(probe, key, "Service")
    listed = f"{ROOT}\\Services\\{service}\\Enum"
    number = probe.registry_value(listed, "Count") if service else None
    if not isinstance(number, int):
        return True
    path = key.removeprefix(f"{ROOT}\\Enum\\").lower()
    return any(_registry_text(probe, listed, str(index)).lower() == path for index in range(min(number, 256)))


def _description(probe: Probe, key: str) -> str:
    """Return the text at the end of `@oem12.inf,%nvidia_dev.2204%;NVIDIA GeForce RTX 3090`."""
    return _registry_text(probe, key, "DeviceDesc").rpartition(";")[2].strip()


def _registry_text(probe: Probe, key: str, name: str) -> str:
    value = probe.registry_value(key, name)
    return value if isinstance(value, str) else ""
