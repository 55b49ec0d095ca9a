"""Say what of a fix the log shows as done already: advice that was tried is no way out by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.features.diagnosis.audience import Audience

# An option, a setting and a bound, as fixes have them. What only asks a program for something is no way out.
_OPTION: Final = re.compile(r"(?<![\w-])--(?!version\b|help\b|verbose\b|info\b|format\b)[a-z][\w-]{4,40}")
_SETTING: Final = re.compile(r"(?<![\w=-])(?:-D)?([A-Z][A-Z0-9_]{3,40})=([^\s,;()']{1,80}\w)")
_BOUND: Final = re.compile(r"(?<![\w'])'([A-Za-z][\w.-]{0,60})((?:[<>=!~]=?[\w.*]{1,20},?){1,4})'")
_CUDA: Final = re.compile(r"\bCUDA (\d{1,2}\.\d)(?= or newer\b| on\b)")


def list_done(fix: str, audience: Audience) -> Iterator[str]:
    """Yield what the log shows as done of a fix: what was given, and what is here already."""
    words = audience.given
    given = [each for each in _OPTION.findall(fix) if each in words]
    given += [f"{name}={value}" for name, value in _SETTING.findall(fix) if f"{name}={value}" in words]
    given += [f"{name}{bound}" for name, bound in _BOUND.findall(fix) if f"{name}{bound}" in words]
    if given:
        yield f"This log shows {_listed(given)} in a command already, and that alone was not enough."
    bounds = () if audience.isolated else _BOUND.findall(fix)
    here = [each for name, bound in bounds if (each := _is_here(name, bound, audience.versions))]
    if here:
        yield f"This log shows {_listed(here)}, which such a bound allows already."
    least = parse_version(max(_CUDA.findall(fix), default="", key=_number))
    found = parse_version(audience.cuda)
    if least and found and found >= least:
        yield f"The CUDA of this log is {audience.cuda} already."


def told_of(fix: str, audience: Audience) -> str:
    """Return a fix behind what the log shows as done of it."""
    return " ".join((*list_done(fix, audience), fix)) if fix else ""


def _listed(parts: list[str]) -> str:
    once = list(dict.fromkeys(parts))
    return " and ".join(filter(None, (", ".join(once[:-1]), once[-1])))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _is_here(name: str, bound: str, versions: Mapping[str, str]) -> str:
    """Return the name with its version, where the version that the log shows is within the bound."""
    version = parse_version(versions.get(canonicalize_name(name), ""))
    try:
        within = version is not None and SpecifierSet(bound.rstrip(",")).contains(version, prereleases=True)
    except InvalidSpecifier:
        return ""
    return f"{name} {version}" if within else ""
