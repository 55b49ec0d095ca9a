"""Search for CUDA toolkits, step by step; each folder is read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.facts.cuda.toolkit_folder import is_toolkit, read_toolkit, root_of_nvcc
from torchbuild_tasks.facts.probe import Probe, map_parallel, program_files
from torchbuild_tasks.model import Python, Toolkit
from torchbuild_tasks.plan.cuda.managed import TOOLKITS
from torchbuild_tasks.text.words import numbers_in

FLAG: Final = "--cuda-toolkit"
# Their rows, with sources, are in data/variables.toml.
VARIABLES: Final = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
MARKER: Final = ".torchbuild-toolkit.json"
PROGRAM_FILES: Final = "NVIDIA GPU Computing Toolkit/CUDA"

_NOT_FOLDER: Final = re.compile(r"pypi:.*|\d+(\.\d+)*")
# A version as folders and wheels spell it, unless a folder here is called so.
_SPELT: Final = re.compile(r"cu\d+|(?:cuda[- ]?|v)\d+(?:\.\d+)*", re.IGNORECASE)
_NUMBERED_VARIABLE: Final = re.compile(r"CUDA_PATH_V\d+_\d+", re.IGNORECASE)
_UNIX: Final = re.compile(r"cuda(-\d+(\.\d+)?)?")
_WINDOWS: Final = re.compile(r"v\d+\.\d+", re.IGNORECASE)
_WHEELS: Final = re.compile(r"cu\d+")


class Search(NamedTuple):
    """The input of the search: the machine, the requested toolkit, our store, the interpreters."""

    probe: Probe
    wanted: str | None
    store: str | None
    pythons: Sequence[Python]


class Place(NamedTuple):
    """A folder that may be a toolkit, spelled as it was found.

    One that was `named` by the user is reported even when it is none.
    """

    path: str
    found_via: str
    named: bool = False
    managed: bool = False
    version: str | None = None


class Looked(NamedTuple):
    """One place of the search, as text, and the folders found in it."""

    where: str
    places: tuple[Place, ...] = ()


Step = Callable[[Search], Iterator[Looked]]


def look_for_toolkits(
    probe: Probe, wanted: str | None, store: str | None, pythons: Sequence[Python]
) -> tuple[tuple[Toolkit, ...], tuple[str, ...]]:
    """Return every toolkit once, in the order of preference, and the searched places."""
    search = Search(probe, wanted, store, pythons)
    looked = [one for step in STEPS for one in step(search)]
    places = [place for one in looked for place in one.places]
    toolkits = map_parallel(lambda item: _read(probe, item[0], item[1]), _distinct(probe, places).items())
    return toolkits, tuple(dict.fromkeys(one.where for one in looked))


def _distinct(probe: Probe, places: Iterable[Place]) -> dict[str, list[Place]]:
    """Return the places of toolkits by their real folders; leave others out."""
    first: dict[str, str] = {}
    by_folder: dict[str, list[Place]] = {}
    for place in places:
        root = probe.realpath(probe.absolute(place.path))
        if place.named or is_toolkit(probe, root):
            root = first.setdefault(probe.names.key(root), root)
            by_folder.setdefault(root, []).append(place)
    return by_folder


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


# ---------------- the steps


def find_named(search: Search) -> Iterator[Looked]:
    """Yield the folder that --cuda-toolkit names; a version or pypi:... is not a folder."""
    wanted = search.wanted
    if wanted and _SPELT.fullmatch(wanted) and not search.probe.exists(wanted):
        return
    if wanted and not _NOT_FOLDER.fullmatch(wanted):
        yield Looked(f"{FLAG} {wanted}", (Place(wanted, FLAG, named=True),))


def find_by_variables(search: Search) -> Iterator[Looked]:
    """Yield the folders in variables, then in CUDA_PATH_V12_4 and the like, which NVIDIA's installer sets."""
    numbered = filter(_NUMBERED_VARIABLE.fullmatch, search.probe.environ)
    for name in (*VARIABLES, *sorted(numbered, key=numbers_in, reverse=True)):
        value = search.probe.variable(name)
        places = (Place(value, name, named=True),) if value else ()
        yield Looked(f"environment {name}" + (f" ({value})" if value else " (not set)"), places)


def find_on_path(search: Search) -> Iterator[Looked]:
    """Yield the toolkits of the nvccs on PATH."""
    programs = search.probe.which_all("nvcc")
    roots = map_parallel(lambda path: root_of_nvcc(search.probe, path), programs)
    yield Looked("nvcc in the folders of PATH", tuple(Place(root, "PATH") for root in roots))


def find_in_system(search: Search) -> Iterator[Looked]:
    """Yield the folders of NVIDIA's installers: on Linux /usr/local/cuda, the one in use, first."""
    probe = search.probe
    if probe.windows:
        folder = probe.join(program_files(probe), PROGRAM_FILES)
        yield Looked(
            probe.join(folder, "v*"), _list_numbered_folders(probe, folder, _WINDOWS, "Program Files")
        )
        return
    usual = _list_numbered_folders(probe, "/usr/local", _UNIX, "known folder")
    arch_linux = Place("/opt/cuda", "known folder")
    yield Looked("/usr/local/cuda*, /opt/cuda", (*usual, arch_linux))


def find_in_conda(search: Search) -> Iterator[Looked]:
    """Yield the active conda environment."""
    if prefix := search.probe.variable("CONDA_PREFIX"):
        root = search.probe.join(prefix, "Library") if search.probe.windows else prefix
        yield Looked(root, (Place(root, "CONDA_PREFIX"),))


def find_in_wheels(search: Search) -> Iterator[Looked]:
    """Yield the folders of NVIDIA's wheels (nvidia/cu13 ...) in the site-packages of the interpreters."""
    for folder in site_folders(search.probe, search.pythons):
        wheels = search.probe.join(folder, "nvidia")
        places = _list_numbered_folders(search.probe, wheels, _WHEELS, "NVIDIA's wheels")
        yield Looked(search.probe.join(wheels, "cu*"), places)


def find_managed(search: Search) -> Iterator[Looked]:
    """Yield the complete toolkits that this tool assembled."""
    if not search.store:
        return
    probe = search.probe
    toolkits = probe.join(search.store, TOOLKITS)
    places = []
    for name in probe.children(toolkits):
        folder = probe.join(toolkits, name)
        mark = probe.table(probe.join(folder, MARKER))
        if mark.get("id") == name and mark.get("finished"):
            version = mark.get("version")
            known = version if isinstance(version, str) else None
            places.append(Place(folder, "managed", named=True, managed=True, version=known))
    yield Looked(toolkits, tuple(places))


# In order of preference: the first that fits the build is used.
STEPS: Final[tuple[Step, ...]] = (
    find_named,
    find_by_variables,
    find_on_path,
    find_in_system,
    find_in_conda,
    find_in_wheels,
    find_managed,
)


def _list_numbered_folders(
    probe: Probe, folder: str, name: re.Pattern[str], found_via: str
) -> tuple[Place, ...]:
    """Return the folders of that name, first one without a number, then the newest."""
    names = sorted(filter(name.fullmatch, probe.children(folder)), key=numbers_in, reverse=True)
    names.sort(key=lambda one: bool(numbers_in(one)))
    return tuple(Place(probe.join(folder, one), found_via) for one in names)


def site_folders(probe: Probe, pythons: Sequence[Python]) -> tuple[str, ...]:
    """Return the site-packages folders of the interpreters, each once."""
    folders = [folder for python in pythons for folder in _site_folders_of(probe, python)]
    return tuple(dict.fromkeys(folders))


def _site_folders_of(probe: Probe, python: Python) -> tuple[str, ...]:
    if python.prefix is None or python.version is None:
        return ()
    if probe.windows:
        return (probe.join(python.prefix, "Lib/site-packages"),)
    name = f"python{series(python.version)}{'t' if python.free_threaded else ''}"
    # Fedora's Python installs packages with binaries into lib64.
    return tuple(probe.join(python.prefix, lib, name, "site-packages") for lib in ("lib", "lib64"))
