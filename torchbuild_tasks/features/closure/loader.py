"""The loader of one process: where it looks for libraries, on Windows and by ld.so's own file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.model.closure import Loader
from torchbuild_tasks.system.elf import read_cache

# The folders of the system are one block in ld.so's data (system_dirs in elf/dl-load.c of glibc).
_SYSTEM_DIRS: Final = re.compile(rb"(?:/[\w.+/-]{1,200}/\0){2,8}")
# Processor flags of /proc/cpuinfo by level; each needs those before it (psABI of x86-64, table 3.1).
_LEVELS: Final = (
    ("x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
    ("x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"),
    ("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
)


def read_loader(report: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    """Return the loader of a process: how it would look for libraries.

    Args:
        report: what `verify/closure_probe.py` printed about the process.
        environ: its environment.
    """
    return _windows_loader(report, environ) if report["windows"] else _linux_loader(report, environ)


def _windows_loader(report: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    path = next((value for name, value in environ.items() if name.upper() == "PATH"), "")
    system = tuple(str(folder) for folder in report["system"])
    return Loader(
        system="windows",
        machine=str(report["machine"]),
        executable=str(report["executable"]),
        roots=(*report["dlls"], str(report["extension"])),
        loaded=tuple(report["loaded"]),
        search_path=tuple(folder.strip('"') for folder in path.split(";") if folder),
        cache={name.lower(): (f"{system[0]}\\{name}",) for name in report["known"]},
        defaults=system,
        extra=tuple(report["folders"]),
    )


def _linux_loader(report: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    machine = str(report["machine"])
    executable = str(report["executable"])
    defaults = _system_folders(executable)
    preload = re.split("[: ]", environ.get("LD_PRELOAD", ""))
    return Loader(
        system="linux",
        machine=machine,
        executable=executable,
        roots=(*report["shared"], str(report["extension"])),
        shared=len(report["shared"]),
        loaded=tuple(report["loaded"]),
        preloaded=tuple(os.path.realpath(name) for name in preload if "/" in name),
        search_path=_split(environ.get("LD_LIBRARY_PATH", "")),
        cache=read_cache(Path("/etc/ld.so.cache"), machine),
        defaults=defaults,
        extra=tuple(report["wheels"]),
        levels=_levels(machine),
        lib=defaults[0].removeprefix("/usr").strip("/") if defaults else "lib",
    )


def _split(text: str) -> tuple[str, ...]:
    """Split a variable of folders; an empty one among them is the current folder."""
    return tuple(re.split("[:;]", text)) if text else ()


def _system_folders(executable: str) -> tuple[str, ...]:
    """Return the folders that the interpreter's own ld.so knows; a distribution has its own, conda's too."""
    from elftools.elf.elffile import ELFFile

    from torchbuild_tasks.system.elf import BROKEN

    try:
        with Path(executable).open("rb") as file:
            parts: list[Any] = list(ELFFile(file).iter_segments("PT_INTERP"))
            data = Path(parts[0].get_interp_name()).read_bytes() if parts else b""
    except (OSError, *BROKEN):
        data = b""
    rows = [row for row in _SYSTEM_DIRS.findall(data) if b"/lib" in row]
    names = max(rows, key=len, default=b"/lib64/\0/usr/lib64/\0/lib/\0/usr/lib/\0").decode().split("\0")
    return tuple(name.rstrip("/") for name in names if name)


def _levels(machine: str) -> tuple[str, ...]:
    if machine != "x86_64":
        return ()
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", errors="replace")
    except OSError:
        return ()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    has = set(line.split())
    met = list[str]()
    for level, flags in _LEVELS:
        if not has.issuperset(flags.split()):
            break
        met.insert(0, f"glibc-hwcaps/{level}")
    return tuple(met)
