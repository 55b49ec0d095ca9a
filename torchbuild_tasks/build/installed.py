"""Ask the Python that gets torch which requirements it lacks, so that pip is started only for those."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import NormalizedName, canonicalize_name

from torchbuild_tasks.catalog.match import counts_for, parse_requirement
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.wheel import read_metadata
from torchbuild_tasks.system import process
from torchbuild_tasks.values import from_json, parse_json

_SECONDS: Final = 300.0
_HAVE: Final = """
import json
from importlib import metadata
found = {}
for one in metadata.distributions():
    about = one.metadata  # parsed at each access
    values = {"version": about["Version"], "asks": about.get_all("Requires-Dist") or []}
    if about["Name"]:
        found.setdefault(about["Name"], values)
print(json.dumps(found))
"""


class _Package(msgspec.Struct, frozen=True, kw_only=True):
    """An installed distribution: its version, and the requirements (PEP 508) of it."""

    version: str | None = None
    asks: tuple[str, ...] = ()


def find_missing(python: str, version: str, asks: Iterable[str]) -> tuple[str, ...]:
    """Return which of these requirements an environment lacks, or lacks what they require themselves.

    Args:
        python: its interpreter.
        version: the version of that; "" if it is unknown.
        asks: the requirements (PEP 508); those with extras count as missing.
    """
    captured = process.capture((python, "-I", "-X", "utf8", "-c", _HAVE), timeout=_SECONDS)
    try:
        found = from_json(dict[str, _Package], parse_json(captured.stdout), "packages")
    except (ValueError, UsageError):
        found = {}
    have = {canonicalize_name(name): package for name, package in found.items()}
    return tuple(text for text in asks if _is_missing(text, have, version, set()))


def _is_missing(text: str, have: Mapping[NormalizedName, _Package], version: str, seen: set[str]) -> bool:
    wanted = parse_requirement(text)
    if wanted is None or text in seen or not counts_for(wanted, version):
        return False
    seen.add(text)  # packages may require each other
    own = have.get(canonicalize_name(wanted.name))
    if own is None or own.version is None or wanted.extras:
        return True
    if not wanted.specifier.contains(own.version, prereleases=True):
        return True
    return any(_is_missing(each, have, version, seen) for each in own.asks)


def read_requirements(wheel: Path) -> tuple[str, ...]:
    """Return the requirements (PEP 508) of a wheel; raises `facts.wheel.BROKEN`."""
    with zipfile.ZipFile(wheel) as archive:
        headers = HeaderParser().parsestr(read_metadata(archive).decode("utf-8", "replace"))
    return tuple(str(each) for each in headers.get_all("Requires-Dist") or ())
