"""How this torch was built, in PyTorch's own words."""

from torch import _C


def show() -> str:
    return _C._show_config()


def parallel_info() -> str:
    return _C._parallel_info()


def _cxx_flags() -> str:
    return _C._cxx_flags()
