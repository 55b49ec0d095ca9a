"""The one door to the files of libraries: each is read once, and only as far as it is asked about."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from torchbuild_tasks.model.closure import Image, Symbol

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
        """What a library says of itself; None where there is no such file."""
        if path not in self._images:
            self._images[path] = self._look(path)
        return self._images[path]

    def wanted(self, path: str) -> Sequence[Symbol]:
        """What it takes from other libraries, and cannot do without."""
        if path in self._imports:
            return self._imports[path]
        symbols = self._symbols(path)
        return symbols.wanted() if symbols else ()

    def exported(self, path: str, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Those of `symbols` that it gives; all of them where its tables cannot be read."""
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
