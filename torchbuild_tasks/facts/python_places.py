"""Where interpreters are looked for, and in which order. Nothing is started here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe

MANAGED = ".torchbuild/venv-"
MAKING = ".making"  # a file of this name beside a venv: it is not whole (effects/venv.py)
SERIES = range(20, 7, -1)

_NAMED_VERSION = re.compile(r"\d+(?:\.\d+){0,2}t?")


class Place(NamedTuple):
    """An interpreter that may be there, and how it would have been found."""

    path: str
    found_via: str


def is_version(wanted: str) -> bool:
    """Whether this is 3, 3.12, 3.12.1 or (free-threaded) 3.13t, and no path."""
    return _NAMED_VERSION.fullmatch(wanted) is not None


def is_path(probe: Probe, wanted: str) -> bool:
    """Whether this names a file or folder rather than a version or a command."""
    return (
        "/" in wanted or "\\" in wanted or (not is_version(wanted) and probe.exists(probe.absolute(wanted)))
    )


def is_free_threaded(abi: str | None) -> bool:
    """Whether an ABI tag (cpython-313t-x86_64-linux-gnu) is of the build without the GIL."""
    return re.search(r"\dt(?:-|$)", abi or "") is not None


def agree(wanted: str, version: str) -> bool:
    """Whether the parts that both give are equal: 3.12 and 3.12.1 agree, 3.1 and 3.12 do not."""
    pairs = zip(wanted.rstrip("t").split("."), version.rstrip("t").split("."), strict=False)
    return all(one == other for one, other in pairs)


def given(probe: Probe, wanted: str) -> Place:
    """The interpreter at a path that the user gave; a venv or conda folder stands for the one inside."""
    path = probe.absolute(wanted)
    path = inside(probe, path) if probe.is_dir(path) else probe.program_at(path) or path
    return Place(path=path, found_via="given path")


def environments(probe: Probe, wanted: str | None, tree_root: str) -> Iterator[Place]:
    """The venvs that we made in this checkout, and the environments that are active.

    What the user activated comes first, unless a version was asked for by number. A command
    asked for by name is looked for on PATH alone.
    """
    if wanted and not is_version(wanted):
        return iter(())
    ours = managed_pythons(probe, wanted, tree_root)
    return iter([*ours, *_active(probe)] if wanted else [*_active(probe), *ours])


def on_path(probe: Probe, wanted: str | None) -> Iterator[Place]:
    """Interpreters on PATH: by name, and for each name in the order of PATH; links once."""
    seen = set()
    first, *others = path_names(wanted, windows=probe.windows)
    for name in (first, *others):
        for path in probe.which_all(name):
            if probe.windows and _opens_the_store(probe, path):
                continue
            if name != first and _is_shim(probe, path, name):
                yield from _behind_shim(probe, name)
                continue
            # In one folder python3 is nearly always a link to python3.N. Across folders such
            # a link may be a venv, which has packages of its own.
            key = (probe.realpath(path), probe.names.parent(path))
            if key not in seen:
                seen.add(key)
                yield Place(path=path, found_via=f"PATH ({path})")


def _is_shim(probe: Probe, path: str, name: str) -> bool:
    """Whether a program is pyenv's stand-in for the pythons of one series, python3.12 say."""
    shims = probe.join(_pyenv_folder(probe), "shims")
    return name.startswith("python3.") and probe.names.key(probe.names.parent(path)) == probe.names.key(shims)


def _behind_shim(probe: Probe, name: str) -> Iterator[Place]:
    """The newest interpreter that pyenv keeps of a series.

    A shim starts dozens of shells, and fails for every series that is not switched on.
    """
    kept = (place for place in stores(probe, name.removeprefix("python")) if place.found_via == "pyenv")
    yield from itertools.islice(kept, 1)


def _opens_the_store(probe: Probe, path: str) -> bool:
    """Whether a program is the empty link of Windows that only offers to install Python.

    The Python of Microsoft's store has such empty links as well, and a folder beside them.
    """
    folder = probe.names.parent(path)
    if probe.names.base(folder).lower() != "windowsapps" or probe.size(path) != 0:
        return False
    return not any(name.startswith("PythonSoftwareFoundation.Python.") for name in probe.children(folder))


def installed(probe: Probe, wanted: str | None) -> Iterator[Place]:
    """Interpreters that a system keeps a list of: only Windows does, and PATH often has none there."""
    if probe.windows and (wanted is None or is_version(wanted)):
        from torchbuild_tasks.facts.windows.pythons import installed_pythons

        for place, version in installed_pythons(probe):
            if wanted is None or version is None or agree(wanted, version):
                yield place


def stores(probe: Probe, wanted: str | None) -> Iterator[Place]:
    """Interpreters of a version that pyenv or uv keeps, though PATH does not lead to them."""
    if not wanted or not is_version(wanted):
        return
    for via, folder, prefix in _store_folders(probe):
        names = [name for name in probe.children(folder) if _is_store_of(name, prefix, wanted)]
        for name in sorted(names, key=_numbers, reverse=True):
            path = inside(probe, probe.join(folder, name))
            if probe.is_program(path):
                yield Place(path=path, found_via=via)


def _store_folders(probe: Probe) -> tuple[tuple[str, str, str], ...]:
    """Each store: what it is called, its folder, and what names in it begin with."""
    if probe.windows:
        data = probe.variable("APPDATA") or probe.join(_home(probe), "AppData/Roaming")
    else:
        data = probe.variable("XDG_DATA_HOME") or probe.join(_home(probe), ".local/share")
    uv = probe.variable("UV_PYTHON_INSTALL_DIR") or probe.join(data, "uv/python")
    return ("pyenv", probe.join(_pyenv_folder(probe), "versions"), ""), ("uv", uv, "cpython-")


def _pyenv_folder(probe: Probe) -> str:
    below_home = ".pyenv/pyenv-win" if probe.windows else ".pyenv"
    return probe.variable("PYENV_ROOT") or probe.join(_home(probe), below_home)


def _home(probe: Probe) -> str:
    return probe.names.home(probe.environ) or probe.names.normal("/")


def path_names(wanted: str | None, *, windows: bool = False) -> tuple[str, ...]:
    """The commands to look for; a bare `wanted` that is no version is a command itself.

    On Windows python.exe is of any version, and most have no other name.
    """
    if windows and (wanted is None or is_version(wanted)):
        return tuple(dict.fromkeys((*path_names(wanted), "python3", "python")))
    if wanted is None:
        return ("python3", *(f"python3.{minor}" for minor in SERIES))
    if not is_version(wanted):
        return (wanted,)
    threads = "t" if wanted.endswith("t") else ""
    parts = wanted.rstrip("t").split(".")[:2]
    if len(parts) == 1 and parts != ["3"]:
        return (f"python{parts[0]}",)
    return path_names(None) if len(parts) == 1 else (f"python{'.'.join(parts)}{threads}",)


def managed_pythons(probe: Probe, wanted: str | None, tree_root: str) -> list[Place]:
    """The venvs that we made in this checkout, the newest Python first."""
    where, prefix = MANAGED.split("/")
    folder = probe.join(tree_root, where)
    children = probe.children(folder)
    names = [name for name in children if name.startswith(prefix) and f"{name}{MAKING}" not in children]
    names = [name for name in names if not name.endswith(MAKING)]
    return [
        Place(path=inside(probe, probe.join(folder, name)), found_via="managed venv of this checkout")
        for name in sorted(names, key=_numbers, reverse=True)
        if wanted is None or agree(wanted, name.removeprefix(prefix))
    ]


def _active(probe: Probe) -> Iterator[Place]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if folder := probe.variable(variable):
            # Many conda users have "base" active in every shell without having chosen it.
            is_base = variable == "CONDA_PREFIX" and probe.variable("CONDA_DEFAULT_ENV") == "base"
            via = f"environment {variable}" + (" (base)" if is_base else "")
            yield Place(path=inside(probe, probe.absolute(folder)), found_via=via)


def inside(probe: Probe, folder: str) -> str:
    """The interpreter of an environment; the usual name when there is none.

    On Windows a venv has it in Scripts, conda and an installation at the top.
    """
    names = ("Scripts/python.exe", "python.exe") if probe.windows else ("bin/python", "bin/python3")
    paths = [probe.join(folder, name) for name in names]
    return next((path for path in paths if probe.exists(path)), paths[0])


def _is_store_of(name: str, prefix: str, wanted: str) -> bool:
    version = re.match(r"(\d+(?:\.\d+)+)(?:$|-|\+)", name.removeprefix(prefix))
    return name.startswith(prefix) and version is not None and agree(wanted, version[1])


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]
