"""Windows only: the DLLs are found and loaded here, so that an error names the one that fails."""

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

SEARCH = 0x1100  # beside the DLL itself, and in the folders of os.add_dll_directory
NOT_FOUND = "Error loading \"{}\" or one of its dependencies."  # as PyTorch says it


def load_dlls() -> None:
    """Load torch/lib/*.dll of wherever torch._C is: an editable install keeps it elsewhere."""
    spec = importlib.util.find_spec("torch._C")
    if spec is None or spec.origin is None:
        return  # its import will say so
    lib = Path(spec.origin).parent / "lib"
    prefixes = {sys.exec_prefix, sys.base_exec_prefix}
    for folder in (lib, *(Path(prefix, "Library", "bin") for prefix in prefixes)):
        if folder.is_dir():
            os.add_dll_directory(str(folder))
    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel32.LoadLibraryExW.restype = ctypes.c_void_p
    for dll in sorted(lib.glob("*.dll")):
        if kernel32.LoadLibraryExW(str(dll), None, SEARCH) is None:
            error = ctypes.WinError(ctypes.get_last_error())
            error.strerror = f"{error.strerror} {NOT_FOUND.format(dll)}"
            raise error
