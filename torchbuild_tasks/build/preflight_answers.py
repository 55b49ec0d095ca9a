"""Read what a pre-flight's programs printed: an object's architectures, a cache's answer."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from torchbuild_tasks.values import parse_json

# What makes each cache compile anew and keep the result: the first pass has to compile really.
ANEW: Final[Mapping[str, str]] = {"ccache": "CCACHE_RECACHE", "sccache": "SCCACHE_RECACHE"}
CCACHE_LOG: Final = "CCACHE_LOGFILE"

_LISTED: Final = re.compile(r"^(ELF|PTX) file +\d+: .*\bsm_(\w+)\.(?:cubin|ptx)\s*$", re.MULTILINE)
# 3.x: "Result: cache hit (direct)"; 4.x: "Result: direct_cache_hit", and lines about its storage.
_RESULT: Final = re.compile(r"\] Result: (?!local_|remote_|primary_|secondary_)(.+)$", re.MULTILINE)
# The words of a fat binary: mark, version, size of its header, size of what follows; then of each image.
_FATBIN: Final = b"\x50\xed\x55\xba"
_HEAD: Final = struct.Struct("<IHHQ")
_HEAD_OF_IMAGE: Final = struct.Struct("<HHIQ")
_ARCH_AT: Final = 28
_KINDS: Final = {1: "compute", 2: "sm"}
_HIT: Final = re.compile(r"(direct|preprocessed)_cache_hit|cache hit \(")


class Answer(NamedTuple):
    """Whether a cache had the object; `reason` is why not, in the cache's own words."""

    hit: bool
    reason: str = ""


# ---------------------------------------------------------------- architectures


def listed_archs(listing: str) -> tuple[str, ...]:
    """Read what `cuobjdump --list-elf --list-ptx` lists: "sm_86" for machine code, "compute_90" for PTX."""
    found = _LISTED.findall(listing)
    kinds = {"ELF": "sm", "PTX": "compute"}
    named = [f"{prefix}_{name}" for each, prefix in kinds.items() for kind, name in found if kind == each]
    return tuple(dict.fromkeys(named))


def held_archs(data: bytes) -> tuple[str, ...]:
    """Read the same out of an object file, ELF or COFF, that nvcc made: its fat binaries tell it themselves.

    A fat binary is a header and one entry for each image (what nvcc 12.4 and 13.0 write, compressed or
    not; NVIDIA has the layout in no document). An entry says its own size, its kind and its architecture.
    """
    found: list[str] = []
    at = data.find(_FATBIN)
    while at >= 0:
        found += _images(data, at)
        at = data.find(_FATBIN, at + 1)
    return tuple(dict.fromkeys(sorted(found, key=lambda each: each.startswith("compute"))))


def _images(data: bytes, at: int) -> Iterator[str]:
    try:
        _, _, header, size = _HEAD.unpack_from(data, at)
        place, end = at + header, min(at + header + size, len(data))
        while place < end:
            kind, _, header, size = _HEAD_OF_IMAGE.unpack_from(data, place)
            (arch,) = struct.unpack_from("<I", data, place + _ARCH_AT)
            if kind in _KINDS:
                yield f"{_KINDS[kind]}_{arch}"
            place += max(header + size, 1)
    except struct.error:
        return


def same_archs(planned: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """Say whether an object holds what was planned, and nothing else.

    Machine code of sm_120f is listed as sm_120; cuobjdump 12.4 also lists sm_90a of nvcc 13.0 as sm_90.
    """
    return all(_in(code, found) for code in planned) and set(found) <= {
        each for code in planned for each in (code, _bare(code))
    }


def _in(code: str, found: tuple[str, ...]) -> bool:
    return code in found or _bare(code) in found


def _bare(code: str) -> str:
    return code.rstrip("af") if code.startswith("sm_") else code


# ---------------------------------------------------------------- caches


def cache_of(launcher: tuple[str, ...]) -> str:
    """Return the cache that a launcher is, if its hits can be counted: ccache, sccache or ""."""
    program = re.split(r"[/\\]", launcher[0])[-1].lower() if launcher else ""
    name = program.removesuffix(".exe")
    return name if name in ANEW else ""


def ccache_answer(log: str) -> Answer:
    """Read ccache's log of one command."""
    results = _RESULT.findall(log)
    if any(_HIT.match(result) for result in results):
        return Answer(hit=True)
    return Answer(hit=False, reason=", ".join(dict.fromkeys(results)) or "its log says nothing")


def sccache_answer(before: str, after: str) -> Answer:
    """Compare two answers of `sccache --show-stats --stats-format json` say of the command in between.

    One nvcc command is several entries in that cache, and all of them must be there.
    """
    try:
        old, new = (parse_json(text)["stats"] for text in (before, after))
        hits, misses = (_count(new, name) - _count(old, name) for name in ("cache_hits", "cache_misses"))
        refused = {k: v for k, v in new["not_cached"].items() if v > old["not_cached"].get(k, 0)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return Answer(hit=False, reason="its statistics cannot be read")
    if hits and not misses and not refused:
        return Answer(hit=True)
    reason = f"{hits} hits and {misses} misses" if hits or misses else "it was not asked for anything"
    return Answer(hit=False, reason=", ".join(refused) or reason)


def _count(stats: Mapping[str, Mapping[str, Mapping[str, int]]], name: str) -> int:
    return sum(stats[name]["counts"].values())
