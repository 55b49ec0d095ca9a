"""A wheel by project name, from wherever pip is configured to look.

Reads index pages in JSON (PEP 691) and HTML (PEP 503), indexes that are folders
(`file:///...`), and plain folders of wheels. Nothing is downloaded but pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from torchbuild_tasks.effects.fetch.index_pages import Listed, list_place
from torchbuild_tasks.effects.fetch.net import Net, shown
from torchbuild_tasks.effects.fetch.pip_settings import PipSettings, pip_settings
from torchbuild_tasks.effects.fetch.tries import Refused
from torchbuild_tasks.errors import DownloadFailed

if TYPE_CHECKING:
    import requests

__all__ = ["PipSettings", "Wheel", "find_wheel", "pip_settings"]

NAMED: Final = 12  # so many versions are named to a person who asked for one that is not there
_PLAIN: Final = re.compile(r"[\w.+!-]+\.whl")


class Wheel(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an index.

    `url` is absolute, `file://` for one in a folder; it carries the login of its index, so
    it is printed through `net.shown` only. `sha256` is None where none is published.
    """

    name: str
    url: str
    sha256: str | None
    size: int | None


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel of the wanted project; `build` orders files that differ in nothing else."""

    listed: Listed
    version: Version
    build: tuple[int, str]
    fits: bool


def find_wheel(
    project: str,
    version: str,
    tag: str,
    settings: PipSettings,
    session: requests.Session,
    net: Net | None = None,
) -> Wheel:
    """The wheel of exactly this version whose file name ends in the platform tag.

    Folders come before indexes, as with pip, and the first place that has it is taken. A
    yanked file is taken only where there is no other.

    Args:
        project: any spelling of its name.
        version: PEP 440.
        tag: the end of the file name without `.whl`: "win_amd64", "manylinux2014_x86_64";
            "" takes any. Only wheels for every Python 3 count (`py3-none-...`).
        settings: where to look.
        session: as `Net.session` makes it; from here on it believes pip's certificates, if
            pip has its own, for the file too.
        net: mirrors, patience, --offline.

    Raises:
        DownloadFailed: it is nowhere; every place that was looked at is named.
    """
    net = net or Net()
    if settings.cert:
        session.verify = settings.cert
    looked: list[str] = []
    yanked: list[_Candidate] = []
    seen: list[_Candidate] = []
    for place in _places(project, settings):
        try:
            here = _candidates(list_place(place, session, net), project, tag)
        except (Refused, OSError, ValueError) as error:
            looked.append(f"{shown(place)}: {error}")
            continue
        looked.append(f"{shown(place)}: {_summary(here, tag)}")
        seen += here
        exact = [one for one in here if one.fits and one.version == Version(version)]
        yanked += [one for one in exact if one.listed.yanked]
        if good := [one for one in exact if not one.listed.yanked]:
            return _wheel(good)
    if yanked:
        return _wheel(yanked)
    raise _nowhere(project, version, tag, looked, seen)


def _places(project: str, settings: PipSettings) -> list[str]:
    page = f"/{canonicalize_name(project)}/"
    indexes = () if settings.no_index else settings.index_urls
    return [*settings.find_links, *(url.rstrip("/") + page for url in indexes)]


def _candidates(listed: Sequence[Listed], project: str, tag: str) -> list[_Candidate]:
    found = []
    for one in listed:
        # A name becomes a file on this machine: nothing but plain characters.
        if not _PLAIN.fullmatch(one.name):
            continue
        try:
            name, version, build, tags = parse_wheel_filename(one.name)
        except InvalidWheelFilename:
            continue
        if name != canonicalize_name(project):
            continue
        any_python = any(t.interpreter == "py3" and t.abi == "none" for t in tags)
        fits = any_python and _ends_with(one.name.removesuffix(".whl"), tag)
        found.append(_Candidate(listed=one, version=version, build=build or (0, ""), fits=fits))
    return found


def _ends_with(stem: str, tag: str) -> bool:
    """Whether a file name ends in `tag` as a whole: `win32` is no end of `cygwin32`."""
    return not tag or (stem.endswith(tag) and stem.removesuffix(tag)[-1:] in ("-", ".", "_"))


def _wheel(fitting: Sequence[_Candidate]) -> Wheel:
    best = max(fitting, key=lambda one: one.build).listed  # of equals, the first listed
    return Wheel(name=best.name, url=best.url, sha256=best.sha256, size=best.size)


def _summary(here: Sequence[_Candidate], tag: str) -> str:
    if not here:
        return "no wheel of it"
    versions = sorted({one.version for one in here if one.fits})
    if not versions:
        return f"{len(here)} wheels, none for {tag or 'every Python 3'}"
    named = ", ".join(map(str, versions[-NAMED:]))
    return f"for {tag or 'any system'} it has {'... ' if len(versions) > NAMED else ''}{named}"


def _nowhere(
    project: str, version: str, tag: str, looked: list[str], seen: Sequence[_Candidate]
) -> DownloadFailed:
    others = sorted({one.listed.name for one in seen if one.version == Version(version)})
    return DownloadFailed(
        f"There is no wheel of {project} {version}{f' for {tag}' if tag else ''} where pip would look.",
        looked=(
            *(looked or ["pip is configured for no index and no folder"]),
            *(f"of that version there is {name}" for name in others[:NAMED]),
        ),
        next_step="Name an index that has it with PIP_INDEX_URL, or download the wheel elsewhere,\n"
        "put it into a folder, and name that folder with PIP_FIND_LINKS.",
    )
