"""Where CUDA toolkits are looked for, and in which order; each folder is read once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from torchbuild_tasks.facts.cuda import nvcc
from torchbuild_tasks.facts.cuda.sites import site_folders
from torchbuild_tasks.facts.cuda.toolkit import looks_like_one, read_toolkit
from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Python, Toolkit

ASKED = "--cuda-toolkit"
VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
SHELF = "toolkits"
MARKER = ".torchbuild-toolkit.json"
PROGRAM_FILES = "NVIDIA GPU Computing Toolkit/CUDA"

_ASKED_OTHERWISE = re.compile(r"pypi:.*|\d+(\.\d+)*")
_NUMBERED_VARIABLE = re.compile(r"CUDA_PATH_V\d+_\d+", re.IGNORECASE)
_UNIX = re.compile(r"cuda(-\d+(\.\d+)?)?")
_WINDOWS = re.compile(r"v\d+\.\d+", re.IGNORECASE)
_WHEELS = re.compile(r"cu\d+")


class Place(NamedTuple):
    """A folder that may be a toolkit, as it is written where it was found.

    One that somebody `named` is reported even when it is none.
    """

    path: str
    found_via: str
    named: bool = False
    managed: bool = False
    version: str | None = None


class Group(NamedTuple):
    """One place that was looked at, in words, and the folders found there."""

    looked: str
    places: tuple[Place, ...] = ()


def look_for_toolkits(
    probe: Probe, asked: str | None, store: str | None, pythons: Sequence[Python]
) -> tuple[tuple[Toolkit, ...], tuple[str, ...]]:
    """Every toolkit once, in the order in which they would be taken, and where was looked."""
    groups = list(_groups(probe, asked, store, pythons))
    places = [place for group in groups for place in group.places]
    found = each(lambda item: _read(probe, item[0], item[1]), _distinct(probe, places).items())
    return found, tuple(dict.fromkeys(group.looked for group in groups))


def _distinct(probe: Probe, places: Iterable[Place]) -> dict[str, list[Place]]:
    """The places by the folder that they mean, without links; what is no toolkit is left out."""
    first: dict[str, str] = {}
    found: dict[str, list[Place]] = {}
    for place in places:
        root = probe.realpath(probe.absolute(place.path))
        if place.named or looks_like_one(probe, root):
            root = first.setdefault(probe.names.key(root), root)
            found.setdefault(root, []).append(place)
    return found


def _read(probe: Probe, root: str, places: list[Place]) -> Toolkit:
    names = [name for place in places for name in (place.path, probe.absolute(place.path))]
    return read_toolkit(
        probe,
        root,
        places[0].found_via,
        aliases=tuple(name for name in dict.fromkeys(names) if name != root),
        managed=any(place.managed for place in places),
        version=next((place.version for place in places if place.version), None),
    )


def _groups(probe: Probe, asked: str | None, store: str | None, pythons: Sequence[Python]) -> Iterator[Group]:
    if asked and not _ASKED_OTHERWISE.fullmatch(asked):
        yield Group(f"{ASKED} {asked}", (Place(asked, ASKED, named=True),))
    for name in (*VARIABLES, *_numbered(probe)):
        value = probe.variable(name)
        places = (Place(value, name, named=True),) if value else ()
        yield Group(f"environment {name}" + (f" ({value})" if value else " (not set)"), places)
    roots = each(lambda path: nvcc.root_of(probe, path), probe.which_all("nvcc"))
    yield Group("nvcc in the folders of PATH", tuple(Place(root, "PATH") for root in roots))
    yield _program_files(probe) if probe.windows else _usual(probe)
    if prefix := probe.variable("CONDA_PREFIX"):
        root = probe.join(prefix, "Library") if probe.windows else prefix
        yield Group(root, (Place(root, "CONDA_PREFIX"),))
    for folder in site_folders(probe, pythons):
        wheels = probe.join(folder, "nvidia")
        yield Group(probe.join(wheels, "cu*"), _below(probe, wheels, _WHEELS, "NVIDIA's wheels"))
    if store:
        yield _managed(probe, probe.join(store, SHELF))


def _numbered(probe: Probe) -> list[str]:
    """CUDA_PATH_V12_4 and the like, the newest first; the installer on Windows sets them."""
    return sorted(filter(_NUMBERED_VARIABLE.fullmatch, probe.environ), key=_numbers, reverse=True)


def _usual(probe: Probe) -> Group:
    """Where NVIDIA's installers put it: /usr/local/cuda is the one in use, the others by number."""
    usual = _below(probe, "/usr/local", _UNIX, "known folder")
    arch_linux = Place("/opt/cuda", "known folder")
    return Group("/usr/local/cuda*, /opt/cuda", (*usual, arch_linux))


def _program_files(probe: Probe) -> Group:
    programs = probe.variable("ProgramW6432") or probe.variable("ProgramFiles") or "C:\\Program Files"
    folder = probe.join(programs, PROGRAM_FILES)
    return Group(probe.join(folder, "v*"), _below(probe, folder, _WINDOWS, "Program Files"))


def _below(probe: Probe, folder: str, name: re.Pattern[str], found_via: str) -> tuple[Place, ...]:
    """The folders of that name, first one without a number, then the newest."""
    names = sorted(filter(name.fullmatch, probe.children(folder)), key=_numbers, reverse=True)
    names.sort(key=lambda one: bool(_numbers(one)))
    return tuple(Place(probe.join(folder, one), found_via) for one in names)


def _numbers(name: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", name)]


def _managed(probe: Probe, shelf: str) -> Group:
    """Those that this tool put together, when they are complete."""
    places = []
    for name in probe.children(shelf):
        folder = probe.join(shelf, name)
        mark = _mark(probe.read(probe.join(folder, MARKER)))
        if mark.get("id") == name and mark.get("finished"):
            version = mark.get("version")
            known = version if isinstance(version, str) else None
            places.append(Place(folder, "managed", named=True, managed=True, version=known))
    return Group(shelf, tuple(places))


def _mark(text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
