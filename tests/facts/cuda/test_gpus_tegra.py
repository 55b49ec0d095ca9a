from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from torchbuild_tasks.facts.cuda.gpus import look_at_tegra
from torchbuild_tasks.model import Tegra

ORIN = {
    "model": "NVIDIA Jetson AGX Orin Developer Kit\0",
    "compatible": "nvidia,p3737-0000+p3701-0000\0nvidia,tegra234\0nvidia,tegra23x\0",
}
R35 = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64, DATE: Tue Aug  1\n"


@pytest.mark.parametrize("tree", ["/proc/device-tree", "/sys/firmware/devicetree/base"])
def test_an_orin(tmp_path: Path, tree: str) -> None:
    files = {f"{tree}/{name}": text for name, text in ORIN.items()}
    assert look_at_tegra(machine(tmp_path, files={**files, "/etc/nv_tegra_release": R35})) == Tegra(
        model="NVIDIA Jetson AGX Orin Developer Kit",
        compatible=("nvidia,p3737-0000+p3701-0000", "nvidia,tegra234", "nvidia,tegra23x"),
        l4t="35.4.1",
    )


@pytest.mark.parametrize(
    ("text", "l4t"),
    [
        ("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref", "32.7.1"),
        ("# R36 (release), REVISION: 4.0, GCID: 1", "36.4.0"),
        ("#R38 (release), REVISION: 2.0", "38.2.0"),
        ("# R28 (release), REVISION: 2.1, GCID: 11272647, BOARD: t186ref", "28.2.1"),
    ],
)
def test_a_container_hides_the_device_tree(tmp_path: Path, text: str, l4t: str) -> None:
    assert look_at_tegra(machine(tmp_path, files={"/etc/nv_tegra_release": text})) == Tegra(model="", l4t=l4t)


def test_a_board_without_nvidias_system(tmp_path: Path) -> None:
    files = {f"/proc/device-tree/{name}": text for name, text in ORIN.items()}
    tegra = look_at_tegra(machine(tmp_path, files={**files, "/etc/nv_tegra_release": "rubbish"}))
    assert tegra is not None
    assert (tegra.model, tegra.l4t) == ("NVIDIA Jetson AGX Orin Developer Kit", None)


def test_another_board_is_none(tmp_path: Path) -> None:
    files = {
        "/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
        "/proc/device-tree/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0",
    }
    assert look_at_tegra(machine(tmp_path, files=files)) is None
