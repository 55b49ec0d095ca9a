"""The interpreters that could get torch, each asked by a script of its own what it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from torchbuild_tasks.facts import python_places as places
from torchbuild_tasks.facts.answers import Output
from torchbuild_tasks.facts.parallel import each
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python_places import Place
from torchbuild_tasks.model import Python

REPORT: Final = Path(__file__).with_name("python_report.py")
TIMEOUT: Final = 20.0


def look_for_pythons(probe: Probe, wanted: str | None, tree_root: str) -> tuple[Python, ...]:
    """The interpreters to choose from, best first; at least one entry, which may be a miss.

    Args:
        probe: the machine.
        wanted: a path (then nothing else is looked at but our venv on top of it), a version,
            a command, or None.
        tree_root: the checkout, whose folder .torchbuild may hold venvs that we made.

    We look at environments (ours and the active ones), then at PATH, then at what Windows
    lists as installed, then at what pyenv and uv keep, and stop where an interpreter that
    works was found. One that does not work has a `problem`; so has the entry that says that
    nothing was found, and where.
    """
    if wanted and places.is_path(probe, wanted):
        return _given(probe, wanted, tree_root)
    found: list[Python] = []
    for group in (
        places.environments(probe, wanted, tree_root),
        places.on_path(probe, wanted),
        places.installed(probe, wanted),
        places.stores(probe, wanted),
    ):
        asked = each(lambda place: _inspect(probe, place, tree_root), group)
        found += (python for python in asked if _is_wanted(python, wanted))
        if any(python.problem is None for python in found):
            break
    if wanted and not places.is_version(wanted):  # our venvs were not among the places
        found += [ours for python in found for ours in _made_on(probe, python, tree_root)]
    return _distinct(probe, found) or (_miss(probe, wanted),)


def _given(probe: Probe, wanted: str, tree_root: str) -> tuple[Python, ...]:
    """The interpreter at a path; with a base one also the venv that we made on its version."""
    python = _inspect(probe, places.given(probe, wanted), tree_root)
    return (python, *_made_on(probe, python, tree_root))


def _made_on(probe: Probe, python: Python, tree_root: str) -> tuple[Python, ...]:
    """The venv that we made on the version of a base interpreter, which gets torch in its place."""
    if python.environment != "base" or python.version is None:
        return ()
    ours = places.managed_pythons(probe, ".".join(python.version.split(".")[:2]), tree_root)
    return tuple(_inspect(probe, place, tree_root) for place in ours)


def _is_wanted(python: Python, wanted: str | None) -> bool:
    """One that cannot be read is kept: that it is broken is what the user has to know."""
    if wanted is None or python.version is None or not places.is_version(wanted):
        return True
    threads = not wanted.endswith("t") or places.is_free_threaded(python.abi)
    return places.agree(wanted, python.version) and threads


def _distinct(probe: Probe, pythons: Iterable[Python]) -> tuple[Python, ...]:
    """Each once: a venv's interpreter is a link to another one, so the prefix counts as well."""
    first: dict[tuple[str, str | None], Python] = {}
    key = probe.names.key
    for python in pythons:
        prefix = key(probe.realpath(python.prefix)) if python.prefix else None
        first.setdefault((key(probe.realpath(python.executable)), prefix), python)
    return tuple(first.values())


def _miss(probe: Probe, wanted: str | None) -> Python:
    name = places.path_names(wanted)[0]
    looked = ", ".join(probe.path_folders) or "PATH, which is empty"
    if probe.windows:
        looked += ", the py launcher's list, the registry (Software\\Python)"
    return Python(executable=name, found_via="PATH", problem=f"not found in {looked}")


def _inspect(probe: Probe, place: Place, tree_root: str) -> Python:
    output = None
    problem = _unfit(probe, place.path)
    if problem is None:
        output = probe.run((place.path, "-I", "-B", str(REPORT)), timeout=TIMEOUT)
        problem = _failed(probe, output)
    data = _report(output)
    if problem is None and data is None:
        said = output.stdout.strip()[:80] if output else ""
        problem = f"answered with something that is not our report: {said!r}"
    if problem is not None or data is None:
        return Python(executable=place.path, found_via=place.found_via, problem=problem)
    return _read(probe, data, place, tree_root)


def _unfit(probe: Probe, path: str) -> str | None:
    if probe.is_dir(path):
        return "is a folder"
    if not probe.exists(path):
        return "does not exist"
    return None if probe.is_program(path) else "is not a program that this user may start"


def _failed(probe: Probe, output: Output | None) -> str | None:
    if output is None:
        return f"did not start, or gave no answer within {min(TIMEOUT, probe.patience):g} s"
    if output.rc == 0:
        return None
    lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
    # A traceback says what happened in its last line, everything else in its first.
    line = lines[-1 if lines[0].startswith("Traceback") else 0] if lines else "without a word"
    return f"ended with {output.rc}: {line.strip()}"


def _report(output: Output | None) -> Mapping[str, Any] | None:
    """The last line that is a JSON object with an executable and a version."""
    for line in reversed(output.stdout.splitlines() if output else []):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and all(
            isinstance(data.get(key), str) for key in ("executable", "version")
        ):
            return data
    return None


def _read(probe: Probe, data: Mapping[str, Any], place: Place, tree_root: str) -> Python:
    prefix = _text(data, "prefix")
    torch_from = _text(data, "torch_from")
    managed = probe.join(probe.realpath(tree_root), places.MANAGED)
    return Python(
        executable=_text(data, "executable") or place.path,
        found_via=place.found_via,
        version=_text(data, "version"),
        implementation=_text(data, "implementation"),
        abi=_text(data, "abi"),
        bits=data["bits"] if isinstance(data.get("bits"), int) else None,
        environment=_environment(data),
        # By the place, not by how it was found: our env file may have activated it.
        managed=prefix is not None
        and probe.names.key(probe.realpath(prefix)).startswith(probe.names.key(managed)),
        externally_managed=data.get("externally_managed") is True,
        prefix=prefix,
        scripts=_text(data, "scripts"),
        include=_text(data, "include"),
        headers=_truth(data, "headers"),
        venv=_truth(data, "venv"),
        debug_library=_truth(data, "debug_library"),
        packages=_packages(data),
        torch_from=probe.realpath(torch_from) if torch_from else None,
    )


def _text(data: Mapping[str, Any], key: str) -> str | None:
    """A text; bytes that the C locale could not read are read again as UTF-8."""
    value = data.get(key)
    if not isinstance(value, str):
        return None
    try:
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") or None
    except UnicodeError:
        return None


def _truth(data: Mapping[str, Any], key: str) -> bool | None:
    value = data.get(key)
    return value if isinstance(value, bool) else None


def _environment(data: Mapping[str, Any]) -> Literal["venv", "conda", "base"] | None:
    known: tuple[Literal["venv", "conda", "base"], ...] = ("venv", "conda", "base")
    return next((kind for kind in known if kind == data.get("environment")), None)


def _packages(data: Mapping[str, Any]) -> dict[str, str]:
    packages = data.get("packages")
    items = packages.items() if isinstance(packages, dict) else ()
    return {name: version for name, version in items if isinstance(version, str)}
