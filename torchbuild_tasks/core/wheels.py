"""Which requirements a folder of wheels cannot satisfy, told by the names of its files alone."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version


def lacking(names: Iterable[str], requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements (PEP 508) for which no file has the name and a version that fits.

    Whether a wheel is for this Python and system is left to the installer, which says so.
    """
    there = [found for name in names if (found := _distribution(name))]
    missing = []
    for text in requirements:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(wanted.name)
        if not any(name == own and wanted.specifier.contains(v, prereleases=True) for own, v in there):
            missing.append(text)
    return tuple(missing)


def _distribution(name: str) -> tuple[NormalizedName, Version] | None:
    try:
        return parse_wheel_filename(name)[:2]
    except InvalidWheelFilename:
        pass
    try:
        return parse_sdist_filename(name)
    except InvalidSdistFilename:
        return None
