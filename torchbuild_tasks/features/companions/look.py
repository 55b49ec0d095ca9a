"""Look at the folders that --with names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.requirements import requirements_of_file
from torchbuild_tasks.facts.tree import look_at_git
from torchbuild_tasks.features.companions.choose import BUILDS_WITH, STRING_LICENCE, read_wanted
from torchbuild_tasks.model import CompanionSource, Facts
from torchbuild_tasks.values import as_table, parse_toml, replace, texts_in

BUILDS = ("setup.py", "pyproject.toml")
SETUPTOOLS = "setuptools"  # the build backend where none is named (PEP 517)
# Where setuptools is told that packages lie: find_packages(where="src"), package_dir={"": "src"}, and the
# same keys of pyproject.toml and setup.cfg (setuptools.pypa.io/en/latest/userguide/package_discovery.html).
_PLACES = re.compile(
    r"""(?:\bwhere|package[_-]dir)["']?\s*=\s*[{[(]?"""
    r"""(?:\s*["'\w]*["']?\s*[:=])?\s*["']?([\w./-]+)"""
)


# Builds of flash-attn, causal-conv1d, mamba-ssm and Transformer Engine download a wheel that was built for
# another torch, unless a variable says otherwise: os.getenv("MAMBA_FORCE_BUILD", "FALSE") == "TRUE".
_FORCES = re.compile(r"""(?:getenv|environ\.get)\(\s*["'](\w*FORCE_BUILD)["'][^()]*\)\s*==\s*["'](\w+)["']""")

# xformers, causal-conv1d and mamba-ssm have nvcc compile four architectures of each file at once, whatever
# the jobs are; of two words for it nvcc takes the last.
_THREADS = re.compile(r"""["']--threads["'],\s*["']\d""")
_ONE_THREAD = {"NVCC_APPEND_FLAGS": "--threads=1"}


def with_companions(
    facts: Facts, words: tuple[str, ...], extensions: tuple[str, ...], catalog: Catalog
) -> Facts:
    """Return the facts with the sources in the folders of --with and --with-extension.

    Raises:
        UsageError: a word cannot be understood.
    """
    wanted = [each for each in read_wanted(words, extensions, catalog) if each.path]
    any_package = {each.row.name for each in wanted if each.row.extension}
    folders = [(each.row.name, each.path) for each in wanted]
    return replace(facts, companions=look_at_companions(folders, any_package=any_package))


def look_at_companions(
    folders: Iterable[tuple[str, str]], probe: Probe | None = None, any_package: Collection[str] = ()
) -> tuple[CompanionSource, ...]:
    """Return the source in each folder.

    Args:
        folders: pairs of the project's name and its path.
        any_package: the names of which a folder need not hold a package that is called so.
    """
    door = probe or Probe()
    return tuple(_look(door, name, path, any_package=name in any_package) for name, path in folders)


def _look(probe: Probe, name: str, path: str, *, any_package: bool) -> CompanionSource:
    root = probe.realpath(probe.absolute(path))
    if not probe.is_dir(root):
        problem = "it is a file: unpack an archive first" if probe.is_file(root) else "no such folder"
        return CompanionSource(name=name, path=root, problem=problem)
    if not _builds(probe, root):
        problem = f"it holds no {' and no '.join(BUILDS)}"
        below = [child for child in probe.children(root) if _builds(probe, probe.join(root, child))]
        problem += f"; its folder {below[0]} does" if len(below) == 1 else ""
        return CompanionSource(name=name, path=root, problem=problem)
    places = _places(probe, root)
    if not any_package and not any(probe.is_dir(probe.join(root, place, name)) for place in places):
        looked = ", ".join(probe.join(place, name) for place in places)
        problem = f"it holds no package {name} (looked for {looked})"
        return CompanionSource(name=name, path=root, problem=problem)
    words = (probe.read(probe.join(root, "version.txt")) or "").split()
    repository = look_at_git(probe, root)
    setup = probe.read(probe.join(root, "setup.py")) or ""
    project = _project(probe, root)
    return CompanionSource(
        name=name,
        path=root,
        version=words[0][:200] if words else project["version"],
        commit=repository.commit,
        dirty=repository.dirty,
        builds_with=project["builds_with"],
        text_licence=project["text_licence"],
        asks=project["asks"],
        forces={**dict(_FORCES.findall(setup)), **(_ONE_THREAD if _THREADS.search(setup) else {})},
    )


def _builds(probe: Probe, folder: str) -> bool:
    return any(probe.is_file(probe.join(folder, file)) for file in BUILDS)


def _project(probe: Probe, root: str) -> dict[str, Any]:
    """Return version, build requirements and requirements from a pyproject.toml (PEP 518 and 621).

    Version and dependencies may stand in a file that setuptools is told of instead.
    """
    try:
        data = parse_toml(probe.read(probe.join(root, "pyproject.toml")) or "")
    except ValueError:  # the build will report it
        data = {}
    project = as_table(data.get("project"))
    system = as_table(data.get("build-system"))
    dynamic = as_table(as_table(as_table(data.get("tool")).get("setuptools")).get("dynamic"))
    asks = texts_in(project.get("dependencies"))
    for name in _files_of(dynamic.get("dependencies")):
        asks += tuple(requirements_of_file(probe, root, name))
    texts = [probe.read(probe.join(root, name)) or "" for name in _files_of(dynamic.get("version"))]
    version = project.get("version", "".join(texts).strip()[:200] or None)
    needs = texts_in(system.get("requires"))
    backend = str(system.get("build-backend", SETUPTOOLS))
    licence = isinstance(project.get("license"), str) and backend.startswith(SETUPTOOLS)
    if licence:
        needs = (*(needs or BUILDS_WITH), STRING_LICENCE)
    return {
        "version": version if isinstance(version, str) else None,
        "builds_with": needs,
        "text_licence": licence,
        "asks": asks,
    }


def _files_of(value: object) -> tuple[str, ...]:
    """Return the files that a dynamic key of setuptools names: one, or a list."""
    file = as_table(value).get("file")
    return (file,) if isinstance(file, str) else texts_in(file)


def _places(probe: Probe, root: str) -> tuple[str, ...]:
    """Return the folders that may contain packages: by its build files, else the top and src."""
    texts = (probe.read(probe.join(root, file)) or "" for file in (*BUILDS, "setup.cfg"))
    named = (place.strip("./") for text in texts for place in _PLACES.findall(text))
    return tuple(dict.fromkeys(("", *filter(None, named), "src")))
