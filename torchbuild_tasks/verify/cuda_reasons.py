"""The reasons why no GPU can be used, from the driver itself, each with a fix.

Loaded by `cuda_checks.py`, in the Python that holds the torch: the standard library and
Python 3.7, as there. The driver's library is called by ctypes, so its answer does not depend on torch.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

shared = importlib.import_module(f"{__package__}.torch_checks" if __package__ else "torch_checks")
NotPossible = shared.NotPossible
Wrong = shared.Wrong

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
KERNEL_MODULE = Path("/proc/driver/nvidia/version")

BROKEN: list[str] = []  # the failure of the driver without torch, if any

# Error codes of the driver (cuInit) and of the runtime (cudaGetDeviceCount); both use the same numbers.
# Source: cudaError_t, https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html;
# 803 and 804: https://docs.nvidia.com/deploy/cuda-compatibility/.
CODES = {
    2: "the GPU's memory is used up. End other programs on it (nvidia-smi lists them).",
    3: "the driver could not be initialised. Look for its messages with dmesg.",
    34: f"the {LIBRARY} that was loaded is the toolkit's stub, made for linking only. "
    "Remove the stubs folder from LD_LIBRARY_PATH.",
    35: "the driver is too old for the CUDA of this torch. "
    "Install a newer driver, or build with a toolkit that this one runs.",
    36: "the driver is too old for a function that is called. Install a newer driver.",
    46: "all GPUs are in use by others. "
    "End the program that has them, or leave the compute mode EXCLUSIVE_PROCESS (nvidia-smi -c 0).",
    100: "the driver sees no GPU. See whether the card is there (lspci, nvidia-smi), and whether this "
    "container was given it (docker run --gpus all).",
    101: "a device was asked for that is not there. Look at CUDA_VISIBLE_DEVICES.",
    102: "the virtual GPU has no licence. Give it one.",
    127: "the driver could not be started. Look for its messages with dmesg.",
    304: "the system refused a call of the driver. Look for its messages with dmesg.",
    800: "the system does not permit the use of the GPU. Look at the rights on /dev/nvidia*.",
    802: "the system is not yet initialised. A machine with NVSwitch needs a running fabric manager of the "
    "driver's very version (systemctl start nvidia-fabricmanager).",
    803: "the driver's library and its kernel module are of different versions. "
    "Restart the machine, or load the module again; in a container, drop the driver library of the image.",
    804: "a newer driver library runs on an older kernel module (forward compatibility), which only "
    "data-centre cards can. Remove the cuda-compat folder from LD_LIBRARY_PATH, or install the newer driver.",
    805: "the MPS server could not be reached. Start it, or unset CUDA_MPS_PIPE_DIRECTORY.",
    999: "the driver gives no reason. After a suspend load nvidia_uvm again; in a container see that "
    "/dev/nvidia-uvm is there.",
}


def is_compiled(torch: Any) -> bool:
    return str(getattr(torch.version, "cuda", None) or "None") != "None"


def require_compiled(torch: Any) -> None:
    if not is_compiled(torch):
        raise NotPossible("this torch was built without CUDA")


def require_device(torch: Any, **values: str) -> None:
    """Raise NotPossible with the reason and the known versions if no GPU can be used."""
    require_compiled(torch)
    if BROKEN:
        raise NotPossible(BROKEN[0], values)
    if not torch.cuda.is_available():
        raise NotPossible(f"no GPU can be used: {why_not(torch).partition('. ')[0]}", values)


def why_not(torch: Any) -> str:
    """Return why torch.cuda.is_available() is false, and a fix, each as a sentence.

    Raises:
        Wrong: driver and GPU are fine, so it is torch.
    """
    try:
        library = driver_library()
    except OSError as error:
        return (
            f"the driver's library {LIBRARY} cannot be loaded. Install NVIDIA's driver; a container gets "
            f"the host's (docker run --gpus all). The loader says: {error}"
        )
    words = torch_error(torch)
    code = error_code(words) or int(library.cuInit(0))
    if code in (0, 100) and is_too_old(driver_cuda(library), str(torch.version.cuda)):
        code = 35  # then the runtime does not look for devices
    if code == 100 and "CUDA_VISIBLE_DEVICES" in os.environ:
        hidden = os.environ["CUDA_VISIBLE_DEVICES"]
        return f"CUDA_VISIBLE_DEVICES is {hidden!r}, which leaves no GPU to be seen. Unset it."
    if not code:
        raise Wrong(
            "the driver is fine, yet torch.cuda.is_available() is false: " + (words or "torch says nothing")
        )
    version = f" The driver runs CUDA {driver_cuda(library)}, this torch is for {torch.version.cuda}."
    return f"error {code}: {CODES.get(code, words or 'a new one')}{version if code == 35 else ''}"


def torch_error(torch: Any) -> str:
    """Return the first line of torch's error when it initialises CUDA; the sample has no such function."""
    try:
        getattr(torch.cuda, "init", int)()
    except (RuntimeError, AssertionError) as error:
        return str(error).partition("\n")[0]
    return ""


def error_code(words: str) -> int:
    if "driver on your system is too old" in words:
        return 35
    if "CUDA unknown error" in words:
        return 999
    number = re.search(r"Error (\d+):", words)
    return int(number.group(1)) if number else 100 if "No CUDA GPUs are available" in words else 0


# ---------------------------------------------------------------- versions of driver and runtime


def driver_library() -> Any:
    """Load the driver's user-space library.

    Raises:
        OSError: it cannot be loaded.
    """
    if sys.platform == "win32":
        return ctypes.WinDLL(LIBRARY)
    return ctypes.CDLL(LIBRARY)


def driver_cuda(library: Any) -> str:
    """Return the newest CUDA that the driver runs: "13.0"."""
    return _ask_version(library.cuDriverGetVersion)


def is_too_old(driver: str, runtime: str) -> bool:
    """Say whether a driver that runs CUDA `driver` cannot run programs of CUDA `runtime`.

    From CUDA 11 on any driver of the same major release does (minor-version compatibility).
    """
    numbers = [[int(part) for part in re.findall(r"\d+", text)[:2]] for text in (driver, runtime)]
    deep = 1 if numbers[1][:1] >= [11] else 2
    return numbers[0][:deep] < numbers[1][:deep]


def installed_versions(cuda: str) -> dict[str, str]:
    """Return the driver, and the CUDA runtime that a torch for `cuda` has loaded into this process."""
    versions = {"driver": driver_version(), "runtime": runtime_version(cuda), "driver_cuda": ""}
    with contextlib.suppress(OSError, AttributeError):
        versions["driver_cuda"] = driver_cuda(driver_library())
    return {key: text for key, text in versions.items() if text}


def driver_version() -> str:
    """Return the version of the kernel module: "580.65.06"; Linux only."""
    try:
        text = KERNEL_MODULE.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    number = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return number.group(1) if number else ""


def runtime_version(cuda: str) -> str:
    """Return the release of the loaded libcudart: "13.0"; empty if torch links it statically."""
    major, _, minor = cuda.partition(".")
    if sys.platform == "win32":
        names = [f"cudart64_{end}.dll" for end in (major, f"{major}{minor}", f"{major}0")]
    else:
        names = [f"libcudart.so.{end}" for end in (major, cuda, f"{major}.0")]
    for name in names:
        with contextlib.suppress(OSError, AttributeError):
            return _ask_version(loaded_library(name).cudaRuntimeGetVersion)
    return ""


def loaded_library(name: str) -> Any:
    """Return a library that this process has loaded.

    Raises:
        OSError: it is not.
    """
    if sys.platform == "win32":
        if not ctypes.WinDLL("kernel32").GetModuleHandleW(name):
            raise OSError(f"{name} is not loaded")
        return ctypes.WinDLL(name)
    return ctypes.CDLL(name, mode=os.RTLD_NOLOAD)


def _ask_version(function: Any) -> str:
    number = ctypes.c_int()
    function(ctypes.byref(number))  # 13020 is 13.2
    return f"{number.value // 1000}.{number.value % 1000 // 10}"
