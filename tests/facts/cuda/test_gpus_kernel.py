from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import link, machine, windows_machine, write
from tests.support.capabilities import needs_odd_names, needs_symlinks
from torchbuild_tasks.facts.cuda.gpus import Kernel, look_at_kernel
from torchbuild_tasks.model import GpuSeen

CLOSED = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build  (dvs-builder)\n"
INFORMATION = """\
Model: \t\t NVIDIA GeForce RTX 3090
IRQ:   \t\t 171
GPU UUID: \t GPU-12345678-0000-0000-0000-000000000000
Video BIOS: \t 94.02.42.00.a9
Bus Type: \t PCIe
Bus Location: \t 0000:0B:00.0
Device Minor: \t 0
GPU Excluded:\t No
"""


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED, "535.104.05"), (OPEN, "560.35.03"), ("NVRM", None), ("", None)]
)
def test_the_module_by_proc(tmp_path: Path, text: str, version: str | None) -> None:
    kernel = look_at_kernel(machine(tmp_path, files={"/proc/driver/nvidia/version": text}))
    assert (kernel.module, kernel.module_via) == (version, "/proc/driver/nvidia/version" if version else "")


def test_the_module_by_sys(tmp_path: Path) -> None:
    files = {"/sys/module/nvidia/version": "550.54.14\n", "/proc/driver/nvidia/version": CLOSED}
    kernel = look_at_kernel(machine(tmp_path, files=files))
    assert (kernel.module, kernel.module_via) == ("550.54.14", "/sys/module/nvidia/version")


@needs_odd_names
def test_the_modules_gpus(tmp_path: Path) -> None:
    gpus = "/proc/driver/nvidia/gpus"
    unused = INFORMATION.replace("0000:0B", "0000:0c").replace("12345678-0000", "????????-????")
    files = {
        f"{gpus}/0000:0b:00.0/information": INFORMATION,
        f"{gpus}/0000:0c:00.0/information": unused,
        f"{gpus}/0000:0d:00.0/": "",
    }
    assert look_at_kernel(machine(tmp_path, files=files)).gpus == (
        GpuSeen(
            probe="proc",
            bus="0000:0b:00.0",
            name="NVIDIA GeForce RTX 3090",
            uuid="GPU-12345678-0000-0000-0000-000000000000",
        ),
        GpuSeen(probe="proc", bus="0000:0c:00.0", name="NVIDIA GeForce RTX 3090"),
        GpuSeen(probe="proc", bus="0000:0d:00.0"),
    )


@needs_symlinks
@pytest.mark.parametrize(
    "folder",
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/opt/driver", "/usr/local/nvidia/lib64", "/ld/path"],
)
def test_the_library_by_the_name_behind_its_link(tmp_path: Path, folder: str) -> None:
    write(tmp_path, {f"{folder}/libcuda.so.535.104.05": "", "/etc/ld.so.conf.d/x.conf": "# x\n/opt/driver\n"})
    link(tmp_path, f"{folder}/libcuda.so.1", "libcuda.so.535.104.05")
    door = machine(tmp_path, environ={"LD_LIBRARY_PATH": "/ld/path:"})
    assert look_at_kernel(door) == Kernel(library="535.104.05")


@needs_symlinks
def test_the_library_of_a_jetson_tells_nothing_of_a_driver(tmp_path: Path) -> None:
    folder = "/usr/lib/x86_64-linux-gnu"
    write(tmp_path, {f"{folder}/tegra/libcuda.so.1.1": ""})
    link(tmp_path, f"{folder}/libcuda.so.1", "tegra/libcuda.so.1.1")
    assert look_at_kernel(machine(tmp_path)) == Kernel()


def test_windows_names_the_driver_in_the_last_five_digits(tmp_path: Path) -> None:
    dll = "C:\\Windows\\System32\\nvcuda.dll"
    for version, driver in {"31.0.15.3713": "537.13", "32.0.15.7602": "576.02", "1.2": None}.items():
        assert look_at_kernel(windows_machine(tmp_path, versions={dll: version})) == Kernel(library=driver)
    assert look_at_kernel(windows_machine(tmp_path)) == Kernel()
