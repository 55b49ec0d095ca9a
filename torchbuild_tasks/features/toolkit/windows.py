"""Complete a toolkit on Windows: create import libraries for its DLLs.

NVIDIA's wheels bring most DLLs without. The format of an import library: Microsoft's "PE Format", sections
"Archive (Library) File Format" and "Import Library Format"; the three objects at its
beginning are those that every linker expects there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.system.pe import Export, read_exports

# cublas64_13.dll is linked with as cublas.lib, cupti64_2025.3.1.dll as cupti.lib, nvJitLink_130_0.dll
# as nvJitLink.lib.
_DLL: Final = re.compile(r"(?P<name>\w+?)(?:64)?(?:_[\d._]*\d)?\.dll", re.IGNORECASE)
_FOLDERS: Final = ("bin", "bin/x86_64", "bin/x64")
LIBRARIES: Final = "lib/x64"


def complete(folder: Path, note: Callable[[str], None]) -> None:
    """Create `lib/x64/X.lib` for every DLL without one.

    Raises:
        OSError: something cannot be written.
    """
    for dll, name in _list_dlls(folder):
        path = folder / LIBRARIES / f"{name}.lib"
        if path.exists():
            continue
        try:
            exports = read_exports(dll)
        except ValueError as error:
            note(f"no {path.name} can be made for {dll.name}: {error}")
            continue
        if exports:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(import_library(dll.name, exports))


def _list_dlls(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every DLL, and the name of its import library."""
    for inside in _FOLDERS:
        if (folder / inside).is_dir():
            for path in sorted((folder / inside).iterdir()):
                if match := _DLL.fullmatch(path.name):
                    yield path, match["name"]


# ---------------- an import library: the members, the three objects at its beginning, the archive

_AMD64: Final = 0x8664
_ADDR32NB: Final = 3  # IMAGE_REL_AMD64_ADDR32NB
_EXTERNAL, _STATIC, _SECTION = 2, 3, 104  # storage classes
_DATA: Final = 0xC0000040  # initialized, readable, writable
_ALIGN_2 = 0x200000
_ALIGN_4 = 0x300000
_ALIGN_8 = 0x400000
_BY_NAME: Final = 1 << 2
_NULL_DESCRIPTOR: Final = "__NULL_IMPORT_DESCRIPTOR"


class _Piece(msgspec.Struct, frozen=True):
    """A section of an object: its name, flags, content, and relocations (offset, symbol)."""

    name: str
    flags: int
    data: bytes
    fills: tuple[tuple[int, int], ...] = ()


class _Member(msgspec.Struct, frozen=True):
    """A member of the library, and the symbols that it defines."""

    data: bytes
    symbols: tuple[str, ...]


def import_library(dll: str, exports: Sequence[Export]) -> bytes:
    """Return the bytes of the import library of `dll` (its file name) with these exports."""
    stem = dll.rpartition(".")[0]
    descriptor = f"__IMPORT_DESCRIPTOR_{stem}"
    thunk = f"\x7f{stem}_NULL_THUNK_DATA"
    members = [
        _Member(_descriptor(dll, descriptor, thunk), (descriptor,)),
        _Member(_null_descriptor(), (_NULL_DESCRIPTOR,)),
        _Member(_null_thunk(thunk), (thunk,)),
        *(_import(dll, export) for export in exports),
    ]
    return _archive(dll, members)


def _import(dll: str, export: Export) -> _Member:
    names = f"{export.name}\0{dll}\0".encode("ascii")
    kind = 0 if export.code else 1
    head = struct.pack("<HHHHIIHH", 0, 0xFFFF, 0, _AMD64, 0, len(names), export.hint, kind | _BY_NAME)
    symbols = (f"__imp_{export.name}", export.name) if export.code else (f"__imp_{export.name}",)
    return _Member(head + names, symbols)


def _descriptor(dll: str, name: str, thunk: str) -> bytes:
    """Return the DLL's entry in the import directory, and its name."""
    text = dll.encode("ascii") + b"\0"
    pieces = (
        _Piece(".idata$2", _DATA | _ALIGN_4, bytes(20), fills=((12, 2), (0, 3), (16, 4))),
        _Piece(".idata$6", _DATA | _ALIGN_2, text + bytes(len(text) % 2)),
    )
    symbols = (
        (name, 1, _EXTERNAL),
        (".idata$2", 1, _SECTION),
        (".idata$6", 2, _STATIC),
        (".idata$4", 0, _SECTION),
        (".idata$5", 0, _SECTION),
        (_NULL_DESCRIPTOR, 0, _EXTERNAL),
        (thunk, 0, _EXTERNAL),
    )
    return _object(pieces, symbols)


def _null_descriptor() -> bytes:
    """Return the null entry that ends the import directory."""
    return _object((_Piece(".idata$3", _DATA | _ALIGN_4, bytes(20)),), ((_NULL_DESCRIPTOR, 1, _EXTERNAL),))


def _null_thunk(name: str) -> bytes:
    """Return the null terminators of the DLL's two address tables."""
    pieces = tuple(_Piece(section, _DATA | _ALIGN_8, bytes(8)) for section in (".idata$5", ".idata$4"))
    return _object(pieces, ((name, 1, _EXTERNAL),))


def _object(pieces: Sequence[_Piece], symbols: Sequence[tuple[str, int, int]]) -> bytes:
    """Return a COFF object of these sections and symbols (name, section, storage class)."""
    at = 20 + 40 * len(pieces)
    headers = b""
    bodies = b""
    for piece in pieces:
        fills = b"".join(struct.pack("<IIH", offset, symbol, _ADDR32NB) for offset, symbol in piece.fills)
        data_at = at + len(bodies)
        fills_at = data_at + len(piece.data) if fills else 0
        name = piece.name.encode("ascii")
        fields = (len(piece.data), data_at, fills_at, 0, len(piece.fills), 0, piece.flags)
        headers += struct.pack("<8s8xIIIIHHI", name, *fields)
        bodies += piece.data + fills
    head = struct.pack("<HHIIIHH", _AMD64, len(pieces), 0, at + len(bodies), len(symbols), 0, 0)
    return head + headers + bodies + _symbols(symbols)


def _symbols(symbols: Sequence[tuple[str, int, int]]) -> bytes:
    """Return the symbol table, followed by the string table for long names."""
    table = b""
    strings = b""
    for text, section, storage in symbols:
        name = text.encode("ascii")
        if len(name) > 8:
            short = struct.pack("<II", 0, 4 + len(strings))
            strings += name + b"\0"
        else:
            short = name.ljust(8, b"\0")
        table += short + struct.pack("<IhHBB", 0, section, 0, storage, 0)
    return table + struct.pack("<I", 4 + len(strings)) + strings


def _archive(dll: str, members: Sequence[_Member]) -> bytes:
    """Return the archive: two indexes of symbols, by position and by name, then the members."""
    pairs = [(symbol, number) for number, member in enumerate(members) for symbol in member.symbols]
    names = b"".join(symbol.encode("ascii") + b"\0" for symbol, _ in pairs)
    title = f"{dll}/"
    long = dll.encode("ascii") + b"\0" if len(title) > 16 else b""
    first_size = 4 + 4 * len(pairs) + len(names)
    second_size = 4 + 4 * len(members) + 4 + 2 * len(pairs) + len(names)
    start = 8 + _pad(first_size) + _pad(second_size) + (_pad(len(long)) if long else 0)
    offsets = []
    for member in members:
        offsets.append(start)
        start += _pad(len(member.data))
    first = struct.pack(f">I{len(pairs)}I", len(pairs), *(offsets[number] for _, number in pairs)) + names
    by_name = sorted(pairs)
    second = struct.pack(f"<I{len(members)}I", len(members), *offsets)
    second += struct.pack(f"<I{len(pairs)}H", len(pairs), *(number + 1 for _, number in by_name))
    second += b"".join(symbol.encode("ascii") + b"\0" for symbol, _ in by_name)
    head = [_entry("/", first), _entry("/", second), *([_entry("//", long)] if long else [])]
    return b"!<arch>\n" + b"".join((*head, *(_entry("/0" if long else title, m.data) for m in members)))


def _pad(size: int) -> int:
    return 60 + size + size % 2


def _entry(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{'':<6}{'':<6}{0:<8}{len(data):<10}`\n".encode("ascii")
    return head + data + b"\n" * (len(data) % 2)
