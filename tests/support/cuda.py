"""CUDA on machines that do not exist: toolkits, GPUs, drivers."""

from __future__ import annotations

from typing import Any

from tests.support.machines import linux_facts
from torchbuild_tasks.model import Cuda, Driver, Facts, GpuSeen, Toolkit

ARCHS = {
    "11.8": ("3.5 3.7 5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0", 11),
    "12.4": ("5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0", 13),
    "12.8": ("5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.9 9.0 10.0 10.1 12.0", 14),
    "13.0": ("7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.3 11.0 12.0 12.1", 15),
}


def toolkit(version: str = "13.0", **changes: Any) -> Toolkit:
    """A complete toolkit in /usr/local, which says its own limits."""
    root = f"/usr/local/cuda-{version}"
    archs, gcc = ARCHS.get(version, ARCHS["12.4"])
    values: dict[str, Any] = {
        "path": root,
        "found_via": "/usr/local",
        "version": version,
        "version_via": "version.json",
        "nvcc": f"{root}/bin/nvcc",
        "nvcc_version": f"{version}.88",
        "headers": True,
        "libraries": f"{root}/lib64",
        "archs": tuple(archs.split()),
        "gcc": gcc,
        "clang": 20,
        "cuobjdump": f"{root}/bin/cuobjdump",
    }
    return Toolkit(**{**values, **changes})


def gpu(capability: str = "8.6", **changes: Any) -> GpuSeen:
    """Return a GPU as NVML reports it."""
    values: dict[str, Any] = {
        "probe": "nvml",
        "bus": "0000:01:00.0",
        "name": f"GPU of {capability}",
        "capability": capability,
        "memory": 24 << 30,
        "uuid": "GPU-1",
    }
    return GpuSeen(**{**values, **changes})


def driver(version: str = "580.65.06", **changes: Any) -> Driver:
    """A driver whose module and library are the same."""
    values: dict[str, Any] = {"version": version, "found_via": "nvml", "module": version, "library": version}
    return Driver(**{**values, **changes})


def cuda_facts(*toolkits: Toolkit, gpus: tuple[GpuSeen, ...] = (), **changes: Any) -> Facts:
    """The Linux workstation with these toolkits and GPUs, and a driver where there is a GPU."""
    own = {
        key: changes.pop(key) for key in ("libraries", "visible", "tegra", "probes", "wsl") if key in changes
    }
    seen = Cuda(
        toolkits=toolkits,
        looked=("PATH", "/usr/local"),
        gpus=gpus,
        driver=changes.pop("driver", driver() if gpus else None),
        **own,
    )
    return linux_facts(cuda=seen, **changes)
