"""Explain, file by file, why two wheels, archives or libraries differ: `compare --bits`."""

from __future__ import annotations

import difflib
import io
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from elftools.elf.elffile import ELFFile

from torchbuild_tasks.errors import PackageRefused
from torchbuild_tasks.facts.wheel import BROKEN as WHEEL_BROKEN
from torchbuild_tasks.facts.wheel import read_member
from torchbuild_tasks.system import process
from torchbuild_tasks.system.elf import BROKEN as ELF_BROKEN
from torchbuild_tasks.system.reading import hash_file
from torchbuild_tasks.text.words import in_short

_SECONDS: Final = 600.0
_STRING: Final = re.compile(rb"[\x20-\x7e]{6,200}")
_MOST: Final = 5  # strings or lines that are shown of one file
_LARGEST: Final = 4 << 30  # bytes of a file that is looked into
_MOST_LINES: Final = 40_000  # lines of a text: difflib's time is the product of both
_UNSAFE: Final = re.compile(
    r"[^A-Za-z0-9]"
)  # characters that are unsafe in the name of an untrusted archive's member
_LONGEST: Final = 100
_DIFFOSCOPE: Final = (
    *("--no-progress", "--exclude-directory-metadata", "recursive"),  # those of our own folders
    *("--max-text-report-size", "60000", "--text", "-"),
)


class FileDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One file that differs: the kinds of difference, and details."""

    name: str
    what: str
    seen: tuple[str, ...] = ()


class Bits(msgspec.Struct, frozen=True, kw_only=True):
    """Two files, their SHA-256, the differences, and diffoscope's output (None if it is not installed)."""

    there: str
    here: str
    differences: tuple[FileDifference, ...]
    diffoscope: str | None = ""

    @property
    def same(self) -> bool:
        """Say whether the bytes are equal."""
        return self.there == self.here


def compare_bits(there: Path, here: Path) -> Bits:
    """Return why two files differ.

    Raises:
        PackageRefused: one of them is not there, or is a damaged archive.
    """
    for path in (there, here):
        if not path.is_file():
            raise PackageRefused(
                f"There is no file {path} to compare.", next_step="compare --bits dist/ONE.whl OTHER.whl"
            )
    digests = hash_file(there), hash_file(here)
    if digests[0] == digests[1]:
        return Bits(there=digests[0], here=digests[1], differences=())
    with tempfile.TemporaryDirectory(prefix="torchbuild-bits-") as scratch:
        try:
            differences = tuple(_differences(there, here, Path(scratch)))
        except WHEEL_BROKEN as error:
            raise PackageRefused(
                f"{there} or {here} is a damaged archive: {in_short(error)}.",
                next_step="Get or build it again.",
            ) from None
        return Bits(
            there=digests[0], here=digests[1], differences=differences, diffoscope=_diffoscope(Path(scratch))
        )


def _differences(there: Path, here: Path, scratch: Path) -> Iterator[FileDifference]:
    if not (zipfile.is_zipfile(there) and zipfile.is_zipfile(here)):
        yield _content(there.name, there.read_bytes(), here.read_bytes(), scratch)
        return
    with zipfile.ZipFile(there) as one, zipfile.ZipFile(here) as other:
        members = [{info.filename: info for info in archive.infolist()} for archive in (one, other)]
        for name in sorted(members[0].keys() ^ members[1].keys()):
            where = "first" if name in members[0] else "second"
            yield FileDifference(name=name, what=f"only in the {where}")
        both = [name for name in members[0] if name in members[1]]
        if both != [name for name in members[1] if name in members[0]]:
            yield FileDifference(name="", what="the files are in another order")
        for name in both:
            yield from _headers(members[0][name], members[1][name])
            pair = read_member(one, name, _LARGEST), read_member(other, name, _LARGEST)
            if pair[0] != pair[1]:
                yield _content(name, *pair, scratch)


def _headers(one: zipfile.ZipInfo, other: zipfile.ZipInfo) -> Iterator[FileDifference]:
    """Compare the archive's metadata of a file."""
    headers: Mapping[str, tuple[object, object]] = {
        "time": (one.date_time, other.date_time),
        "mode": (oct(one.external_attr >> 16), oct(other.external_attr >> 16)),
        "compression": (one.compress_type, other.compress_type),
        "system": (one.create_system, other.create_system),
    }
    for what, (first, second) in headers.items():
        if first != second:
            yield FileDifference(name=one.filename, what=what, seen=(f"- {first}", f"+ {second}"))
    if one.CRC == other.CRC and one.compress_size != other.compress_size:
        yield FileDifference(name=one.filename, what="the same content, packed by another zlib")


def _content(name: str, one: bytes, other: bytes, scratch: Path) -> FileDifference:
    """Return the difference of one file's content, and extract both for diffoscope."""
    for side, data in (("first", one), ("second", other)):
        path = scratch / side / f"_{_UNSAFE.sub('_', name)[-_LONGEST:]}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    if one[:4] == other[:4] == b"\x7fELF":
        return FileDifference(name=name, what=_sections(one, other), seen=tuple(_strings(one, other)))
    try:
        lines, others = (data.decode("utf-8").splitlines() for data in (one, other))
    except UnicodeDecodeError:
        return FileDifference(name=name, what=f"content, {len(one)} and {len(other)} bytes")
    if len(lines) + len(others) > _MOST_LINES:
        return FileDifference(name=name, what=f"text, {len(lines)} and {len(others)} lines")
    diff = difflib.unified_diff(lines, others, n=0, lineterm="")
    changed = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return FileDifference(name=name, what="text", seen=tuple(changed[: 2 * _MOST]))


def _sections(one: bytes, other: bytes) -> str:
    """Return the names of the sections that differ between two libraries."""
    try:
        first, second = (
            {s.name: s.data() for s in ELFFile(io.BytesIO(d)).iter_sections()} for d in (one, other)
        )
    except (*ELF_BROKEN, struct.error, zlib.error):
        return f"library, {len(one)} and {len(other)} bytes"
    differ = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    return f"sections {' '.join(name or 'headers' for name in differ)}" if differ else "headers of sections"


def _strings(one: bytes, other: bytes) -> Iterator[str]:
    """Yield strings that only one of them has: paths, names of temporary files, dates."""
    texts = [dict.fromkeys(match.decode() for match in _STRING.findall(data)) for data in (one, other)]
    for sign, mine, theirs in (("-", texts[0], texts[1]), ("+", texts[1], texts[0])):
        own = [text for text in mine if text not in theirs]
        own.sort(key=lambda text: ("/" not in text and "tmpxft" not in text, -len(text)))
        yield from (f"{sign} {text}{_cause(text)}" for text in own[:_MOST])


def _cause(text: str) -> str:
    if "tmpxft_" in text:
        return "   (nvcc's temporary file, with a process's number)"
    if re.search(r"(?:^|[=:\s])/(?!usr/)\w+/", text):
        return "   (a path of this machine)"
    return ""


def _diffoscope(scratch: Path) -> str | None:
    """Return diffoscope's output on the files that differ in content; None if it is not installed."""
    if not (scratch / "first").is_dir():
        return ""
    if (program := shutil.which("diffoscope")) is None:
        return None
    captured = process.capture((program, *_DIFFOSCOPE, "first", "second"), cwd=scratch, timeout=_SECONDS)
    text = captured.text
    if captured.timed_out:
        return f"{text}(it was ended after {_SECONDS:.0f} s)\n"
    if captured.rc not in (0, 1):
        return f"{text}(it failed with exit code {captured.rc}: {captured.error_text})\n"
    return text


def bits_text(bits: Bits, names: tuple[str, str]) -> str:
    """Return the differences, file by file."""
    if bits.same:
        return f"The same bytes: sha256 {bits.there}\n"
    head = f"- {names[0]}  sha256 {bits.there}\n+ {names[1]}  sha256 {bits.here}\n"
    lines = [
        "".join((f"\n{each.name or 'archive'}: {each.what}\n", *(f"    {line}\n" for line in each.seen)))
        for each in bits.differences
    ]
    tail = f"\ndiffoscope\n{bits.diffoscope}" if bits.diffoscope else ""
    if bits.diffoscope is None:
        tail = "\nMore inside of libraries: pip install diffoscope\n"
    return head + "".join(lines or ["\nthe archives' own tables, and nothing in them\n"]) + tail
