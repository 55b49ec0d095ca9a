"""What a library of Linux says of itself: its dynamic section and its versions, no more.

A library of some 400 MB is read at a few places only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from elftools.common.exceptions import ELFError, ELFParseError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from torchbuild_tasks.model.closure import Image

# What goes wrong in pyelftools when a header points to where nothing is.
BROKEN: Final = (
    *(ELFError, ELFParseError, ConstructError),
    *(ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OverflowError),
)
_EM_386: Final = 3
_MACHINES: Final = {
    _EM_386: "x86",
    21: "ppc64le",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
}
_64_BITS: Final = 2
_LITTLE_END: Final = 1
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD: Final = 1
# Elf64_Ehdr and Elf64_Phdr. They are looked at by hand first: pyelftools begins with the table of sections,
# which stands last in the file, and is not there where that was cut short.
_HEADER: Final = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_NO_DEFAULTS: Final = 0x800  # DF_1_NODEFLIB of DT_FLAGS_1
_WEAK: Final = 0x2  # VER_FLG_WEAK


def read_elf(file: BinaryIO, real: str, size: int) -> Image:
    """What the library of `size` bytes in `file` says; `damage` where it cannot be right."""
    start = file.read(_HEADER.size)
    if len(start) < _HEADER.size:
        return Image(real=real, damage=f"cut short: {size:,} bytes are no library")
    header = _HEADER.unpack(start)
    machine = _machine(header)
    if header[1] != _64_BITS or header[2] != _LITTLE_END:
        return Image(real=real, machine=machine)
    try:
        mapped, end = _ends(file, header)
        if mapped > size:
            return Image(real=real, machine=machine, damage=f"cut short: {size:,} of {end:,} bytes are there")
        if end > size:
            return Image(real=real, machine=machine, cut_off=True)
        if header[3] not in (_ET_EXEC, _ET_DYN):
            return Image(real=real, machine=machine, damage="an object file, not a library")
        return _read(ELFFile(file), real, machine)
    except (*BROKEN, struct.error) as error:
        reason = str(error).strip() or type(error).__name__
        return Image(real=real, machine=machine, damage=f"broken ELF: {reason}")


def dynamic_of(elf: ELFFile) -> DynamicSegment | None:
    """The dynamic section, by the table that the loader reads."""
    return next((part for part in elf.iter_segments("PT_DYNAMIC") if isinstance(part, DynamicSegment)), None)


def sections(elf: ELFFile, kind: str) -> Iterator[Any]:
    """The sections of a kind, each with what its class has; pyelftools' types know the base alone."""
    yield from elf.iter_sections(kind)


def _machine(header: tuple[Any, ...]) -> str:
    """The processor; where the file is of the other size or byte order, with words that say so."""
    _, bits, order, _, number, *_ = header
    name = _MACHINES.get(number, f"machine {number}")
    if bits != _64_BITS and number != _EM_386:
        return f"{name} of 32 bits"
    return name if order == _LITTLE_END else f"{name}, big end first"


def _ends(file: BinaryIO, header: tuple[Any, ...]) -> tuple[int, int]:
    """Where the last byte is that the loader maps, and where the whole file ends."""
    *_, programs, sections, _, _, program_size, count, section_size, section_count, _ = header
    file.seek(programs)
    table = file.read(program_size * count)
    if len(table) < program_size * count:
        return programs + program_size * count, sections + section_size * section_count
    parts = [_PROGRAM.unpack_from(table, program_size * number) for number in range(count)]
    mapped = max(
        (offset + size for kind, _, offset, _, _, size, _, _ in parts if kind == _PT_LOAD), default=0
    )
    return mapped, max(mapped, sections + section_size * section_count)


def _read(elf: ELFFile, real: str, machine: str) -> Image:
    dynamic = dynamic_of(elf)
    tags: list[Any] = (
        list(dynamic.iter_tags()) if dynamic else []
    )  # their attributes are made as they are read
    flags = next((tag.entry.d_val for tag in tags if tag.entry.d_tag == "DT_FLAGS_1"), 0)
    return Image(
        real=real,
        machine=machine,
        name=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        rpath=_folders(next((tag.rpath for tag in tags if tag.entry.d_tag == "DT_RPATH"), "")),
        runpath=_folders(next((tag.runpath for tag in tags if tag.entry.d_tag == "DT_RUNPATH"), "")),
        no_defaults=bool(flags & _NO_DEFAULTS),
        versions=_defined(elf),
        wants=_wanted(elf),
    )


def _folders(text: str) -> tuple[str, ...]:
    return tuple(folder for folder in text.split(":") if folder)


def _defined(elf: ELFFile) -> frozenset[str]:
    return frozenset(
        next(names).name
        for section in sections(elf, "SHT_GNU_verdef")
        for _, names in section.iter_versions()
    )


def _wanted(elf: ELFFile) -> dict[str, tuple[str, ...]]:
    return {
        version.name: tuple(aux.name for aux in names if not aux["vna_flags"] & _WEAK)
        for section in sections(elf, "SHT_GNU_verneed")
        for version, names in section.iter_versions()
    }
