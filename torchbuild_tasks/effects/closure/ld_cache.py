"""/etc/ld.so.cache, read directly. Source: elf/dl-cache.h of glibc (struct cache_file_new)."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

_MAGIC: Final = b"glibc-ld.so.cache1.1"
_ENTRY: Final = struct.Struct("<iIIIQ")  # flags, name, path, OS version, hardware
# _dl_cache_check_flags: ELF of libc6, and the machine.
_FLAGS: Final = {"x86_64": 0x303, "aarch64": 0xA03, "ppc64le": 0x503, "s390x": 0x403, "riscv64": 0x1003}


def read_cache(path: Path, machine: str) -> dict[str, tuple[str, ...]]:
    """The paths by name, best first; none where there is no cache, or a broken one.

    Entries for other processors than the plain one (glibc-hwcaps) are left out: their folders are
    searched by name.
    """
    try:
        data = path.read_bytes()
        start = data.index(_MAGIC)
        (count,) = struct.unpack_from("<I", data, start + len(_MAGIC))
        entries = [_ENTRY.unpack_from(data, start + 48 + _ENTRY.size * number) for number in range(count)]
    except (OSError, ValueError, struct.error):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for flags, name, place, _, hardware in entries:
        if flags == _FLAGS.get(machine) and not hardware:
            key = _text(data, start + name)
            found[key] = (*found.get(key, ()), _text(data, start + place))
    return found


def _text(data: bytes, offset: int) -> str:
    return data[offset : data.find(b"\0", offset)].decode("utf-8", "surrogateescape")
