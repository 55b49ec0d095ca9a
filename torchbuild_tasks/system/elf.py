"""Read an ELF library: its header, its imported and exported symbols; and read the cache of ld.so."""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from torchbuild_tasks.model.closure import Image, Symbol
from torchbuild_tasks.system.reading import open_file, read_bytes

# Errors in pyelftools for a header that points outside of the file.
BROKEN: Final = (
    *(ELFError, ConstructError),
    *(ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OverflowError),
)
# Values of e_machine, as pyelftools names them (elftools.elf.enums.ENUM_E_MACHINE).
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
_ET_EXEC = 2
_ET_DYN = 3
_PT_LOAD: Final = 1
# Elf64_Ehdr and Elf64_Phdr. They are read by hand first: pyelftools begins with the table of sections,
# which is last in the file, and missing in a truncated one.
_HEADER: Final = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_NO_DEFAULTS: Final = 0x800  # DF_1_NODEFLIB of DT_FLAGS_1
_WEAK: Final = 0x2  # VER_FLG_WEAK


def read_elf(file: BinaryIO, real: str, size: int) -> Image:
    """Return the headers of the library of `size` bytes in `file`; `damage` is set if it is broken."""
    start = file.read(_HEADER.size)
    if len(start) < _HEADER.size:
        return Image(real=real, damage=f"cut short: {size:,} bytes are not a library")
    header = _HEADER.unpack(start)
    machine = _machine(header)
    if header[1] != _64_BITS or header[2] != _LITTLE_END:
        return Image(real=real, machine=machine)
    try:
        mapped, end = _measure(file, header)
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


def debug_size(path: Path) -> int:
    """Return the bytes of debug information in an ELF file."""
    try:
        with open_file(path) as file:
            parts = ELFFile(file).iter_sections()
            return sum(part["sh_size"] for part in parts if part.name.startswith((".debug_", ".zdebug_")))
    except BROKEN:
        return 0


def dynamic_of(elf: ELFFile) -> DynamicSegment | None:
    """Return the dynamic section, from the program headers, which the loader reads."""
    return next((part for part in elf.iter_segments("PT_DYNAMIC") if isinstance(part, DynamicSegment)), None)


def sections(elf: ELFFile, kind: str) -> Iterator[Any]:
    """Yield the sections of a class, which pyelftools' annotations do not tell."""
    yield from elf.iter_sections(kind)


def _machine(header: tuple[Any, ...]) -> str:
    """Return the processor, with a remark for a file of 32 bits or big-endian."""
    _, bits, order, _, number, *_ = header
    name = _MACHINES.get(number, f"machine {number}")
    if bits != _64_BITS and number != _EM_386:
        return f"{name} of 32 bits"
    return name if order == _LITTLE_END else f"{name}, big end first"


def _measure(file: BinaryIO, header: tuple[Any, ...]) -> tuple[int, int]:
    """Return the end of the last segment that the loader maps, and of the file, by its headers."""
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
    tags: list[Any] = list(dynamic.iter_tags()) if dynamic else []  # its attributes are created dynamically
    flags = next((tag.entry.d_val for tag in tags if tag.entry.d_tag == "DT_FLAGS_1"), 0)
    return Image(
        real=real,
        machine=machine,
        name=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        rpath=_folders(next((tag.rpath for tag in tags if tag.entry.d_tag == "DT_RPATH"), "")),
        runpath=_folders(next((tag.runpath for tag in tags if tag.entry.d_tag == "DT_RUNPATH"), "")),
        no_defaults=bool(flags & _NO_DEFAULTS),
        versions=frozenset(_read_defined_versions(elf).values()),
        wants=_read_wanted(elf),
    )


def _folders(text: str) -> tuple[str, ...]:
    return tuple(folder for folder in text.split(":") if folder)


def _read_wanted(elf: ELFFile) -> dict[str, tuple[str, ...]]:
    return {
        version.name: tuple(aux.name for aux in names if not aux["vna_flags"] & _WEAK)
        for section in sections(elf, "SHT_GNU_verneed")
        for version, names in section.iter_versions()
    }


# ---------------- the functions that an ELF library imports and exports, by its hash table


_SYMBOL: Final = struct.Struct("<IBBHQQ")  # Elf64_Sym
_WEAK_BINDING: Final = 2  # STB_WEAK
_BROKEN: Final = (OSError, struct.error, *BROKEN)
_HIDDEN: Final = 0x8000  # flag in DT_VERSYM: found only by its version


def open_symbols(path: str) -> Symbols | None:
    """Return the symbols of a library; None if there are none, or they cannot be read."""
    try:
        with open_file(Path(path)) as file:
            return Symbols(file)
    except _BROKEN:
        return None


class Symbols:
    """The symbols of one library, 64-bit little-endian.

    Raises:
        ValueError: it has no such tables.
    """

    def __init__(self, file: BinaryIO) -> None:
        elf = ELFFile(file)
        dynamic = dynamic_of(elf)
        if dynamic is None or elf.elfclass != 64 or not elf.little_endian:
            raise ValueError("no dynamic symbols of 64 bits")
        self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        tables = {
            tag: dynamic.get_table_offset(tag)[1]
            for tag in ("DT_SYMTAB", "DT_STRTAB", "DT_VERSYM", "DT_GNU_HASH", "DT_HASH")
        }
        symbols = tables["DT_SYMTAB"]
        strings = tables["DT_STRTAB"]
        self._versym = tables["DT_VERSYM"]
        self._gnu = tables["DT_GNU_HASH"]
        self._sysv = tables["DT_HASH"]
        if symbols is None or strings is None or (self._gnu is None and self._sysv is None):
            raise ValueError("no table of symbols")
        self._symbols = symbols
        self._strings = strings
        self._count = sum(section.num_symbols() for section in sections(elf, "SHT_DYNSYM"))
        self._needs = _read_needed_versions(elf)
        self._gives = _read_defined_versions(elf)

    def wanted(self) -> tuple[Symbol, ...]:
        """Return the symbols that it needs from other libraries; empty if a table is broken."""
        try:
            return tuple(self._read_undefined())
        except _BROKEN:
            return ()

    def exported(self, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Return those of `symbols` that it exports in the wanted version; all if a table is broken."""
        try:
            return self._find_defined(symbols)
        except _BROKEN:
            return symbols

    def _read_undefined(self) -> Iterator[Symbol]:
        for index in range(1, self._index_first_defined()):
            name, info, _, section, _, _ = self._symbol(index)
            if section == 0 and info >> 4 != _WEAK_BINDING and name:
                library, version = self._needs.get(self._version(index), ("", ""))
                yield Symbol(self._text(name), version, library)

    def _find_defined(self, symbols: Collection[Symbol]) -> set[Symbol]:
        if self._gnu is None:
            defined = self._defined_names()
            return {symbol for symbol in symbols if symbol.name in defined}
        find = self._finder(self._gnu)
        return {symbol for symbol in symbols if find(symbol)}

    def _index_first_defined(self) -> int:
        """Return the index of the first symbol in the GNU hash table, or the count in the SysV one."""
        if self._gnu is None:
            return int(struct.unpack_from("<4xI", self._data, self._sysv or 0)[0])
        buckets, first, bloom = struct.unpack_from("<III", self._data, self._gnu)
        start = self._gnu + 16 + 8 * bloom
        empty = not any(self._data[start : start + 4 * buckets])
        return self._count if empty else int(first)

    def _finder(self, table: int) -> Callable[[Symbol], bool]:
        data = self._data
        buckets, first, bloom, shift = struct.unpack_from("<IIII", data, table)
        filters = struct.unpack_from(f"<{bloom}Q", data, table + 16)
        heads = struct.unpack_from(f"<{buckets}I", data, table + 16 + 8 * bloom)
        chain = table + 16 + 8 * bloom + 4 * buckets

        def find(symbol: Symbol) -> bool:
            hashed = gnu_hash(symbol.name)
            mask = (1 << hashed % 64) | (1 << (hashed >> shift) % 64)
            if not buckets or filters[hashed // 64 % bloom] & mask != mask:
                return False
            index = heads[hashed % buckets]
            while index >= first:
                (other,) = struct.unpack_from("<I", data, chain + 4 * (index - first))
                if other | 1 == hashed | 1 and self._is(index, symbol):
                    return True
                if other & 1:
                    return False
                index += 1
            return False

        return find

    def _is(self, index: int, symbol: Symbol) -> bool:
        name, _, _, section, _, _ = self._symbol(index)
        wanted = symbol.name.encode() + b"\0"
        start = self._strings + name
        if section == 0 or self._data[start : start + len(wanted)] != wanted:
            return False
        if not symbol.version or not self._gives:
            return True
        return self._gives.get(self._version(index)) == symbol.version

    def _defined_names(self) -> set[str]:
        return {
            self._text(name)
            for name, _, _, section, _, _ in map(self._symbol, range(1, self._index_first_defined()))
            if section != 0
        }

    def _symbol(self, index: int) -> tuple[int, ...]:
        return _SYMBOL.unpack_from(self._data, self._symbols + _SYMBOL.size * index)

    def _version(self, index: int) -> int:
        if self._versym is None:
            return 0
        return int(struct.unpack_from("<H", self._data, self._versym + 2 * index)[0]) & ~_HIDDEN

    def _text(self, offset: int) -> str:
        start = self._strings + offset
        return self._data[start : self._data.find(b"\0", start)].decode("utf-8", "replace")


@functools.lru_cache(maxsize=100_000)
def gnu_hash(name: str) -> int:
    """Return the hash of a name for DT_GNU_HASH (dl_new_hash of glibc)."""
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _read_needed_versions(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """Return the library and its version by the number in DT_VERSYM."""
    return {
        aux["vna_other"] & ~_HIDDEN: (version.name, aux.name)
        for section in sections(elf, "SHT_GNU_verneed")
        for version, names in section.iter_versions()
        for aux in names
    }


def _read_defined_versions(elf: ELFFile) -> dict[int, str]:
    return {
        version["vd_ndx"] & ~_HIDDEN: next(names).name
        for section in sections(elf, "SHT_GNU_verdef")
        for version, names in section.iter_versions()
    }


# ---------------- /etc/ld.so.cache. Source: elf/dl-cache.h of glibc (struct cache_file_new)


_MAGIC: Final = b"glibc-ld.so.cache1.1"
_ENTRY: Final = struct.Struct("<iIIIQ")  # flags, name, path, OS version, hardware
# _dl_cache_check_flags: ELF of libc6, and the machine.
_FLAGS: Final = {"x86_64": 0x303, "aarch64": 0xA03, "ppc64le": 0x503, "s390x": 0x403, "riscv64": 0x1003}


def read_cache(path: Path, machine: str) -> dict[str, tuple[str, ...]]:
    """Return the paths by name, best first; empty without a cache, or with a broken one.

    Entries for other processors than the plain one (glibc-hwcaps) are left out: their folders are
    searched by name.
    """
    try:
        data = read_bytes(path)
        start = data.index(_MAGIC)
        (count,) = struct.unpack_from("<I", data, start + len(_MAGIC))
        entries = [_ENTRY.unpack_from(data, start + 48 + _ENTRY.size * number) for number in range(count)]
    except (OSError, ValueError, struct.error):
        return {}
    libraries: dict[str, tuple[str, ...]] = {}
    for flags, name, place, _, hardware in entries:
        if flags == _FLAGS.get(machine) and not hardware:
            key = _text(data, start + name)
            libraries[key] = (*libraries.get(key, ()), _text(data, start + place))
    return libraries


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "surrogateescape")
