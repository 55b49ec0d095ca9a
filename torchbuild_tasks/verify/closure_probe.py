"""Print the place of torch and the library search of this process, without importing torch.

    PYTHON -I closure_probe.py          in an empty folder

Run by the Python that holds torch. It stands alone but for torch_probe.py next to it, and needs only what
Python 3.7 has. It prints MARK and one JSON object; `problem` says why there is no torch to look at.
"""

from __future__ import annotations

import ctypes
import glob
import importlib
import importlib.machinery
import json
import os
import platform
import re
import sys
import sysconfig
from typing import Any

MARK = "@torchbuild-closure "
FOLDER = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    package, extension = find_torch()
    report: dict[str, Any] = {
        "windows": sys.platform == "win32",
        "machine": find_machine(),
        "executable": os.path.realpath(sys.executable),
        "package": package,
        "extension": extension,
        "loaded": loaded_libraries(),
    }
    if not package:
        report["problem"] = "this Python has no torch"
    elif not extension:
        report["problem"] = f"torch in {package} has no compiled part (torch._C) for this Python"
    elif sys.platform == "win32":
        report.update(windows_report(os.path.dirname(extension), package))
    else:
        report.update(wheels=wheel_folders(), shared=global_deps(package, os.path.dirname(extension)))
    print(MARK + json.dumps(report), flush=True)


def find_torch() -> tuple[str, str]:
    """Return the folder of torch and the file of torch._C; "" for each that does not exist.

    The finders are called directly: importlib.util.find_spec("torch._C") would import torch.
    """
    spec = find_spec("torch", None)
    folders = list(spec.submodule_search_locations or []) if spec else []
    inner = find_spec("torch._C", folders) if folders else None
    origin = str(inner.origin or "") if inner else ""
    compiled = origin.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
    return (str(folders[0]) if folders else ""), (origin if compiled else "")


def find_spec(name: str, path: list[str] | None) -> Any:
    """Return the spec of a module from the first finder that has one; a namespace package counts as none."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = find(name, path) if find else None
        except KeyError:  # a namespace package below a package that is not imported
            spec = None
        if spec is not None:
            return spec
    return None


def find_machine() -> str:
    """Return the machine of this process; a 32-bit process on a 64-bit kernel has another."""
    name = platform.machine().lower()
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)
    return name if sys.maxsize > 2**32 else {"x86_64": "x86", "aarch64": "arm"}.get(name, name)


def loaded_libraries() -> list[str]:
    """Return the libraries in this process, the interpreter first."""
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.path.append(FOLDER)
    try:
        probe = importlib.import_module("torch_probe")
    finally:
        sys.path.remove(FOLDER)
        sys.dont_write_bytecode = written
    files = sorted(probe.mapped_libraries() | probe.loaded_dlls())
    return [os.path.realpath(sys.executable), *(f for f in files if os.path.isfile(f))]


def global_deps(package: str, home: str) -> list[str]:
    """Return what torch/__init__.py loads globally before torch._C; torch 1.4 and older had none."""
    try:
        with open(os.path.join(package, "__init__.py"), encoding="utf-8") as file:
            loads = "libtorch_global_deps" in file.read()
    except OSError:
        return []
    return [os.path.join(home, "lib", "libtorch_global_deps.so")] if loads else []


def wheel_folders() -> list[str]:
    """Return the folders of NVIDIA's wheels that torch/__init__.py searches (_get_cuda_dep_paths)."""
    patterns = ("nvidia/*/lib", "cusparselt/lib", "nvshmem/lib")
    return [f for path in sys.path for p in patterns for f in sorted(glob.glob(os.path.join(path, p)))]


# ---------------------------------------------------------------- Windows


def windows_report(home: str, package: str) -> dict[str, Any]:
    """Repeat what torch/__init__.py of 2.13.0 does before it loads its DLLs (_load_dll_libraries)."""
    folders = dll_folders(home, package)
    return {
        "dlls": glob.glob(os.path.join(home, "lib", "*.dll")),
        "folders": folders,
        "known": known_dlls(),
        "system": [system_folder(), os.environ.get("SYSTEMROOT", "C:\\Windows")],
    }


def dll_folders(home: str, package: str) -> list[str]:
    join = os.path.join
    isdir = os.path.isdir
    userbase = sysconfig.get_config_var("userbase") or ""
    candidates = [
        join(home, "lib"),
        join(sys.exec_prefix, "Library", "bin"),
        join(sys.base_exec_prefix, "Library", "bin"),
        join(userbase, "Library", "bin"),
        join(sys.exec_prefix, "bin"),
    ]
    programs = os.environ.get("PROGRAMFILES", "C:\\Program Files")
    tools = os.environ.get("NVTOOLSEXT_PATH", join(programs, "NVIDIA Corporation", "NvToolsExt"))
    cuda = cuda_version(package)
    folders = list(dict.fromkeys(place for place in candidates if isdir(place)))
    if not any(os.path.exists(join(f, "nvToolsExt64_1.dll")) for f in folders):
        folders.append(join(tools, "bin", "x64"))
    if cuda and not any(glob.glob(join(f, "cudart64*.dll")) for f in folders):
        default = join(programs, "NVIDIA GPU Computing Toolkit", "CUDA", "v" + cuda)
        folder = join(os.environ.get("CUDA_PATH_V" + cuda.replace(".", "_"), default), "bin")
        folders += [folder, join(folder, "x64")]  # the latter holds the DLLs of CUDA 13
    return [folder for folder in folders if isdir(folder)]


def cuda_version(package: str) -> str:
    """Return torch.version.cuda, read from the file; "" for none."""
    try:
        with open(os.path.join(package, "version.py"), encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return ""
    match = re.search(r"^cuda\b[^=]*=\s*'([\d.]+)'", text, re.MULTILINE)
    return match.group(1) if match else ""


def known_dlls() -> list[str]:
    """Return the DLLs that are always the system's own."""
    if sys.platform != "win32":
        return []
    import winreg

    names = []
    place = "SYSTEM\\CurrentControlSet\\Control\\Session Manager\\KnownDLLs"
    try:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, place) as key:
            for number in range(winreg.QueryInfoKey(key)[1]):
                names.append(str(winreg.EnumValue(key, number)[1]))
    except OSError:
        pass
    return [name for name in names if name.lower().endswith(".dll")]


def system_folder() -> str:
    if sys.platform != "win32":
        return ""
    name = ctypes.create_unicode_buffer(260)
    ctypes.WinDLL("kernel32").GetSystemDirectoryW(name, len(name))
    return name.value


if __name__ == "__main__":
    main()
