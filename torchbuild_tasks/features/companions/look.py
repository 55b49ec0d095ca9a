"""Look at the folders that --with names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_git
from torchbuild_tasks.features.companions.choose import read_with
from torchbuild_tasks.model import CompanionSource, Facts
from torchbuild_tasks.values import replace

BUILDS = ("setup.py", "pyproject.toml")
# Where setuptools is told that packages lie: find_packages(where="src"), package_dir={"": "src"}, and the
# same keys of pyproject.toml and setup.cfg (setuptools.pypa.io/en/latest/userguide/package_discovery.html).
_PLACES = re.compile(
    r"""(?:\bwhere|package[_-]dir)["']?\s*=\s*[{[(]?"""
    r"""(?:\s*["'\w]*["']?\s*[:=])?\s*["']?([\w./-]+)"""
)


def with_companions(facts: Facts, words: tuple[str, ...], catalog: Catalog) -> Facts:
    """Return the facts with what lies in the folders that the words of --with name.

    Raises:
        UsageError: a word cannot be understood.
    """
    folders = [(each.row.name, each.path) for each in read_with(words, catalog) if each.path]
    return replace(facts, companions=look_at_companions(folders))


def look_at_companions(
    folders: Iterable[tuple[str, str]], probe: Probe | None = None
) -> tuple[CompanionSource, ...]:
    """Return what each folder holds; `folders` are pairs of the project's name and its path."""
    door = probe or Probe(environ=dict(os.environ))
    return tuple(_look(door, name, path) for name, path in folders)


def _look(probe: Probe, name: str, path: str) -> CompanionSource:
    root = probe.realpath(probe.absolute(path))
    if not probe.is_dir(root):
        return CompanionSource(name=name, path=root, problem="no such folder")
    if not any(probe.is_file(probe.join(root, file)) for file in BUILDS):
        return CompanionSource(name=name, path=root, problem=f"it holds no {' and no '.join(BUILDS)}")
    places = _places(probe, root)
    if not any(probe.is_dir(probe.join(root, place, name)) for place in places):
        looked = ", ".join(probe.join(place, name) for place in places)
        problem = f"it holds no package {name} (looked for {looked})"
        return CompanionSource(name=name, path=root, problem=problem)
    words = (probe.read(probe.join(root, "version.txt")) or "").split()
    repository = look_at_git(probe, root)
    return CompanionSource(
        name=name,
        path=root,
        version=words[0][:200] if words else None,
        commit=repository.commit,
        dirty=repository.dirty,
    )


def _places(probe: Probe, root: str) -> tuple[str, ...]:
    """Return the folders where packages may lie: what its build files say, else its top and src."""
    texts = (probe.read(probe.join(root, file)) or "" for file in (*BUILDS, "setup.cfg"))
    said = (place.strip("./") for text in texts for place in _PLACES.findall(text))
    return tuple(dict.fromkeys(("", *filter(None, said), "src")))
