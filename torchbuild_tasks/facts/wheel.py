"""Read a wheel of torch: its metadata, commit, requirements and files. No code of it runs.

A wheel may come from anywhere, so values that are later part of a path, an argv or a file are validated
here.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from configparser import ConfigParser
from configparser import Error as NoIni
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from torchbuild_tasks.model.wheel import Member, Wheel
from torchbuild_tasks.system.reading import open_file
from torchbuild_tasks.text.words import in_short
from torchbuild_tasks.values import replace

VERSION_FILE: Final = "torch/version.py"
_TEXT_LIMIT: Final = 4 << 20  # bytes: METADATA of torch has 30 KB
_ASSIGNED: Final = re.compile(r"""(?m)^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(['"])([^'"\\\n]*)\2[ \t\r]*$""")
_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
_GROUPS: Final = ("console_scripts", "gui_scripts")  # for which pip creates scripts
# https://packaging.python.org/specifications/entry-points/: module, function, extras
_FUNCTION: Final = re.compile(r"[\w.]+(?:\s*:\s*[\w.]+)?\s*(?:\[[^\]\n]*\])?")
_PLACED: Final = re.compile(r"[^/]+\.data/(?:scripts|data/(?:bin|scripts))/([^/]+)", re.IGNORECASE)
_PROGRAM: Final = re.compile(r"(?!python|pip)\w[\w.-]*", re.IGNORECASE)

# zipfile's errors for other files, and for unsupported compression or encryption; bz2 raises OSError.
BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, csv.Error),
    *(EOFError, ValueError, LookupError, RuntimeError, OSError),
)


def recorded_hash(digest: bytes) -> str:
    """Return a SHA-256 in the form of RECORD: https://packaging.python.org/specifications/binary-distribution-format"""
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def record_row(name: str, data: bytes) -> tuple[str, str, str]:
    """Return the line of RECORD for a file."""
    return (name, recorded_hash(hashlib.sha256(data).digest()), str(len(data)))


def record_text(rows: Iterable[Sequence[str]]) -> str:
    """Return RECORD with these lines."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def look_at_wheel(path: Path) -> Wheel:
    """Return the facts of a wheel; its `problem` says why it cannot be read."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return _read(path, archive)
    except OSError as error:
        return Wheel(path=str(path), problem=f"it cannot be read: {error.strerror or error}")
    except BROKEN as error:
        return Wheel(path=str(path), problem=f"it is truncated or not a wheel: {in_short(error)}")


def _read(path: Path, archive: zipfile.ZipFile) -> Wheel:
    names = archive.namelist()
    if VERSION_FILE not in names:
        return Wheel(path=str(path), problem=f"it is not a wheel of torch: no {VERSION_FILE} is in it")
    info = info_folder(archive)
    entries = f"{info}/entry_points.txt"
    metadata = HeaderParser().parsestr(read_metadata(archive).decode("utf-8", "replace"))
    wheel = look_at_version(str(path), str(metadata.get("Version", "")), _text(archive, VERSION_FILE))
    if wheel.problem:
        return wheel
    wheel = replace(wheel, dist_info=info, members=members_of(archive))
    requirements = [str(each) for each in metadata.get_all("Requires-Dist", ())]
    programs = _text(archive, entries) if entries in names else ""
    wrong = _wrong_requirement(requirements)
    if problem := wrong or _wrong_program(programs) or _wrong_script(wheel.members):
        return Wheel(path=str(path), problem=problem)
    return wheel


def info_folder(archive: zipfile.ZipFile) -> str:
    """Return the name of a wheel's own .dist-info; those of packages that it holds lie deeper.

    Raises:
        ValueError: it has none, or several.
    """
    tops = {name.partition("/")[0] for name in archive.namelist()}
    infos = [top for top in tops if top.endswith(".dist-info")]
    if len(infos) != 1:
        raise ValueError("it has several .dist-info" if infos else "it has no .dist-info")
    return infos[0]


def read_metadata(archive: zipfile.ZipFile) -> bytes:
    """Return the METADATA of a wheel; raises `BROKEN`."""
    return read_member(archive, f"{info_folder(archive)}/METADATA", _TEXT_LIMIT)


def look_at_version(path: str, version: str, text: str) -> Wheel:
    """Return the facts of a wheel from its version and torch/version.py alone."""
    values = {name: value for name, _, value in _ASSIGNED.findall(text)}
    wheel = Wheel(
        path=path,
        version=version,
        torch_version=values.get("__version__", ""),
        commit=values.get("git_version", ""),
        cuda=values.get("cuda", ""),
    )
    problem = _wrong(wheel)
    return Wheel(path=path, problem=problem) if problem else wheel


def _wrong(wheel: Wheel) -> str:
    """Return the error about a value of a wheel with an invalid form; "" for none."""
    for what, version in (("METADATA", wheel.version), (VERSION_FILE, wheel.torch_version)):
        try:
            Version(version)
        except InvalidVersion:
            return f"the version in its {what} is none: {version[:80]!r}"
    if wheel.cuda and not re.fullmatch(r"\d+(\.\d+)*", wheel.cuda):
        return f"its CUDA is not a version: {wheel.cuda[:80]!r}"
    if wheel.commit not in ("", "Unknown") and not _COMMIT.fullmatch(wheel.commit):
        return f"its commit is none: {wheel.commit[:80]!r}"
    return ""


def _wrong_requirement(lines: list[str]) -> str:
    """Return the requirement with a direct URL, which would bypass the package index; "" for none."""
    for line in lines:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            return f"its METADATA asks for {line[:80]!r}, which is not a requirement"
        if requirement.url:
            return f"its METADATA asks for {requirement.name} from an address of its own: {requirement.url}"
    return ""


def _wrong_program(text: str) -> str:
    """Return the entry point whose script would be outside, or replace a program of the environment."""
    try:
        programs = [each for group in _GROUPS for each in read_programs(text, group).items()]
    except NoIni:
        return "its entry_points.txt cannot be read"
    for name, value in programs:
        if not _PROGRAM.fullmatch(name):
            return f"it would install a program named {name[:80]!r}"
        if not _FUNCTION.fullmatch(value):
            return f"its program {name} would call {value[:80]!r}, which is no function"
    return ""


def _wrong_script(members: tuple[Member, ...]) -> str:
    """Return the script file that would replace a program of the environment, as entry points may not."""
    for each in members:
        match = _PLACED.fullmatch(each.name)
        if match and not _PROGRAM.fullmatch(match[1]):
            return f"it would install a program named {match[1][:80]!r}"
    return ""


def read_programs(text: str, group: str) -> dict[str, str]:
    """Return the entry points of a group of entry_points.txt by name; raises configparser's `Error`."""
    parser = ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return dict(parser[group]) if parser.has_section(group) else {}


def members_of(archive: zipfile.ZipFile) -> tuple[Member, ...]:
    """Return the files in an archive's directory."""
    return tuple(_member(info) for info in archive.infolist() if not info.is_dir())


def _member(info: zipfile.ZipInfo) -> Member:
    mode = info.external_attr >> 16
    return Member(
        # The stored name: zipfile converts backslashes on Windows only, and truncates at a NUL.
        name=info.orig_filename,
        size=info.file_size,
        packed=info.compress_size,
        crc=info.CRC,
        executable=bool(mode & 0o100),
        kind="file" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else "link",
    )


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return read_member(archive, name, _TEXT_LIMIT).decode("utf-8", errors="replace")


def read_member(archive: zipfile.ZipFile, name: str, most: int = 64 << 20) -> bytes:
    """Return a file of an archive.

    Raises:
        ValueError: it has more than `most` bytes; also the exceptions in `BROKEN`.
    """
    if archive.getinfo(name).file_size > most:
        raise ValueError(f"{name} in it is longer than {most >> 20} MiB")
    return archive.read(name)


def identify(wheel: Wheel) -> str:
    """Return an id of a wheel's content, from the checksums in its directory."""
    listed = sorted(f"{each.name} {each.size} {each.crc:08x}" for each in wheel.members)
    return hashlib.sha256("\n".join(listed).encode("utf-8", "surrogatepass")).hexdigest()[:16]
