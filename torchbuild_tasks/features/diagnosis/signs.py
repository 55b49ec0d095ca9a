"""Read off an error what decides between its fixes: what a driver runs, which place is full, who speaks."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Final

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.failures import LazyPattern
from torchbuild_tasks.features.diagnosis.kinds import Kind
from torchbuild_tasks.features.diagnosis.machine import Machine

_DRIVER: Final = re.compile(r"\bfound version (\d{1,2})0(\d)0\b")
_GPU: Final = re.compile(r"\bcapability (?:\(CC\) )?(?:sm_)?(\d{1,2})\.?(\d)\b")
_OTHERS: Final = re.compile(r"Process \d{1,9} has ([\d.]{1,9} [GM]iB) memory in use")
_OWN: Final = re.compile(r"this process has ([\d.]{1,9} [GM]iB) memory in use")
_RESERVED: Final = re.compile(r"([\d.]{1,9} [GM]iB) is reserved by PyTorch but unallocated")
_TRIED: Final = re.compile(r"Tried to allocate ([\d.]{1,9} [GMK]iB)")
_UNITS: Final = {"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
# GCC's and clang's proposal for a name that is not there.
_PROPOSED: Final = re.compile(r"; did you mean (?:simply )?['‘\"]([\w:~]{2,80})['’\"]\?")
# A folder on the error's line that is not the program which speaks.
_PLACE: Final = re.compile(r"(?<=[\s'\"(])/(?:[\w.+@~-]{1,100}/){1,30}")
# Where the script stands that met an error, which is not what is full.
_SCRIPT: Final = re.compile(r"\S{1,300}(?::\d{1,6}\b|[\"']?,? line \d{1,6})")
_RANGE: Final = re.compile(r"\(>=[\d.]{1,9}, (<=?)(\d{1,2})[\d.]{0,6}\)")
# The standard that a command asks for; names of drafts.
_STD: Final = re.compile(r"(?<=[\s'\"])[-/]std[=:](?:c|gnu)\+\+(\w{2})\b")
_DRAFTS: Final = {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}
# A symbol's version, which is not that of a system's own library: those have rows of their own.
_RELEASE: Final = re.compile(r"\w@(?!@|GLIBC|CXXABI|GCC_|GOMP|lib)([A-Z]\w*_[\d.]*\d)$")
# A demand for a GCC of some release, or newer.
_AT_LEAST: Final = re.compile(
    r"(?i)(?=.*(?:at least|>=|minimum|requires?|or (?:newer|later|above|higher)|too old|older))"
    r".*?\b(?:gcc|g\+\+|gnu c\S*)(?![\w/-])[^\d\n]{0,60}(\d{1,2})(?:\.\d|\b)"
)
# uv: the platform of this system, and those of the wheels that there are.
_HERE: Final = re.compile(
    r"(?:You're on \w{1,20} \(|matching platform tag \(e\.g\., )['`]?manylinux_2_(\d{1,2})_(\w{1,20})['`]?\)"
)
_WHEELS: Final = re.compile(
    r"(?:only has wheels for|[Ww]heels are available for [^\n]{1,100}? on) the following platforms?: "
    r"([\w`', .]{3,400})"
)
# A name that is not defined, and the strings of the C++ ABI before GCC 5 in a mangled one.
_UNDEFINED: Final = re.compile(
    r"(?i:undefined (?:symbol|reference to)|unresolved external symbol):? [`'‘\"]?([^\s'’\"][^'’\"\n]{1,600})"
)
_OLD_STRINGS: Final = re.compile(r"_Z\w*?(?:RK?|PK?|[a-zE_\d])Ss(?![a-z])|\bstd::string\b")
_NEW_STRINGS: Final = re.compile(r"__cxx11|B5cxx11")
_OF_TYPE: Final = ": Invalid type"  # Cython, of a type in brackets
# The part of -march that has an instruction of AArch64. Source: gas's manual, AArch64 extensions.
_ARM: Final = {
    "dotprod": "sdot udot",
    "i8mm": "smmla ummla usmmla usdot sudot",
    "bf16": "bfdot bfmmla bfmlalb bfmlalt bfcvt bfcvtn bfcvtn2",
    "crypto": "aese aesd aesmc aesimc sha1c sha256h pmull pmull2",
    "crc": "crc32b crc32h crc32w crc32x crc32cb crc32ch crc32cw crc32cx",
    "lse": "cas casa casl casal swp swpal ldadd ldaddal ldclr ldset stadd",
    "sve": "ptrue whilelo whilelt cntb cnth cntw cntd ld1w st1w ld1d st1d rdvl",
}


def read_signs(machine: Machine, line: str, kind: Kind | None = None) -> Mapping[str, str]:
    """Return what of these stands in the error, whose line and, where it has one, kind are given."""
    text = machine.audience.text
    subject, program = (kind.subject, kind.program) if kind else ("", "")
    newest = _newest_gcc(text)
    driver = _DRIVER.search(text)
    gpu = _GPU.search(text)
    least = _AT_LEAST.search(subject)
    found_in_text = {name: _find(pattern, text) for name, pattern in _patterns(machine.catalog)}
    return {
        **found_in_text,
        "meant": _meant(subject, line),
        "narrow tools": found_in_text["narrow tools"] if machine.value("wide python") else "",
        "numpy type": found_in_text["numpy type"] or (machine.value("lost type") if _OF_TYPE in line else ""),
        "triton": found_in_text["triton"] or machine.value("ptxas of triton"),
        "driver runs": f"{driver[1]}.{driver[2]}" if driver else "",
        "driver major": driver[1] if driver else "",
        "python series": machine.audience.python,
        "capability": f"sm_{gpu[1]}{gpu[2]}" if gpu else "",
        "other process": _other_process(text),
        "fragmented": _fragmented(text),
        "linker crash": program if re.search(r"(?:^|[/-])(?:ld|mold|link)\b", program) else "",
        "ptxas": program if program == "ptxas" else "",
        "processor": subject if re.match(r"-m(?:arch|cpu|tune)\b", subject) else "",
        "of release": found[1] if (found := _RELEASE.search(subject)) else "",
        "higher": str(4 * int(kind.groups["limit"])) if kind and "limit" in kind.groups else "",
        "gfx": subject if subject.startswith("gfx") else "",
        "full place": found[0] if (found := _PLACE.search(_SCRIPT.sub("", line))) else "",
        **_standard(text, kind),
        "least gcc": least[1] if least else "",
        "newest gcc": newest,
        "fitting gcc": machine.value(f"package:g++-{newest}") if newest else "",
        "offered gcc": machine.value(f"offered:g++-{newest}") if newest else "",
        "arm feature": _arm_feature(subject),
        "abi of log": _abi_flag(machine.value("abi flag"), machine.value("own abi flag"), text),
        "old strings": next(filter(_OLD_STRINGS.search, _UNDEFINED.findall(text)), ""),
        **_glibc(text),
    }


@functools.cache
def _patterns(catalog: Catalog) -> Sequence[tuple[str, LazyPattern]]:
    return [(row.name, LazyPattern(row.pattern)) for row in catalog.sign]


def _find(pattern: LazyPattern, text: str) -> str:
    found = pattern.search(text)
    return found[found.lastindex or 0] if found else ""


def _size(text: str) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * _UNITS[unit]


def _other_process(text: str) -> str:
    """Return how much of the GPU's memory another process holds, where that is more than this one does."""
    own = _OWN.search(text)
    others = max((size for size in _OTHERS.findall(text)), key=_size, default="")
    return others if others and (own is None or _size(others) > _size(own[1])) else ""


def _same(name: str, other: str) -> int:
    """Return how many letters two names begin with alike."""
    pairs = zip(name, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _meant(subject: str, line: str) -> str:
    """Return the name that a compiler proposes for one that is not there, where one slip lies between."""
    found = _PROPOSED.search(line)
    if found is None or not subject:
        return ""
    name, other = subject.rpartition("::")[2], found[1].rpartition("::")[2]
    longer = max(len(name), len(other))
    same = _same(name, other)
    same += _same(name[same:][::-1], other[same:][::-1])
    swapped = longer - same == 2 and len(name) == len(other) and sorted(name) == sorted(other)
    return found[1] if longer > 2 and (longer - same == 1 or swapped) else ""


def _fragmented(text: str) -> str:
    """Return how much memory is reserved in pieces, where it would be enough for what was asked for."""
    reserved = _RESERVED.search(text)
    tried = _TRIED.search(text)
    return reserved[1] if reserved and tried and _size(reserved[1]) >= _size(tried[1]) else ""


def _standard(text: str, kind: Kind | None) -> Mapping[str, str]:
    """Return the standard that the command asks for (the last one counts), and whether it has the name."""
    found = list(_STD.finditer(text))
    wanted = kind.groups.get("std since", "") if kind else ""
    if not found:
        return {"std flag": "", "std met": ""}
    year = found[-1][1]
    asked = _DRAFTS.get(year, int(year) if year.isdecimal() else 0)
    flag = found[-1][0]
    return {"std flag": flag, "std met": flag if wanted and asked >= int(wanted) else ""}


def _newest_gcc(text: str) -> str:
    """Return the newest series within the range that an error names: 13 for (>=6.0.0, <14.0)."""
    found = _RANGE.search(text)
    return str(int(found[2]) - (found[1] == "<")) if found else ""


def _glibc(text: str) -> Mapping[str, str]:
    """Return the glibc of the system, as uv tells it, and the oldest that a wheel wants, if that is newer."""
    here = _HERE.search(text)
    wheels = _WHEELS.search(text)
    same = rf"manylinux_2_(\d{{1,2}})_{here[2]}\b" if here else ""
    wanted = [int(minor) for minor in re.findall(same, wheels[1])] if here and wheels else []
    if not (here and wanted) or min(wanted) <= int(here[1]):
        return {"old glibc": "", "wheel glibc": ""}
    return {"old glibc": f"2.{here[1]}", "wheel glibc": f"2.{min(wanted)}"}


def _abi_flag(flag: str, own: str, text: str) -> str:
    """Return the flag of a command in the log, where the missing name is of the ABI that it asks for.

    What returns a string has no mark in its name with the old ABI, and so may be any name where the project
    asks for that one by itself (`own`), and torch does not.
    """
    names = " ".join(_UNDEFINED.findall(text))
    new = _NEW_STRINGS.search(names) is not None
    old = _OLD_STRINGS.search(names) is not None or (own == flag and not new)
    asked = new if flag.endswith("=1") else old
    return flag if flag and names and asked else ""


def _arm_feature(subject: str) -> str:
    """Return what -march has to name for an instruction of AArch64; "" for another."""
    word = subject.strip("`' ").partition(" ")[0].lower()
    return next((name for name, words in _ARM.items() if word in words.split()), "")
