"""Read a wheel of torch: its names, what it was built from, what it asks for. Nothing of it is run."""

from __future__ import annotations

import ast
import hashlib
import stat
import zipfile
import zlib
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from torchbuild_tasks.model.wheel import Member, Wheel

VERSION_FILE: Final = "torch/version.py"
_TEXT_LIMIT: Final = 4 << 20  # bytes: METADATA of torch has 30 KB


def look_at_wheel(path: Path) -> Wheel:
    """Return what a wheel says of itself; its `problem` says why it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(path, archive)
    except OSError as error:
        return Wheel(path=str(path), problem=f"it cannot be read: {error.strerror or error}")
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        return Wheel(path=str(path), problem=f"it is cut off or no wheel: {error}")


def _read(path: Path, archive: zipfile.ZipFile) -> Wheel:
    names = archive.namelist()
    infos = sorted(
        name.partition("/")[0]
        for name in names
        if name.endswith(".dist-info/METADATA") and name.count("/") == 1
    )
    if len(infos) != 1 or VERSION_FILE not in names:
        missing = VERSION_FILE if infos else "*.dist-info/METADATA"
        return Wheel(path=str(path), problem=f"it is no wheel of torch: no {missing} is in it")
    metadata = HeaderParser().parsestr(_text(archive, f"{infos[0]}/METADATA"))
    values = _assigned(_text(archive, VERSION_FILE))
    return Wheel(
        path=str(path),
        version=metadata.get("Version", ""),
        torch_version=values.get("__version__", ""),
        commit=values.get("git_version", ""),
        dist_info=infos[0],
        members=tuple(_member(info) for info in archive.infolist() if not info.is_dir()),
    )


def _member(info: zipfile.ZipInfo) -> Member:
    mode = info.external_attr >> 16
    kind = "link" if stat.S_ISLNK(mode) else "file"
    return Member(
        # As the wheel says it: zipfile turns a backslash on Windows alone, and cuts at a NUL.
        name=info.orig_filename,
        size=info.file_size,
        crc=info.CRC,
        executable=bool(mode & 0o100),
        kind=kind,
    )


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        return file.read(_TEXT_LIMIT).decode("utf-8", errors="replace")


def _assigned(text: str) -> dict[str, str]:
    """Return the strings that a module assigns to names, as literals: it is read, never run."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return {}
    found = {}
    for node in body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[target.id] = value.value
    return found


def identify(wheel: Wheel) -> str:
    """Return what one content of a wheel is known by, from the checksums in its list of files."""
    listed = sorted(f"{each.name} {each.size} {each.crc:08x}" for each in wheel.members)
    return hashlib.sha256("\n".join(listed).encode("utf-8", "surrogatepass")).hexdigest()[:16]
