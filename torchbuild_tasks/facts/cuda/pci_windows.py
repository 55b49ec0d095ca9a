"""Find NVIDIA's GPUs on the PCI bus, which needs no driver: the registry on Windows."""

from __future__ import annotations

import re

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

ROOT = "HKLM\\SYSTEM\\CurrentControlSet"
DEVICES = f"{ROOT}\\Enum\\PCI"
DISPLAY = "{4d36e968-e325-11ce-bfc1-08002be10318}"  # GUID_DEVCLASS_DISPLAY of devguid.h

_DEVICE = re.compile(r"VEN_10DE&DEV_([0-9A-F]{4})(?:&.*)?", re.IGNORECASE)
_PLACE = re.compile(r"\((\d+),(\d+),(\d+)\)$")
# Windows' name of a GPU without a driver.
_UNKNOWN_GPU = re.compile(r"\b(?:3D|VGA|Video|Display)\b", re.IGNORECASE)


def look_at_pci(probe: Probe) -> tuple[GpuSeen, ...]:
    """Return every display controller of NVIDIA's that is present."""
    return tuple(
        _gpu(probe, f"{DEVICES}\\{device}\\{instance}", match[1].lower())
        for device in probe.registry_keys(DEVICES)
        if (match := _DEVICE.fullmatch(device))
        for instance in probe.registry_keys(f"{DEVICES}\\{device}")
        if _is_gpu(probe, f"{DEVICES}\\{device}\\{instance}")
        and _is_present(probe, f"{DEVICES}\\{device}\\{instance}")
    )


def _gpu(probe: Probe, key: str, device: str) -> GpuSeen:
    place = _PLACE.search(_text(probe, key, "LocationInformation"))
    bus = "0000:{:02x}:{:02x}.{:x}".format(*map(int, place.groups())) if place else None
    return GpuSeen(probe="pci", bus=bus, pci_id=f"10de:{device}", name=_description(probe, key) or None)


def _is_gpu(probe: Probe, key: str) -> bool:
    """Say whether its class is display: a card's audio is another device of the same vendor."""
    kind = _text(probe, key, "ClassGUID").lower()
    return kind == DISPLAY if kind else bool(_UNKNOWN_GPU.search(_description(probe, key)))


def _is_present(probe: Probe, key: str) -> bool:
    """Say whether the device's driver lists it: removed cards stay in the registry.

    A device without a driver, and a driver that has no list, leave that open: it counts as present.
    """
    service = _text(probe, key, "Service")
    listed = f"{ROOT}\\Services\\{service}\\Enum"
    number = probe.registry_value(listed, "Count") if service else None
    if not isinstance(number, int):
        return True
    path = key.removeprefix(f"{ROOT}\\Enum\\").lower()
    return any(_text(probe, listed, str(index)).lower() == path for index in range(min(number, 256)))


def _description(probe: Probe, key: str) -> str:
    """Return the text at the end of `@oem12.inf,%nvidia_dev.2204%;NVIDIA GeForce RTX 3090`."""
    return _text(probe, key, "DeviceDesc").rpartition(";")[2].strip()


def _text(probe: Probe, key: str, name: str) -> str:
    value = probe.registry_value(key, name)
    return value if isinstance(value, str) else ""
