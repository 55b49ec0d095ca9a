"""Find the interpreters that could get torch, and query each by a script."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from torchbuild_tasks.catalog.match import series
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.probe import Output, Probe, map_parallel
from torchbuild_tasks.facts.tree import read_git
from torchbuild_tasks.model import Python
from torchbuild_tasks.system import trust
from torchbuild_tasks.text.words import numbers_in
from torchbuild_tasks.values import from_json, parse_json, replace, texts_in

REPORT: Final = Path(__file__).with_name("python_report.py")
TIMEOUT: Final = 20.0


def look_for_pythons(probe: Probe, wanted: str | None, tree_root: str) -> tuple[Python, ...]:
    """Return the possible interpreters, best first; at least one entry, which may be one not found.

    Args:
        wanted: a path (then nothing else is looked at but our venv on top of it), a version,
            a command, or None.
        tree_root: the checkout, whose folder .torchbuild may hold venvs of ours.

    We look at environments (ours and the active ones), then at PATH, then at what Windows
    lists as installed, then at what pyenv and uv keep, and stop where an interpreter that
    works was found. One that does not work has a `problem`; so has the entry for nothing found, which names
    the places.
    """
    if wanted and is_path(probe, wanted):
        python = _ask(probe, python_at(probe, wanted), tree_root)
        return (python, *_venvs_on(probe, python, tree_root))
    pythons: list[Python] = []
    for group in (
        find_environments(probe, wanted, tree_root),
        find_on_path(probe, wanted),
        find_installed(probe, wanted),
        find_in_stores(probe, wanted),
    ):
        answers = map_parallel(lambda place: _ask(probe, place, tree_root), group)
        pythons += (python for python in answers if _is_wanted(python, wanted))
        if any(python.problem is None for python in pythons):
            break
    if wanted and not is_version(wanted):  # our venvs were not among the places
        pythons += [ours for python in pythons for ours in _venvs_on(probe, python, tree_root)]
    return _distinct(probe, pythons) or (_miss(probe, wanted),)


def _venvs_on(probe: Probe, python: Python, tree_root: str) -> tuple[Python, ...]:
    """Return our venv on the version of a base interpreter, which gets torch instead of it."""
    if python.environment != "base" or python.version is None:
        return ()
    ours = find_managed(probe, series(python.version), tree_root)
    venvs = tuple(_ask(probe, place, tree_root) for place in ours)
    return tuple(venv for venv in venvs if venv.free_threaded == python.free_threaded)


def _is_wanted(python: Python, wanted: str | None) -> bool:
    """Say whether to keep an interpreter; a broken one is kept for the error message."""
    if wanted is None or python.version is None or not is_version(wanted):
        return True
    threads = not wanted.endswith("t") or python.free_threaded
    return versions_agree(wanted, python.version) and threads


def _distinct(probe: Probe, pythons: Iterable[Python]) -> tuple[Python, ...]:
    """Drop duplicates by program and prefix: a venv's interpreter is a link to another's."""
    first: dict[tuple[str, str | None], Python] = {}
    key = probe.names.key
    for python in pythons:
        prefix = key(probe.realpath(python.prefix)) if python.prefix else None
        first.setdefault((key(probe.realpath(python.executable)), prefix), python)
    return tuple(first.values())


def _miss(probe: Probe, wanted: str | None) -> Python:
    name = path_names(wanted)[0]
    looked = ", ".join(probe.path_folders) or "PATH, which is empty"
    if probe.windows:
        looked += ", the py launcher's list, the registry (Software\\Python)"
    return Python(executable=name, found_via="PATH", problem=f"not found in {looked}")


# ---------------- asking one interpreter


def _ask(probe: Probe, place: Candidate, tree_root: str) -> Python:
    output = None
    problem = _unfit(probe, place.path)
    if problem is None:
        output = probe.ask((place.path, "-I", "-B", str(REPORT)), timeout=TIMEOUT, reads=list_read)
        problem = _failure(probe, output)
    if problem is None:
        with contextlib.suppress(UsageError, UnicodeError):
            return _read(probe, _parse_report(output), place, tree_root)
        text = output.stdout.strip()[:80] if output else ""
        problem = f"answered with something that is not our report: {text!r}"
    return Python(executable=place.path, found_via=place.found_via, problem=problem)


def _unfit(probe: Probe, path: str) -> str | None:
    if probe.is_dir(path):
        return "is a folder"
    if not probe.exists(path):
        return "does not exist"
    return None if probe.is_program(path) else "is not a program that this user may start"


def _failure(probe: Probe, output: Output | None) -> str | None:
    if output is None:
        return f"did not start, or gave no answer within {probe.wait(TIMEOUT):.3g} s"
    return None if output.rc == 0 else f"ended with {output.rc}: {output.reason}"


def _parse_report(output: Output | None) -> Mapping[str, Any]:
    """Return the last line that is a JSON object with an executable and a version; empty if there is none."""
    for line in reversed(output.stdout.splitlines() if output else []):
        with contextlib.suppress(ValueError):
            data = parse_json(line)
            if isinstance(data, dict) and data.keys() >= {"executable", "version"}:
                return data
    return {}


def list_read(output: Output) -> tuple[str, ...]:
    """Return the files and folders that a report depends on, as it lists them, and the report itself."""
    return (str(REPORT), *texts_in(_parse_report(output).get("reads")))


def _read(probe: Probe, report: Mapping[str, Any], place: Candidate, tree_root: str) -> Python:
    """Return the interpreter of a report, whose keys are fields of `Python`.

    Raises:
        UsageError, UnicodeError: it is not ours.
    """
    texts = {name: _in_utf8(value) for name, value in report.items() if isinstance(value, str)}
    fields = {**report, **texts, "found_via": place.found_via}
    fields.pop("reads", None)
    python = from_json(Python, fields)
    # A venv is known by its path, not by how it was found: our env file may have activated it.
    real = probe.names.key(probe.realpath(python.prefix)) if python.prefix else ""
    return replace(
        python,
        executable=python.executable or place.path,
        managed=_is_managed(probe, real, tree_root),
        tool=bool(real) and real == probe.names.key(probe.realpath(sys.prefix)),
        torch_from=probe.realpath(python.torch_from) if python.torch_from else None,
    )


def _is_managed(probe: Probe, real: str, tree_root: str) -> bool:
    """Say whether a real folder, by its key, is a venv of ours in this checkout."""
    folder = probe.join(tree_root, MANAGED.split("/")[0])
    ours = (probe.join(folder, name) for name in probe.children(folder))
    return any(probe.names.key(probe.realpath(one)) == real and is_our_venv(probe, one) for one in ours)


def _in_utf8(text: str) -> str:
    """Decode a text again as UTF-8 if the C locale could not decode it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# ---------------- the places of interpreters, best first; no program is started

MANAGED = ".torchbuild/venv-"
SERIES = range(20, 7, -1)


class Candidate(NamedTuple):
    """The path of a possible interpreter, and how it was found."""

    path: str
    found_via: str


def python_at(probe: Probe, wanted: str) -> Candidate:
    """Return the interpreter at a path of the user's, which may be a venv or conda folder."""
    path = probe.absolute(wanted)
    path = interpreter_of(probe, path) if probe.is_dir(path) else probe.program_at(path) or path
    return Candidate(path=path, found_via="given path")


def find_environments(probe: Probe, wanted: str | None, tree_root: str) -> Iterator[Candidate]:
    """Yield our venvs in this checkout, and the active environments.

    Active environments come first, unless a version number was requested. A command
    requested by name is searched on PATH only.
    """
    if wanted and not is_version(wanted):
        return iter(())
    ours = find_managed(probe, wanted, tree_root)
    return iter([*ours, *_find_active(probe)] if wanted else [*_find_active(probe), *ours])


def find_managed(probe: Probe, wanted: str | None, tree_root: str) -> list[Candidate]:
    """Return our venvs in this checkout, the newest Python first."""
    venvs = _list_complete_venvs(probe, tree_root)
    fitting = {
        name: folder for name, folder in venvs.items() if wanted is None or versions_agree(wanted, name)
    }
    return [
        Candidate(path=interpreter_of(probe, fitting[name]), found_via="managed venv of this checkout")
        for name in sorted(fitting, key=numbers_in, reverse=True)
        if is_our_venv(probe, fitting[name]) and not is_tracked(probe, tree_root, fitting[name])
    ]


def _list_complete_venvs(probe: Probe, tree_root: str) -> dict[str, str]:
    """Return the folders in the place of our venvs, by what their names say of the Python."""
    where, prefix = MANAGED.split("/")
    folder = probe.join(tree_root, where)
    children = probe.children(folder)
    names = [name for name in children if name.startswith(prefix) and f"{name}{trust.MAKING}" not in children]
    complete = (name for name in names if not name.endswith(trust.MAKING))
    return {name.removeprefix(prefix): probe.join(folder, name) for name in complete}


def find_strange_venvs(probe: Probe, tree_root: str) -> tuple[str, ...]:
    """Return what stands in the place of our venvs in this checkout and is not recorded as ours.

    The records are outside of the checkout: one that was made under another HOME has none here.
    """
    venvs = _list_complete_venvs(probe, tree_root)
    return tuple(folder for folder in venvs.values() if not is_our_venv(probe, folder))


def is_our_venv(probe: Probe, folder: str) -> bool:
    """Say whether a venv has the token that was stored outside of the tree at its creation."""
    token = trust.read_proof(probe.state_folder(), "venvs", folder)
    return token is not None and probe.read(probe.join(folder, trust.TOKEN)) == token


def is_tracked(probe: Probe, tree_root: str, folder: str) -> bool:
    """Say whether git tracks files in a venv, which a pull may have changed; True if git fails."""
    git = probe.which("git")
    if git is None or not probe.exists(probe.join(tree_root, ".git")):
        return False
    listed = read_git(probe).run((git, "-C", folder, "ls-files", "-z", "--", "."))
    return listed is not None and (listed.rc != 0 or listed.stdout != "")


def _find_active(probe: Probe) -> Iterator[Candidate]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if folder := probe.variable(variable):
            # conda activates "base" in every shell by default, without the user's choice.
            is_base = variable == "CONDA_PREFIX" and probe.variable("CONDA_DEFAULT_ENV") == "base"
            via = f"environment {variable}" + (" (base)" if is_base else "")
            yield Candidate(path=interpreter_of(probe, probe.absolute(folder)), found_via=via)


def find_on_path(probe: Probe, wanted: str | None) -> Iterator[Candidate]:
    """Yield interpreters on PATH: by name, and for each name in the order of PATH; links once."""
    seen = set()
    first, *others = path_names(wanted, windows=probe.windows)
    for name in (first, *others):
        for path in probe.which_all(name):
            if probe.windows and _is_app_alias(probe, path):
                continue
            if name != first and _is_shim(probe, path, name):
                yield from _behind_shim(probe, name)
                continue
            # In one folder python3 is nearly always a link to python3.N. Across folders such
            # a link may be a venv, which has packages of its own.
            key = (probe.realpath(path), probe.names.parent(path))
            if key not in seen:
                seen.add(key)
                yield Candidate(path=path, found_via=f"PATH ({path})")


def path_names(wanted: str | None, *, windows: bool = False) -> tuple[str, ...]:
    """Return the commands to search for; a `wanted` that is not a version is a command.

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


def _is_shim(probe: Probe, path: str, name: str) -> bool:
    """Say whether a program is pyenv's shim for one series, such as python3.12."""
    shims = probe.join(_pyenv_folder(probe), "shims")
    return name.startswith("python3.") and probe.names.key(probe.names.parent(path)) == probe.names.key(shims)


def _behind_shim(probe: Probe, name: str) -> Iterator[Candidate]:
    """Yield pyenv's newest interpreter of a series.

    A shim starts dozens of shells, and fails for every series that is not switched on.
    """
    places = (
        place for place in find_in_stores(probe, name.removeprefix("python")) if place.found_via == "pyenv"
    )
    yield from itertools.islice(places, 1)


def _is_app_alias(probe: Probe, path: str) -> bool:
    """Say whether a program is Windows' app alias that only opens the store to install Python.

    The Python of Microsoft's store has such empty links as well, and a folder next to them.
    """
    folder = probe.names.parent(path)
    if probe.names.base(folder).lower() != "windowsapps" or probe.size(path) != 0:
        return False
    return not any(name.startswith("PythonSoftwareFoundation.Python.") for name in probe.children(folder))


def find_installed(probe: Probe, wanted: str | None) -> Iterator[Candidate]:
    """Yield registered interpreters: only Windows registers them, and its PATH often has none."""
    if probe.windows and (wanted is None or is_version(wanted)):
        for place, version in list_windows_pythons(probe):
            if wanted is None or version is None or versions_agree(wanted, version):
                yield place


def find_in_stores(probe: Probe, wanted: str | None) -> Iterator[Candidate]:
    """Yield pyenv's and uv's interpreters of a version, which need not be on PATH."""
    if not wanted or not is_version(wanted):
        return
    for via, folder, prefix in _store_folders(probe):
        names = [name for name in probe.children(folder) if _is_store_of(name, prefix, wanted)]
        for name in sorted(names, key=numbers_in, reverse=True):
            path = interpreter_of(probe, probe.join(folder, name))
            if probe.is_program(path):
                yield Candidate(path=path, found_via=via)


def _store_folders(probe: Probe) -> tuple[tuple[str, str, str], ...]:
    """Return each store: its name, its folder, and the prefix of names in it."""
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


def _is_store_of(name: str, prefix: str, wanted: str) -> bool:
    version = re.match(r"(\d+(?:\.\d+)+)(?:$|-|\+)", name.removeprefix(prefix))
    return name.startswith(prefix) and version is not None and versions_agree(wanted, version[1])


def interpreter_of(probe: Probe, folder: str) -> str:
    """Return the interpreter of an environment; the usual path if there is none.

    On Windows a venv has it in Scripts, conda and an installation at the top.
    """
    names = ("Scripts/python.exe", "python.exe") if probe.windows else ("bin/python", "bin/python3")
    paths = [probe.join(folder, name) for name in names]
    return next((path for path in paths if probe.exists(path)), paths[0])


# ---------------- Windows: the py launcher and the registry

REGISTRY = ("HKCU\\Software\\Python", "HKLM\\Software\\Python")
NO_COMPANY = ("PyLauncher",)  # PEP 514 keeps this name for the launcher's own settings
# " -V:3.12 *        C:\\Python312\\python.exe", before 3.11 " -3.9-64        C:\\..."
_LINE = re.compile(r"\s*-(?:V:)?(\S+)[\s*]+([A-Za-z]:\\.+\.exe)\s*")
_TAG_VERSION = re.compile(r"(?:^|\D)(\d+\.\d+(?:\.\d+)?)(t?)")


def list_windows_pythons(probe: Probe) -> Iterator[tuple[Candidate, str | None]]:
    """Yield each interpreter once with the version of its entry; those of the py launcher come first."""
    seen = set()
    for place, tag in (*_list_of_launcher(probe), *_list_of_registry(probe)):
        key = probe.names.key(place.path)
        if key not in seen and probe.is_program(place.path):
            seen.add(key)
            version = _TAG_VERSION.search(tag)
            yield place, version[1] + version[2] if version else None


def _list_of_launcher(probe: Probe) -> Iterator[tuple[Candidate, str]]:
    """Yield the interpreters that `py -0p` lists, newest first, with their tags."""
    py = probe.which("py")
    output = probe.run((py, "-0p")) if py else None
    for line in output.stdout.splitlines() if output and output.rc == 0 else ():
        if match := _LINE.fullmatch(line):
            yield Candidate(path=match[2], found_via="py launcher"), match[1]


def _list_of_registry(probe: Probe) -> Iterator[tuple[Candidate, str]]:
    for hive in REGISTRY:
        for company in probe.registry_keys(hive):
            if company not in NO_COMPANY:
                yield from _list_of_company(probe, f"{hive}\\{company}", f"registry ({hive[:4]})")


def _list_of_company(probe: Probe, key: str, via: str) -> Iterator[tuple[Candidate, str]]:
    for tag in sorted(probe.registry_keys(key), key=numbers_in, reverse=True):
        folder = probe.registry_value(f"{key}\\{tag}\\InstallPath")
        path = probe.registry_value(f"{key}\\{tag}\\InstallPath", "ExecutablePath")
        if not isinstance(path, str) and isinstance(folder, str):
            path = interpreter_of(probe, folder)
        if isinstance(path, str):
            yield Candidate(path=path, found_via=via), tag


# ---------------- versions

_NAMED_VERSION = re.compile(r"\d+(?:\.\d+){0,2}t?")


def is_version(wanted: str) -> bool:
    """Say whether this is 3, 3.12, 3.12.1 or (free-threaded) 3.13t, and no path."""
    return _NAMED_VERSION.fullmatch(wanted) is not None


def is_path(probe: Probe, wanted: str) -> bool:
    """Say whether this names a file or folder rather than a version or a command."""
    return (
        "/" in wanted or "\\" in wanted or (not is_version(wanted) and probe.exists(probe.absolute(wanted)))
    )


def versions_agree(wanted: str, version: str) -> bool:
    """Say whether the parts that both give are equal: 3.12 and 3.12.1 agree, 3.1 and 3.12 do not."""
    pairs = zip(wanted.rstrip("t").split("."), version.rstrip("t").split("."), strict=False)
    return all(one == other for one, other in pairs)
