from __future__ import annotations

import contextlib
import os
import sys
import uuid
from pathlib import Path

import pytest

from tests.facts.fakes import windows_machine
from tests.support.capabilities import needs_winreg
from torchbuild_tasks.facts.cuda import pci
from torchbuild_tasks.facts.cuda.pci import DISPLAY, REGISTRY_DEVICES, ROOT, look_at_pci
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

CARD = "VEN_10DE&DEV_2204&SUBSYS_38811462&REV_A1\\4&2283F625&0&0019"
SOUND = "VEN_10DE&DEV_1AEF&SUBSYS_38811462&REV_A1\\4&2283F625&0&0119"
OTHER = "VEN_8086&DEV_4680&SUBSYS_86941043&REV_0C\\3&11583659&0&10"
OLD = "VEN_10DE&DEV_1B80&SUBSYS_119E10DE&REV_A1\\4&2283F625&0&0019"

DESCRIPTION = "@oem12.inf,%nvidia_dev.2204%;NVIDIA GeForce RTX 3090"
PLACE = "@System32\\drivers\\pci.sys,#65536;PCI bus %1, device %2, function %3;(1,0,0)"


def display(description: str = DESCRIPTION, service: str = "nvlddmkm") -> dict[str, str | int]:
    return {
        "DeviceDesc": description,
        "ClassGUID": DISPLAY.upper(),
        "LocationInformation": PLACE,
        "Service": service,
    }


def seen(
    tmp_path: Path, registry: dict[str, dict[str, str | int]], **lists: dict[str, str | int]
) -> tuple[GpuSeen, ...]:
    values = {f"{REGISTRY_DEVICES}\\{device}": found for device, found in registry.items()}
    values |= {f"{ROOT}\\Services\\{service}\\Enum": listed for service, listed in lists.items()}
    return look_at_pci(windows_machine(tmp_path, registry=values))


def test_a_card_and_its_sound(tmp_path: Path) -> None:
    sound: dict[str, str | int] = {
        "DeviceDesc": "@hdaudio.inf;High Definition Audio Controller",
        "ClassGUID": "{4d36e97d-e325-11ce-bfc1-08002be10318}",
    }
    intel = display("Intel(R) UHD Graphics 770", "igfxn")
    listed: dict[str, str | int] = {"Count": 1, "0": f"PCI\\{CARD}"}
    assert seen(tmp_path, {CARD: display(), SOUND: sound, OTHER: intel}, nvlddmkm=listed) == (
        GpuSeen(probe="pci", bus="0000:01:00.0", pci_id="10de:2204", name="NVIDIA GeForce RTX 3090"),
    )


def test_a_card_that_was_taken_out(tmp_path: Path) -> None:
    listed: dict[str, str | int] = {"Count": 1, "0": f"PCI\\{CARD}".lower()}
    old = display("@oem3.inf;NVIDIA GeForce GTX 1080")
    assert [gpu.pci_id for gpu in seen(tmp_path, {CARD: display(), OLD: old}, nvlddmkm=listed)] == [
        "10de:2204"
    ]


def test_a_card_without_a_driver(tmp_path: Path) -> None:
    """Neither the card nor the audio device has a class in the registry; only the card is reported."""
    card: dict[str, str | int] = {"DeviceDesc": "@pci.inf,%pci\\cc_0302.devicedesc%;3D Video Controller"}
    sound: dict[str, str | int] = {"DeviceDesc": "Audio Device"}
    assert seen(tmp_path, {CARD: card, SOUND: sound}) == (
        GpuSeen(probe="pci", pci_id="10de:2204", name="3D Video Controller"),
    )


def test_a_driver_without_a_list_leaves_it_open(tmp_path: Path) -> None:
    assert len(seen(tmp_path, {CARD: display()})) == 1
    assert len(seen(tmp_path, {CARD: display()}, nvlddmkm={"Count": "x"})) == 1


def test_odd_values(tmp_path: Path) -> None:
    card = {**display(), "DeviceDesc": 3, "LocationInformation": "(1,x)"}
    assert seen(tmp_path, {CARD: card}) == (GpuSeen(probe="pci", pci_id="10de:2204"),)
    assert look_at_pci(windows_machine(tmp_path)) == ()


@pytest.mark.integration
@needs_winreg
def test_a_real_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same keys below one of the user's own, which is removed again."""
    if sys.platform != "win32":  # for mypy: the mark has skipped it
        return
    import winreg

    name = f"Software\\torchbuild-test-{uuid.uuid4().hex}"
    root = f"HKCU\\{name}"
    monkeypatch.setattr(pci, "ROOT", root)
    monkeypatch.setattr(pci, "REGISTRY_DEVICES", f"{root}\\Enum\\PCI")
    listed: dict[str, str | int] = {"Count": 1, "0": f"PCI\\{CARD}"}
    values = {f"Enum\\PCI\\{device}": display() for device in (CARD, OLD)}
    made = []
    try:
        for key, found in {**values, "Services\\nvlddmkm\\Enum": listed}.items():
            made.append(f"{name}\\{key}")
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, made[-1]) as handle:
                for value, said in found.items():
                    kind = winreg.REG_DWORD if isinstance(said, int) else winreg.REG_SZ
                    winreg.SetValueEx(handle, value, 0, kind, said)
        (gpu,) = look_at_pci(Probe(environ=os.environ))
        assert (gpu.pci_id, gpu.bus, gpu.name) == ("10de:2204", "0000:01:00.0", "NVIDIA GeForce RTX 3090")
    finally:
        for key in made:
            while len(key) >= len(name):  # the key, then each that it stood in, while they are empty
                with contextlib.suppress(OSError):
                    winreg.DeleteKey(winreg.HKEY_CURRENT_USER, key)
                key = key.rpartition("\\")[0]
