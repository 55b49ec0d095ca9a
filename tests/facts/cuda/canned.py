"""What toolkits and drivers look like and say, in the form that NVIDIA's have."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.facts.fakes import FakeProbe
from torchbuild_tasks.facts.probe import Output

HOST_CONFIG = """\
#if defined(__GNUC__)

#if __GNUC__ > {gcc}

#error -- unsupported GNU version! gcc versions later than {gcc} are not supported!

#endif /* __GNUC__ > {gcc} */

#if defined(__HORIZON__)
#if (__clang_major__ >= 3) || (__clang_major__ < 3)
#endif
#endif

#if defined(__clang__) && !defined(__ibmxl_vrm__) && !defined(__ICC) && !defined(__HORIZON__)

#if (__clang_major__ >= {clang}) || (__clang_major__ < 3)
#endif
#endif

#if defined(_WIN32)

#if _MSC_VER < {msc_min} || _MSC_VER >= {msc_below}
#endif
#endif
"""
HEADERS = {
    "cuda.h": "#define CUDA_VERSION 12040\n",
    "cuda_runtime.h": "",
    "crt/host_config.h": HOST_CONFIG.format(gcc=13, clang=18, msc_min=1910, msc_below=1950),
}
ARCHS = "compute_50\ncompute_75\ncompute_90\ncompute_100\n"


def nvcc_says(release: str = "12.4", build: str = "12.4.131") -> str:
    """The answer to --version."""
    return (
        "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n"
        f"Cuda compilation tools, release {release}, V{build}\nBuild cuda_{release}.r{release}/compiler.0_0\n"
    )


def toolkit(root: str, version: str | None = "12.4.1", include: str | None = None) -> dict[str, str]:
    """The files of a toolkit of NVIDIA's installer, but for its programs; root may be C:\\x."""
    separator = "\\" if "\\" in root else "/"
    include = include or f"{root}/include"
    files = {f"{include}/{name}": text for name, text in HEADERS.items()}
    files[f"{root}/{'lib/x64/cudart.lib' if separator == chr(92) else 'lib64/libcudart.so'}"] = ""
    files[f"{root}/bin/nvcc.profile"] = "TOP = $(_HERE_)/..\n"
    if version:
        files[f"{root}/version.json"] = json.dumps({"cuda": {"name": "CUDA SDK", "version": version}})
    return {path.replace("/", separator): text for path, text in files.items()}


def answers(
    door: FakeProbe, nvcc: str, release: str = "12.4", build: str = "12.4.131", archs: str = ARCHS
) -> None:
    """Let the nvcc at this path say this version, and what it compiles for."""
    door.outputs[f"{nvcc} --version"] = Output(0, nvcc_says(release, build))
    door.outputs[f"{nvcc} --list-gpu-arch"] = Output(0, archs)


def device(**changes: Any) -> dict[str, Any]:
    """A device as the NVML probe reports it."""
    return {
        "name": "NVIDIA GeForce RTX 3090",
        "uuid": "GPU-00000000-0000-0000-0000-000000000001",
        "bus": "00000000:01:00.0",
        "pci": 0x220410DE,
        "capability": [8, 6],
        "memory": 25769803776,
        "mig": False,
        **changes,
    }


def nvml(door: FakeProbe, *devices: Mapping[str, Any], driver: str = "550.54.14", cuda: int = 12040) -> None:
    """Let NVML answer with these devices."""
    data = {"errors": [], "driver": driver, "cuda": cuda, "devices": list(devices)}
    nvml_says(door, Output(0, f"\n{json.dumps(data)}\n"))


def nvml_fails(door: FakeProbe, error: str, code: int) -> None:
    """Let NVML not start."""
    nvml_says(door, Output(0, json.dumps({"error": error, "code": code})))


def nvml_says(door: FakeProbe, output: Output | None) -> None:
    """Let the process that asks NVML end like this; None hangs."""
    door.outputs[sys.executable] = output


def no_nvml(door: FakeProbe) -> None:
    """A machine without a driver."""
    nvml_fails(door, "NVML Shared Library Not Found", 12)
