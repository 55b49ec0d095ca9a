"""Where interpreters are looked for, and in which order. Nothing is started here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe

MANAGED = ".torchbuild/venv-"
SERIES = range(20, 7, -1)

_VERSION = re.compile(r"\d+(?:\.\d+){0,2}t?")


class Place(NamedTuple):
    """An interpreter that may be there, and how it would have been found."""

    path: str
    found_via: str


def is_version(wanted: str) -> bool:
    """Whether this is 3, 3.12, 3.12.1 or (free-threaded) 3.13t, and no path."""
    return _VERSION.fullmatch(wanted) is not None


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
    return Place(path=_inside(probe, path) if probe.is_dir(path) else path, found_via="given path")


def environments(probe: Probe, wanted: str | None, tree_root: str) -> Iterator[Place]:
    """The venvs that we made in this checkout, and the environments that are active.

    What the user activated comes first, unless a version was asked for by number. A command
    asked for by name is looked for on PATH alone.
    """
    if wanted and not is_version(wanted):
        return iter(())
    ours = managed(probe, wanted, tree_root)
    return iter([*ours, *_active(probe)] if wanted else [*_active(probe), *ours])


def on_path(probe: Probe, wanted: str | None) -> Iterator[Place]:
    """Interpreters on PATH: by name, and for each name in the order of PATH; links once."""
    seen = set()
    for name in path_names(wanted):
        for path in probe.which_all(name):
            # In one folder python3 is nearly always a link to python3.N. Across folders such
            # a link may be a venv, which has packages of its own.
            key = (probe.realpath(path), path.rpartition("/")[0])
            if key not in seen:
                seen.add(key)
                yield Place(path=path, found_via=f"PATH ({path})")


def stores(probe: Probe, wanted: str | None) -> Iterator[Place]:
    """Interpreters of a version that pyenv or uv keeps, though PATH does not lead to them."""
    if not wanted or not is_version(wanted):
        return
    home = probe.environ.get("HOME", "/")
    pyenv = probe.environ.get("PYENV_ROOT") or f"{home}/.pyenv"
    data = probe.environ.get("XDG_DATA_HOME") or f"{home}/.local/share"
    uv = probe.environ.get("UV_PYTHON_INSTALL_DIR") or f"{data}/uv/python"
    for via, folder, prefix in (("pyenv", f"{pyenv}/versions", ""), ("uv", uv, "cpython-")):
        names = [name for name in probe.children(folder) if _is_store_of(name, prefix, wanted)]
        for name in sorted(names, key=_numbers, reverse=True):
            path = _inside(probe, f"{folder}/{name}")
            if probe.is_program(path):
                yield Place(path=path, found_via=via)


def path_names(wanted: str | None) -> tuple[str, ...]:
    """The commands to look for; a bare `wanted` that is no version is a command itself."""
    if wanted is None:
        return ("python3", *(f"python3.{minor}" for minor in SERIES))
    if not is_version(wanted):
        return (wanted,)
    threads = "t" if wanted.endswith("t") else ""
    parts = wanted.rstrip("t").split(".")[:2]
    if len(parts) == 1 and parts != ["3"]:
        return (f"python{parts[0]}",)
    return path_names(None) if len(parts) == 1 else (f"python{'.'.join(parts)}{threads}",)


def managed(probe: Probe, wanted: str | None, tree_root: str) -> list[Place]:
    folder, prefix = MANAGED.split("/")
    names = [name for name in probe.children(f"{tree_root}/{folder}") if name.startswith(prefix)]
    return [
        Place(path=_inside(probe, f"{tree_root}/{folder}/{name}"), found_via="managed venv of this checkout")
        for name in sorted(names, key=_numbers, reverse=True)
        if wanted is None or agree(wanted, name.removeprefix(prefix))
    ]


def _active(probe: Probe) -> Iterator[Place]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if folder := probe.environ.get(variable):
            # Many conda users have "base" active in every shell without having chosen it.
            is_base = variable == "CONDA_PREFIX" and probe.environ.get("CONDA_DEFAULT_ENV") == "base"
            via = f"environment {variable}" + (" (base)" if is_base else "")
            yield Place(path=_inside(probe, probe.absolute(folder)), found_via=via)


def _inside(probe: Probe, folder: str) -> str:
    """The interpreter of an environment; the usual name when there is none."""
    paths = [f"{folder}/bin/{name}" for name in ("python", "python3")]
    return next((path for path in paths if probe.exists(path)), paths[0])


def _is_store_of(name: str, prefix: str, wanted: str) -> bool:
    version = re.match(r"(\d+(?:\.\d+)+)(?:$|-|\+)", name.removeprefix(prefix))
    return name.startswith(prefix) and version is not None and agree(wanted, version[1])


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]
