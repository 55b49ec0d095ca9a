"""What the loaded kernel module says, and which version the libraries beside it have."""

from __future__ import annotations

import re
from typing import NamedTuple

from torchbuild_tasks.facts.cuda.folders import multiarch
from torchbuild_tasks.facts.cuda.nvml import bus_of
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import GpuSeen

GPUS = "/proc/driver/nvidia/gpus"
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
# Containers, WSL and NixOS put the driver's libraries where only the loader's list leads.
FOLDERS = ("/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib")
LD_CONF = "/etc/ld.so.conf.d"

_NVRM = re.compile(r"^NVRM version:.*?\s(\d{3}\.\d+(?:\.\d+)?)\s", re.MULTILINE)
_PLAIN = re.compile(r"\d{3}\.\d+(?:\.\d+)?")
# libcuda.so.1.1 of a Jetson and the one of WSL carry no version of a driver.
_FILE = re.compile(r"\.so\.(\d{3}\.\d+(?:\.\d+)?)$")
_FIELD = re.compile(r"^([\w ]+?)\s*:\s*(.*?)\s*$", re.MULTILINE)
_WINDOWS = re.compile(r"\d+\.\d+\.\d*?(\d)\.(\d{2})(\d{2})")


class Kernel(NamedTuple):
    """The module's version and the file that says it; the libraries' version; the module's GPUs."""

    module: str | None = None
    module_via: str = ""
    library: str | None = None
    gpus: tuple[GpuSeen, ...] = ()


def look_at_kernel(probe: Probe) -> Kernel:
    """The driver without asking it anything."""
    if probe.windows:
        return Kernel(library=_windows_library(probe))
    module, via = _module(probe)
    gpus = tuple(_kernel_gpu(probe, name) for name in probe.children(GPUS))
    return Kernel(module, via, _library(probe), gpus)


def _module(probe: Probe) -> tuple[str | None, str]:
    version = (probe.read("/sys/module/nvidia/version") or "").strip()
    if _PLAIN.fullmatch(version):
        return version, "/sys/module/nvidia/version"
    match = _NVRM.search(probe.read("/proc/driver/nvidia/version") or "")
    return (match[1], "/proc/driver/nvidia/version") if match else (None, "")


def _library(probe: Probe) -> str | None:
    """What the names behind the links say: libcuda.so.1 is libcuda.so.535.104.05."""
    for folder in _folders(probe):
        for name in LIBRARIES:
            path = probe.join(folder, name)
            match = _FILE.search(probe.realpath(path)) if probe.exists(path) else None
            if match:
                return match[1]
    return None


def _folders(probe: Probe) -> list[str]:
    """Those that the loader looks at: LD_LIBRARY_PATH, its configuration, then the usual ones."""
    folders = probe.names.split_path(probe.variable("LD_LIBRARY_PATH"))
    for file in probe.children(LD_CONF):
        lines = (probe.read(probe.join(LD_CONF, file)) or "").splitlines()
        folders += [line.strip() for line in lines if line.startswith("/")]
    arch = multiarch(probe)
    folders += [f"/usr/lib/{arch}", f"/usr/lib/{arch}/nvidia/current", *FOLDERS]
    return list(dict.fromkeys(folders))


def _kernel_gpu(probe: Probe, name: str) -> GpuSeen:
    fields = dict(_FIELD.findall(probe.read(probe.join(GPUS, name, "information")) or ""))
    uuid = fields.get("GPU UUID", "")
    return GpuSeen(
        probe="proc",
        bus=bus_of(fields.get("Bus Location")) or bus_of(name),
        name=fields.get("Model") or None,
        # Question marks stand there until somebody has used the GPU.
        uuid=uuid if uuid and "?" not in uuid else None,
    )


def _windows_library(probe: Probe) -> str | None:
    """537.13 for a nvcuda.dll of 31.0.15.3713: the driver's version is in the last five digits."""
    system = probe.variable("SystemRoot") or "C:\\Windows"
    version = probe.file_version(probe.join(system, "System32/nvcuda.dll")) or ""
    match = _WINDOWS.fullmatch(version)
    return f"{match[1]}{match[2]}.{match[3]}" if match else None
