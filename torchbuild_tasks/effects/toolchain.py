"""Which programs and packages made a build: paths, hashes, and what a Python has installed.

Looked at only when something was built: the hash of a compiler takes milliseconds, the packages a start
of the Python that has them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from torchbuild_tasks.model.record import Installed, Program
from torchbuild_tasks.system import process

_MOST_HASHED_TOOLS: Final = 256 << 20  # bytes; a compiler has less
_TOOL_SECONDS: Final = 60.0

# Runs in the Python that gets torch, which may be an old one. A RECORD names every file with its hash.
_LIST: Final = """
import sys
sys.path = [path for path in sys.path if path]
import hashlib, json
from importlib import metadata
found = {}
for one in metadata.distributions():
    name = one.metadata["Name"]
    if name and name not in found:
        record = one.read_text("RECORD")
        found[name] = {
            "version": one.version,
            "record": record and hashlib.sha256(record.encode("utf-8", "surrogateescape")).hexdigest(),
            "direct_url": one.read_text("direct_url.json"),
        }
print(json.dumps(found))
"""
NO_ARCHIVE: Final = "installed from an index: pip keeps no hash of the wheel, only of each file (RECORD)"
NO_RECORD: Final = "it has no RECORD: not installed from a wheel"


def program(name: str, path: str, version: str | None, environ: Mapping[str, str]) -> Program:
    """A program by name or path, as a build in `environ` finds it; without a hash where it cannot be read."""
    search = next((value for key, value in environ.items() if key.upper() == "PATH"), None)
    found = shutil.which(path, path=search) or path
    try:
        real = Path(found).resolve()
        status = real.stat()
        small = status.st_size <= _MOST_HASHED_TOOLS
        digest = _digest(real) if small else None
    except OSError:
        return Program(name=name, path=found, version=version)
    modified = datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="seconds")
    return Program(
        name=name, path=found, version=version, sha256=digest, size=status.st_size, modified=modified
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed(python: str) -> tuple[Installed, ...]:
    """What is installed in a Python, by name; nothing when it does not say."""
    if not Path(python).is_file():
        return ()
    said = process.capture((python, "-c", _LIST), cwd=Path(python).parent, timeout=_TOOL_SECONDS)
    try:
        found = json.loads(said.stdout) if said.rc == 0 else {}
    except ValueError:
        found = {}
    return tuple(_installed(name, found[name]) for name in sorted(found, key=str.lower))


def _installed(name: str, entry: Mapping[str, str | None]) -> Installed:
    archive, origin = _direct(entry["direct_url"])
    record = entry["record"]
    unknown = NO_RECORD if not record else "" if archive or origin else NO_ARCHIVE
    return Installed(
        name=name,
        version=str(entry["version"]),
        record=record,
        archive=archive,
        origin=origin,
        unknown=unknown,
    )


def _direct(text: str | None) -> tuple[str | None, str]:
    """The archive's hash and the address, from direct_url.json (PEP 610)."""
    try:
        said = json.loads(text or "{}")
        url = str(said.get("url", ""))
        if "archive_info" in said:
            info = said["archive_info"]
            hashes = dict(info.get("hashes") or {})
            if "=" in str(info.get("hash", "")):
                kind, _, value = info["hash"].partition("=")
                hashes.setdefault(kind, value)
            return hashes.get("sha256"), url
        if "vcs_info" in said:
            return None, f"{said['vcs_info'].get('vcs')}+{url}@{said['vcs_info'].get('commit_id')}"
        editable = said.get("dir_info", {}).get("editable")
        return None, f"editable {url}" if editable else url
    except (ValueError, AttributeError, TypeError, KeyError):
        return None, ""
