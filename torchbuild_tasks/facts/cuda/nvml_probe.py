"""Query NVIDIA's management library, in a process of its own, because it can hang or crash.

Run as `python -I -S nvml_probe.py FOLDER`; prints one JSON object. FOLDER holds pynvml (of the package
nvidia-ml-py); nothing else is imported but the standard library.
"""

from __future__ import annotations

import ctypes
import importlib
import sys

TYPE_CHECKING = False  # importing `typing` for it would be half of the time in which there is no library
if TYPE_CHECKING:
    from typing import Any

LINUX = "libnvidia-ml.so.1"  # what pynvml loads there
LIBRARY_NOT_FOUND = 12  # NVML_ERROR_LIBRARY_NOT_FOUND of nvml.h


def is_missing(library: str) -> bool:
    """Say whether the loader finds no such library, before pynvml is imported for that answer."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return True
    return False


def report(nvml: Any) -> dict[str, Any]:
    """Return driver, CUDA and all devices.

    `error` is set if NVML does not work at all; `errors` are those of single calls.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return {"error": error_text(nvml, error), "code": error.value}
    answer: dict[str, Any] = {"errors": []}
    answer["driver"] = text(call(nvml, answer, "nvmlSystemGetDriverVersion"))
    answer["cuda"] = call(nvml, answer, "nvmlSystemGetCudaDriverVersion_v2")
    number = call(nvml, answer, "nvmlDeviceGetCount") or 0
    answer["devices"] = [device(nvml, answer, index) for index in range(number)]
    return answer


def device(nvml: Any, answer: dict[str, Any], index: int) -> dict[str, Any]:
    """Return one device, also one that cannot be opened ("GPU is lost")."""
    handle = call(nvml, answer, "nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return {}
    pci = call(nvml, answer, "nvmlDeviceGetPciInfo", handle)
    memory = call(nvml, answer, "nvmlDeviceGetMemoryInfo", handle)
    mig = call(nvml, answer, "nvmlDeviceGetMigMode", handle)
    return {
        "name": text(call(nvml, answer, "nvmlDeviceGetName", handle)),
        "uuid": text(call(nvml, answer, "nvmlDeviceGetUUID", handle)),
        "bus": text(pci.busId) if pci else None,
        "pci": pci.pciDeviceId if pci else None,
        "capability": call(nvml, answer, "nvmlDeviceGetCudaComputeCapability", handle),
        "memory": memory.total if memory else None,
        "mig": bool(mig and mig[0]),
    }


def call(nvml: Any, answer: dict[str, Any], function: str, *arguments: Any) -> Any:
    """Return the result of a call; None if NVML refuses it.

    That a card or an old driver does not have something is no news and not among the errors.
    """
    try:
        return getattr(nvml, function)(*arguments)
    except nvml.NVMLError as error:
        if error.value not in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            answer["errors"].append(f"{function}: {error_text(nvml, error)}")
    except (AttributeError, OSError, UnicodeError) as error:
        answer["errors"].append(f"{function}: {error}")
    return None


def error_text(nvml: Any, error: Any) -> str:
    """Return NVML's error message, or the package's if the library is missing."""
    try:
        return text(nvml.nvmlErrorString(error.value)) or str(error)
    except nvml.NVMLError:
        return str(error)


def text(value: Any) -> Any:
    """Decode the bytes that old versions of the package return."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    if sys.platform == "linux" and is_missing(LINUX):
        sys.stdout.write(f'\n{{"error": "{LINUX} is missing", "code": {LIBRARY_NOT_FOUND}}}\n')
    else:
        import json

        sys.path.append(sys.argv[1])
        sys.stdout.write("\n" + json.dumps(report(importlib.import_module("pynvml"))) + "\n")
