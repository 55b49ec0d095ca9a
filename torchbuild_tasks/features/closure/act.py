"""The closure of one torch on this machine: its process asked, its libraries read, none of them loaded."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.features.closure.choose import close, looked_words
from torchbuild_tasks.features.closure.loader import read_loader
from torchbuild_tasks.model.closure import Closure, Image, Symbol
from torchbuild_tasks.system.process import Captured, capture, ending, tail
from torchbuild_tasks.values import parse_json
from torchbuild_tasks.verify.closure_probe import MARK

if TYPE_CHECKING:
    from torchbuild_tasks.system.elf import Symbols


_GONE: Final = (FileNotFoundError, NotADirectoryError)


class Files:
    """The libraries on this machine, by path."""

    def __init__(self) -> None:
        self._images: dict[str, Image | None] = {}
        self._imports: dict[str, tuple[Symbol, ...]] = {}
        self._tables: dict[str, Symbols | None] = {}
        self._exports: dict[str, frozenset[str] | None] = {}

    def image(self, path: str) -> Image | None:
        """Return the header of a library; None where there is no such file."""
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
        """Return those of `symbols` that it exports; all of them where its tables cannot be read."""
        if path in self._imports:
            names = self._names(path)
            return symbols if names is None else {symbol for symbol in symbols if symbol.name in names}
        own = self._symbols(path)
        return own.exported(symbols) if own else symbols

    def _symbols(self, path: str) -> Symbols | None:
        if path not in self._tables:
            from torchbuild_tasks.system.elf import open_symbols

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
        except _GONE:
            return None
        except OSError as error:
            return Image(real=path, damage=f"cannot be read: {error.strerror}", passed_over=True)

    def _read(self, path: str, real: str, size: int) -> Image:
        with Path(path).open("rb") as file:
            start = file.read(4)
            if start == b"\x7fELF":
                from torchbuild_tasks.system.elf import read_elf

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
_LIMIT: Final = 60.0  # seconds; a Python that starts at all has answered in one


def find_closure(python: str, environ: Mapping[str, str]) -> Closure:
    """Follow every library that `import torch` of this Python loads, in this environment."""
    if not python:
        return Closure(python=python, problem="no Python was found")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torchbuild-closure-", ignore_cleanup_errors=True) as empty:
        captured = capture([python, "-I", str(PROBE)], env=environ, cwd=empty, timeout=_LIMIT)
    report = _read_report(captured)
    if problem := str(report.get("problem", "")):
        return Closure(python=python, problem=problem, seconds=round(time.monotonic() - began, 3))
    libraries, breaks = close(read_loader(report, environ), Files(), load_catalog().library)
    seconds = round(time.monotonic() - began, 3)
    return Closure(python=python, libraries=libraries, breaks=breaks, seconds=seconds)


def reason(python: str, environ: Mapping[str, str], error: str) -> str:
    """Say why `import torch` failed, where its libraries show it; else return Python's own `error`."""
    closure = find_closure(python, environ)
    if not closure.breaks:
        return error
    first = closure.breaks[0]
    more = len(closure.breaks) - 1
    lines = [first.text if first.status == "error" else f"It may be this: {first.text}"]
    lines += [f"  needed by: {' > '.join(first.chain)}"] if first.chain else []
    lines += [f"  looked in: {looked_words(first)}"] if first.looked else []
    lines += [f"  {first.fix}"] if first.fix else []
    lines += [f"  {more} more: torchbuild verify --closure"] if more else []
    return "\n".join([*lines, f"  Python says: {error}"])


def _read_report(captured: Captured) -> Mapping[str, Any]:
    """Return what the probe printed about its process; a `problem` where it printed nothing."""
    for line in captured.stdout.decode(errors="replace").splitlines():
        if MARK in line:
            report: dict[str, Any] = parse_json(line.partition(MARK)[2])
            return report
    return {"problem": f"{ending(captured)} before it printed anything{tail(captured.stderr)}"}
