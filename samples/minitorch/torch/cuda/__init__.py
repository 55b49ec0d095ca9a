"""The GPU: there is one only if this was built with USE_CUDA and runs where a device is."""

from torch import _C


def device_count() -> int:
    return _C._cuda_getDeviceCount() if hasattr(_C, "_cuda_getDeviceCount") else 0


def is_available() -> bool:
    return device_count() > 0


def get_arch_list() -> list[str]:
    return _C._cuda_getArchFlags().split() if is_available() else []


def add(a, b):
    """The sum, computed on the device. PyTorch has no such function; tensors have no device here."""
    return _C._cuda_add(a, b)
