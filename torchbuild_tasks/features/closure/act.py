"""Find the libraries of an installed torch: query its interpreter and read the files, without loading them.

Last is its loader: where that looks for libraries, on Windows and by ld.so's own file.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from elftools.elf.elffile import ELFFile

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.closure.choose import close, searched_text
from torchbuild_tasks.model.closure import Break, Closure, Image, Loader, Symbol
from torchbuild_tasks.system.elf import BROKEN, Symbols, open_symbols, read_cache, read_elf
from torchbuild_tasks.system.process import Captured, capture, ending, search_path, tail
from torchbuild_tasks.system.reading import open_file, read_bytes
from torchbuild_tasks.values import parse_json, replace
from torchbuild_tasks.verify.closure_probe import MARK

_MISSING: Final = (FileNotFoundError, NotADirectoryError)


class Files:
    """The libraries on this machine, by path."""

    def __init__(self) -> None:
        self._images: dict[str, Image | None] = {}
        self._imports: dict[str, tuple[Symbol, ...]] = {}
        self._tables: dict[str, Symbols | None] = {}
        self._exports: dict[str, frozenset[str] | None] = {}

    def image(self, path: str) -> Image | None:
        """Return the header of a library; None without such a file."""
        if path not in self._images:
            self._images[path] = self._look(path)
        return self._images[path]

    def wanted(self, path: str) -> Sequence[Symbol]:
        """Return the symbols that it needs from other libraries."""
        if path in self._imports:
            return self._imports[path]
        symbols = self._symbols(path)
        return symbols.wanted() if symbols else ()

    def exported(self, path: str, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Return those of `symbols` that it exports; all if its tables cannot be read."""
        if path in self._imports:
            names = self._names(path)
            return symbols if names is None else {symbol for symbol in symbols if symbol.name in names}
        own = self._symbols(path)
        return own.exported(symbols) if own else symbols

    def _symbols(self, path: str) -> Symbols | None:
        if path not in self._tables:
            self._tables[path] = open_symbols(path)
        return self._tables[path]

    def _look(self, path: str) -> Image | None:
        try:
            state = Path(path).stat()
            if stat.S_ISDIR(state.st_mode):
                return Image(real=path, damage="a folder")
            if not stat.S_ISREG(state.st_mode):
                return Image(real=path, damage="no regular file")
            return self._read(path, os.path.realpath(path), state.st_size)
        except _MISSING:
            return None
        except OSError as error:
            return Image(real=path, damage=f"cannot be read: {error.strerror}", passed_over=True)

    def _read(self, path: str, real: str, size: int) -> Image:
        with open_file(Path(path)) as file:
            start = file.read(4)
            if start == b"\x7fELF":
                file.seek(0)
                return read_elf(file, real, size)
        if start[:2] == b"MZ":
            from torchbuild_tasks.system.pe import read_pe

            image, self._imports[path] = read_pe(path, real, size)
            return image
        words = "empty" if not size else "a text: a linker script, or what Git LFS left in its place"
        return Image(real=real, damage=words if _is_text(start) or not size else "no library")

    def _names(self, path: str) -> frozenset[str] | None:
        if path not in self._exports:
            from torchbuild_tasks.system.pe import read_exports

            try:
                self._exports[path] = frozenset(export.name for export in read_exports(Path(path)))
            except (OSError, ValueError):
                self._exports[path] = None
        return self._exports[path]


def _is_text(start: bytes) -> bool:
    return all(32 <= byte < 127 or byte in b"\t\r\n" for byte in start)


# ----------------


PROBE: Final = Path(__file__).parents[2] / "verify/closure_probe.py"
_LIMIT: Final = 60.0  # seconds; a working Python needs one


def find_closure(python: str, environ: Mapping[str, str]) -> Closure:
    """Follow every library that `import torch` of this Python loads, in this environment."""
    if not python:
        return Closure(python=python, problem="no Python was found")
    began = time.monotonic()
    loader, problem = _look_at_loader(python, environ)
    if loader is None:
        return Closure(python=python, problem=problem, seconds=round(time.monotonic() - began, 3))
    libraries, breaks = close(loader, Files(), load_catalog().library)
    seconds = round(time.monotonic() - began, 3)
    return Closure(python=python, libraries=libraries, breaks=breaks, seconds=seconds)


def find_breaks(
    python: str, environ: Mapping[str, str], libraries: Sequence[str]
) -> dict[str, tuple[Break, ...]]:
    """Return the breaks that would prevent loading each library after `import torch`, by its path.

    Each is walked alone: what one of a package lacks, another may be there to do without.
    """
    loader, _ = _look_at_loader(python, environ)
    if loader is None:
        return {}
    files = Files()
    rows = load_catalog().library
    errors = {}
    for path in libraries:
        _, breaks = close(replace(loader, roots=(*loader.roots, path)), files, rows)
        own = (each for each in breaks if path in (each.path, *each.chain[:1]))
        errors[path] = tuple(each for each in own if each.status == "error")
    return errors


def _look_at_loader(python: str, environ: Mapping[str, str]) -> tuple[Loader | None, str]:
    """Return the loader of the process that imports torch; None and a problem without a torch."""
    with tempfile.TemporaryDirectory(prefix="torchbuild-closure-", ignore_cleanup_errors=True) as empty:
        captured = capture([python, "-I", str(PROBE)], env=environ, cwd=empty, timeout=_LIMIT)
    report = _read_report(captured)
    if problem := str(report.get("problem", "")):
        return None, problem
    return read_loader(report, environ), ""


def reason(python: str, environ: Mapping[str, str], error: str) -> str:
    """Return why `import torch` failed, if its libraries show it; else Python's own `error`."""
    closure = find_closure(python, environ)
    if not closure.breaks:
        return error
    first = closure.breaks[0]
    more = len(closure.breaks) - 1
    lines = [first.text if first.status == "error" else f"It may be this: {first.text}"]
    lines += [f"  needed by: {' > '.join(first.chain)}"] if first.chain else []
    lines += [f"  looked in: {searched_text(first)}"] if first.looked else []
    lines += [f"  {first.fix}"] if first.fix else []
    lines += [f"  {more} more: torchbuild verify --closure"] if more else []
    return "\n".join([*lines, f"  Python says: {error}"])


def _read_report(captured: Captured) -> Mapping[str, Any]:
    """Return the probe's report on its process; with a `problem` if it printed nothing."""
    for line in captured.text.splitlines():
        if MARK in line:
            report: dict[str, Any] = parse_json(line.partition(MARK)[2])
            return report
    return {"problem": f"{ending(captured)} before it printed anything{tail(captured.stderr)}"}


# The default folders are one block in ld.so's data (system_dirs in elf/dl-load.c of glibc).
_SYSTEM_DIRS: Final = re.compile(rb"(?:/[\w.+/-]{1,200}/\0){2,8}")
# Processor flags of /proc/cpuinfo by level; each needs those before it (psABI of x86-64, table 3.1).
_LEVELS: Final = (
    ("x86-64-v2", "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
    ("x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"),
    ("x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl"),
)


def read_loader(report: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    """Return the loader of the process in the report of `verify/closure_probe.py`."""
    return _windows_loader(report, environ) if report["windows"] else _linux_loader(report, environ)


def _windows_loader(report: Mapping[str, Any], environ: Mapping[str, str]) -> Loader:
    path = search_path(environ) or ""
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
    path = environ.get("LD_LIBRARY_PATH", "")
    return Loader(
        system="linux",
        machine=machine,
        executable=executable,
        roots=(*report["shared"], str(report["extension"])),
        shared=len(report["shared"]),
        loaded=tuple(report["loaded"]),
        preloaded=tuple(os.path.realpath(name) for name in preload if "/" in name),
        search_path=tuple(re.split("[:;]", path)) if path else (),  # an empty entry is the current folder
        cache=read_cache(Path("/etc/ld.so.cache"), machine),
        defaults=defaults,
        extra=tuple(report["wheels"]),
        levels=_levels(machine),
        lib=defaults[0].removeprefix("/usr").strip("/") if defaults else "lib",
    )


def _system_folders(executable: str) -> tuple[str, ...]:
    """Return the default folders of the interpreter's ld.so, which differ by distribution, as conda's do."""
    try:
        with open_file(Path(executable)) as file:
            parts: list[Any] = list(ELFFile(file).iter_segments("PT_INTERP"))
            data = read_bytes(Path(parts[0].get_interp_name())) if parts else b""
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
