"""The functions that a library of Linux takes and gives, found by its hash table.

Nothing but the names in question is read: libtorch_cpu.so gives some ten thousand. Sources: gABI,
"Hash Table"; check_match and do_lookup_x in elf/dl-lookup.c of glibc.
"""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from elftools.elf.elffile import ELFFile

from torchbuild_tasks.effects.closure.elf import BROKEN, dynamic_of, sections
from torchbuild_tasks.model.closure import Symbol

_SYMBOL: Final = struct.Struct("<IBBHQQ")  # Elf64_Sym
_WEAK_BINDING: Final = 2  # STB_WEAK
_BROKEN: Final = (OSError, struct.error, *BROKEN)
_HIDDEN: Final = 0x8000  # of an entry of DT_VERSYM: only by this version, never without one


def open_symbols(path: str) -> Symbols | None:
    """The symbols of a library; None where it has none that can be read."""
    try:
        with Path(path).open("rb") as file:
            return Symbols(file)
    except _BROKEN:
        return None


class Symbols:
    """The symbols of one library of 64 bits, little end first.

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
        symbols, strings = tables["DT_SYMTAB"], tables["DT_STRTAB"]
        self._versym, self._gnu, self._sysv = tables["DT_VERSYM"], tables["DT_GNU_HASH"], tables["DT_HASH"]
        if symbols is None or strings is None or (self._gnu is None and self._sysv is None):
            raise ValueError("no table of symbols")
        self._symbols, self._strings = symbols, strings
        self._count = sum(section.num_symbols() for section in sections(elf, "SHT_DYNSYM"))
        self._needs = _needed_versions(elf)
        self._gives = _given_versions(elf)

    def wanted(self) -> tuple[Symbol, ...]:
        """What it takes from others and cannot do without; nothing where a table is broken."""
        try:
            return tuple(self._undefined())
        except _BROKEN:
            return ()

    def exported(self, symbols: Collection[Symbol]) -> Collection[Symbol]:
        """Those of these that it gives, each in the version asked for; all where a table is broken."""
        try:
            return self._given(symbols)
        except _BROKEN:
            return symbols

    def _undefined(self) -> Iterator[Symbol]:
        for index in range(1, self._first_given()):
            name, info, _, section, _, _ = self._symbol(index)
            if section == 0 and info >> 4 != _WEAK_BINDING and name:
                library, version = self._needs.get(self._version(index), ("", ""))
                yield Symbol(self._text(name), version, library)

    def _given(self, symbols: Collection[Symbol]) -> set[Symbol]:
        if self._gnu is None:
            given = self._all_given()
            return {symbol for symbol in symbols if symbol.name in given}
        find = self._finder(self._gnu)
        return {symbol for symbol in symbols if find(symbol)}

    def _first_given(self) -> int:
        """The undefined stand before all that the GNU table holds; the other holds them all."""
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

    def _all_given(self) -> set[str]:
        return {
            self._text(name)
            for name, _, _, section, _, _ in map(self._symbol, range(1, self._first_given()))
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
    """The hash of a name, as DT_GNU_HASH has it (dl_new_hash of glibc)."""
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _needed_versions(elf: ELFFile) -> dict[int, tuple[str, str]]:
    """By the number in DT_VERSYM: the library, and the version of it."""
    return {
        aux["vna_other"] & ~_HIDDEN: (version.name, aux.name)
        for section in sections(elf, "SHT_GNU_verneed")
        for version, names in section.iter_versions()
        for aux in names
    }


def _given_versions(elf: ELFFile) -> dict[int, str]:
    return {
        version["vd_ndx"] & ~_HIDDEN: next(names).name
        for section in sections(elf, "SHT_GNU_verdef")
        for version, names in section.iter_versions()
    }
