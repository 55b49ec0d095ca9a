"""Read the imports and exports of a Windows DLL (Microsoft's "PE Format").

https://learn.microsoft.com/en-us/windows/win32/debug/pe-format
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import pefile  # type: ignore[import-untyped]  # its stubs take numbers for bytes

from torchbuild_tasks.model.closure import Image, Symbol
from torchbuild_tasks.system.reading import open_file

_MACHINES: Final = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "aarch64", 0x1C4: "arm"}
_DIRECTORIES: Final = tuple(
    pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{name}"] for name in ("IMPORT", "DELAY_IMPORT", "RESOURCE")
)


class _File(pefile.PE):  # type: ignore[misc]  # without types
    """A DLL that is closed without pefile's full garbage collection (up to 40 ms)."""

    def close(self) -> None:
        if data := self.__dict__.pop("__data__", None):
            data.close()


def read_pe(path: str, real: str, size: int) -> tuple[Image, tuple[Symbol, ...]]:
    """Return the DLL's headers and imported functions; `damage` is set if it is broken."""
    try:
        pe = _File(path, fast_load=True)
    except (pefile.PEFormatError, ValueError) as error:
        return Image(real=real, damage=f"broken DLL: {error}"), ()
    try:
        machine = _MACHINES.get(pe.FILE_HEADER.Machine, f"machine {pe.FILE_HEADER.Machine:#x}")
        end = max((s.PointerToRawData + s.SizeOfRawData for s in pe.sections), default=0)
        if end > size:
            words = f"cut short: {size:,} of {end:,} bytes are there"
            return Image(real=real, machine=machine, damage=words), ()
        pe.parse_data_directories(directories=list(_DIRECTORIES))
        return _image(pe, real, machine), tuple(_symbols(_entries(pe, "DIRECTORY_ENTRY_IMPORT")))
    except (pefile.PEFormatError, ValueError, AttributeError, IndexError) as error:
        return Image(real=real, damage=f"broken DLL: {error}"), ()
    finally:
        pe.close()


def _entries(pe: pefile.PE, directory: str) -> Iterable[Any]:
    return getattr(pe, directory, ())


def _image(pe: pefile.PE, real: str, machine: str) -> Image:
    fixed = getattr(pe, "VS_FIXEDFILEINFO", [])
    release = (fixed[0].FileVersionMS >> 16, fixed[0].FileVersionMS & 0xFFFF) if fixed else (0, 0)
    return Image(
        real=real,
        machine=machine,
        needed=tuple(_text(entry.dll) for entry in _entries(pe, "DIRECTORY_ENTRY_IMPORT")),
        delayed=tuple(_text(entry.dll) for entry in _entries(pe, "DIRECTORY_ENTRY_DELAY_IMPORT")),
        linker=(pe.OPTIONAL_HEADER.MajorLinkerVersion, pe.OPTIONAL_HEADER.MinorLinkerVersion),
        release=release,
    )


def _symbols(entries: Iterable[Any]) -> Iterator[Symbol]:
    """Yield the functions imported by name; ordinals cannot be resolved to names."""
    for entry in entries:
        for function in entry.imports:
            if function.name and len(function.name) < pefile.MAX_IMPORT_NAME_LENGTH:  # it cuts longer ones
                yield Symbol(_text(function.name), "", _text(entry.dll))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


# ----------------


_AMD64: Final = 0x8664
_PE32_PLUS: Final = 0x20B
_CODE: Final = 0x20000000  # IMAGE_SCN_MEM_EXECUTE
_MOST: Final = 100_000  # names; NVIDIA's largest library exports some thousands


class Export(msgspec.Struct, frozen=True):
    """One exported name; `hint` is its index in the DLL's table, `code` tells functions from data."""

    name: str
    hint: int
    code: bool


class _Section(msgspec.Struct, frozen=True):
    address: int
    size: int
    offset: int
    executable: bool


def read_exports(path: Path) -> tuple[Export, ...]:
    """Return the names that a DLL for x86_64 exports.

    Raises:
        ValueError: it is no such DLL, or a broken one.
        OSError: it cannot be read.
    """
    try:
        with open_file(path) as file:
            return tuple(_exports(file))
    except (struct.error, IndexError) as error:
        raise ValueError(f"{path.name} is cut short") from error


def _exports(file: BinaryIO) -> Iterator[Export]:
    directory, sections = _headers(file)
    if not directory:
        return
    functions, names, *tables = struct.unpack("<20xIIIII", _at(file, _offset(directory, sections), 40))
    if max(names, functions) > _MOST:
        raise ValueError(f"{max(names, functions)} exports are too many to be true")
    if not names:
        return
    function_table, name_table, ordinal_table = (_offset(address, sections) for address in tables)
    addresses = struct.unpack(f"<{functions}I", _at(file, function_table, 4 * functions))
    pointers = struct.unpack(f"<{names}I", _at(file, name_table, 4 * names))
    ordinals = struct.unpack(f"<{names}H", _at(file, ordinal_table, 2 * names))
    for hint, (pointer, ordinal) in enumerate(zip(pointers, ordinals, strict=True)):
        address = addresses[ordinal]
        code = any(s.executable and s.address <= address < s.address + s.size for s in sections)
        name = _at(file, _offset(pointer, sections), 4096).split(b"\0", 1)[0].decode("ascii")
        yield Export(name, hint, code)


def _headers(file: BinaryIO) -> tuple[int, list[_Section]]:
    """Return the address of the export directory (0: none), and the sections."""
    (start,) = struct.unpack("<I", _at(file, 0x3C, 4))
    signature, machine, count, optional_size = struct.unpack("<4sHH12xH2x", _at(file, start, 24))
    optional = _at(file, start + 24, optional_size)
    if signature != b"PE\0\0" or machine != _AMD64 or struct.unpack_from("<H", optional)[0] != _PE32_PLUS:
        raise ValueError("no DLL for x86_64")
    table = _at(file, start + 24 + optional_size, 40 * count)
    sections = []
    for number in range(count):
        size, address, raw, offset, flags = struct.unpack_from("<8xIIII12xI", table, 40 * number)
        sections.append(_Section(address, max(size, raw), offset, bool(flags & _CODE)))
    return struct.unpack_from("<I", optional, 112)[0], sections


def _offset(address: int, sections: list[_Section]) -> int:
    for section in sections:
        if section.address <= address < section.address + section.size:
            return address - section.address + section.offset
    raise ValueError(f"no section holds the address {address:#x}")


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    file.seek(offset)
    return file.read(size)
