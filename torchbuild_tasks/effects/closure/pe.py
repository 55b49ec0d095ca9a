"""What a DLL says of itself: what it imports, at once and on demand, for which machine, which versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pefile  # type: ignore[import-untyped]  # its stubs take numbers for bytes

from torchbuild_tasks.model.closure import Image, Symbol

_MACHINES: Final = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "aarch64", 0x1C4: "arm"}
_DIRECTORIES: Final = tuple(
    pefile.DIRECTORY_ENTRY[f"IMAGE_DIRECTORY_ENTRY_{name}"] for name in ("IMPORT", "DELAY_IMPORT", "RESOURCE")
)


def read_pe(path: str, real: str, size: int) -> tuple[Image, tuple[Symbol, ...]]:
    """What the DLL says, and the functions that it takes; `damage` where it cannot be right."""
    try:
        pe = pefile.PE(path, fast_load=True)
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
    """The functions that are taken by name; those by number say nothing of what they are."""
    for entry in entries:
        for function in entry.imports:
            if function.name and len(function.name) < pefile.MAX_IMPORT_NAME_LENGTH:  # it cuts longer ones
                yield Symbol(_text(function.name), "", _text(entry.dll))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
