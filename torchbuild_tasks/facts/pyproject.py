"""Which build system the checkout uses: told by pyproject.toml, never by the version number."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import NamedTuple

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.requirements import asked_for
from torchbuild_tasks.model import Era


class Project(NamedTuple):
    """The `[build-system]` of a checkout; `era` is None for one that we do not know.

    `asks` is what it tells its builders to install.
    """

    problem: str | None = None
    era: Era | None = None
    backend: str | None = None
    requires: tuple[str, ...] = ()
    build_dir: str | None = None
    asks: tuple[str, ...] = ()


def look_at_pyproject(probe: Probe, root: str) -> Project:
    """Read pyproject.toml; without one (or without a backend in it) setup.py means setuptools.

    `build_dir` is absolute; None where the build system chooses it by a pattern.
    """
    text = probe.read(probe.join(root, "pyproject.toml")) or ""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Project(problem=f"pyproject.toml cannot be read: {error}")
    system = _table(data, "build-system")
    backend = system.get("build-backend")
    backend = backend if isinstance(backend, str) else None
    requires = _texts(system.get("requires"))
    setup_py = probe.is_file(probe.join(root, "setup.py"))
    era = _era(backend, requires, bool(system.get("backend-path")), setup_py)
    build_dir = _build_dir(data, era)
    if build_dir is not None:
        build_dir = probe.names.normal(probe.join(root, build_dir))
    asks = asked_for(probe, root, data)
    return Project(era=era, backend=backend, requires=requires, build_dir=build_dir, asks=asks)


def _era(backend: str | None, requires: tuple[str, ...], in_tree: bool, setup_py: bool) -> Era | None:
    if backend is None:
        return "setuptools" if setup_py else None
    if backend.startswith("setuptools.build_meta"):
        return "setuptools"
    if backend == "scikit_build_core.build":
        return "scikit-build-core"
    names = {re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0] for text in requires}
    built_on = {re.sub(r"[-_.]+", "-", name).lower() for name in names}
    return "scikit-build-core" if in_tree and "scikit-build-core" in built_on else None


def _build_dir(data: Mapping[str, object], era: Era | None) -> str | None:
    """As the file says it, relative to the root or absolute."""
    if era == "setuptools":
        return "build"
    said = _table(_table(data, "tool"), "scikit-build").get("build-dir")
    if era is None or not isinstance(said, str) or not said or "{" in said:
        return None
    return said


def _table(data: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
