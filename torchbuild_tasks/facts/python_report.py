"""Print the facts of an interpreter as a line of JSON: `python -I -B <this file>`.

Stands alone: it is never imported by the package, imports nothing of ours, and keeps to
the syntax of Python 3.6, because any interpreter may run it.
"""
# Every plan runs this for each interpreter: json, re, importlib.util and struct would be half of its time
# (`python -X importtime`), and pathlib as long as everything else here.
# ruff: noqa: PTH110, PTH112, PTH118, PTH122, PTH123, PTH208

import os
import site
import sys
import sysconfig
from importlib.machinery import PathFinder

_NAMES = {"cpython": "CPython", "pypy": "PyPy", "graalpy": "GraalPy"}
# Every file and folder on which the report depends, there or not: it is kept while they are the same.
_reads = []  # type: list[str]


def _place(*parts: str) -> str:
    """Return a path that is about to be looked at."""
    path = os.path.join(*parts)
    _reads.append(path)
    return path


def report() -> "dict[str, object]":
    """Return the facts of `model.Python` that only the interpreter itself knows."""
    base = getattr(sys, "real_prefix", None) or sys.base_prefix
    kind = _environment(base)
    stdlib = sysconfig.get_path("stdlib")
    _place(sys.prefix, "pyvenv.cfg")
    include, headers = _headers()
    packages, torch_from = _packages()
    return {
        "executable": sys.executable,
        "version": sys.version.split()[0],
        "implementation": _NAMES.get(sys.implementation.name, sys.implementation.name),
        "abi": _abi(),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "environment": kind,
        # pip applies EXTERNALLY-MANAGED only outside of a venv, although a venv has the same stdlib.
        "externally_managed": kind != "venv" and os.path.exists(_place(stdlib, "EXTERNALLY-MANAGED")),
        "prefix": sys.prefix,
        "scripts": sysconfig.get_path("scripts"),
        "include": include,
        "headers": headers,
        "venv": all(PathFinder.find_spec(name) is not None for name in ("venv", "ensurepip")),
        "debug_library": _debug_library(base),
        "packages": packages,
        "torch_from": torch_from,
        "half_torch": _half_torch(),
        "reads": _reads,
    }


def _environment(base: str) -> str:
    if os.path.isdir(_place(sys.prefix, "conda-meta")):  # no venv has that folder
        return "conda"
    return "base" if sys.prefix == base else "venv"


def _abi() -> "str | None":
    soabi = sysconfig.get_config_var("SOABI")
    if soabi:
        return str(soabi)
    from importlib.machinery import EXTENSION_SUFFIXES

    parts = EXTENSION_SUFFIXES[0].split(".") if EXTENSION_SUFFIXES else []
    return parts[1] if len(parts) == 3 else None


def _headers() -> "tuple[str, bool]":
    """Return the folder for Python.h; distributions patch the result of the first query."""
    folders = [sysconfig.get_path("include"), sysconfig.get_config_var("INCLUDEPY")]
    for folder in folders:
        if folder and os.path.exists(_place(folder, "Python.h")):
            return folder, True
    return folders[0], False


def _debug_library(base: str) -> "bool | None":
    """Say whether python3xx_d.lib exists, which a Debug build links; None on other systems than Windows."""
    if os.name != "nt":
        return None
    threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    name = f"python{sys.version_info[0]}{sys.version_info[1]}{threads}_d.lib"
    return os.path.exists(os.path.join(base, "libs", name))


def _packages() -> "tuple[dict[str, str], str | None]":
    """Return all distributions by folder names: reading their metadata would take seconds."""
    packages = {}  # type: dict[str, str]
    torch_from = None
    for folder in sys.path:
        try:
            names = os.listdir(_place(folder or "."))
        except OSError:
            continue
        for name in sorted(names):
            if name.endswith(".pth") or name == "sitecustomize.py":
                _place(folder, name)
            distribution = _distribution(folder, name)
            if distribution is None or distribution[0] in packages:
                continue
            packages[distribution[0]] = distribution[1]
            if distribution[0] == "torch":
                torch_from = torch_from or _editable(folder, name)
        if "torch.egg-link" in names:
            torch_from = torch_from or _linked(folder)
    return packages, torch_from


def _half_torch() -> "str | None":
    """Return the folder of a torch without a distribution, as a killed pip leaves it."""
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        place = os.path.join(folder, "torch")
        names = os.listdir(folder) if os.path.isdir(place) else ["torch-"]
        if not any(name.startswith(("torch-", "torch.egg-info")) for name in names):
            return place
    return None


def _linked(site_packages: str) -> "str | None":
    """Return the folder of the torch of an egg-link; a package next to the link takes precedence."""
    for folder in sys.path:
        if os.path.exists(_place(folder, "torch", "__init__.py")):
            return None if folder == site_packages else folder
    return _first_line(_place(site_packages, "torch.egg-link"))


def _distribution(folder: str, name: str) -> "tuple[str, str] | None":
    """Return normalised name and version of a *.dist-info, *.egg-info or *.egg entry."""
    stem, kind = os.path.splitext(name)
    # pip renames folders to ~NAME before removal; an interrupted one leaves them.
    if kind not in (".dist-info", ".egg-info", ".egg") or name.startswith("~"):
        return None
    parts = stem.split("-")
    at = next((at for at in range(1, len(parts)) if parts[at][:1].isdigit()), len(parts))  # NAME-VERSION-TAG
    version = parts[at] if at < len(parts) else _version_inside(os.path.join(folder, name))
    words = "-".join(parts[:at]).replace("_", "-").replace(".", "-").lower().split("-")
    return ("-".join(filter(None, words)), version) if version else None


def _version_inside(path: str) -> str:
    """Return the version in an egg-info's PKG-INFO: a develop install's has none in its name."""
    try:
        with open(_place(path, "PKG-INFO"), encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("Version:"):
                    return line[8:].strip()
    except OSError:
        pass
    return ""


def _editable(folder: str, name: str) -> "str | None":
    """Return the source of an editable install: by PEP 610, or by the folder in a .pth file."""
    if name.endswith(".egg-info"):
        installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")] + site.getsitepackages()
        return None if folder in installed else folder
    import json

    try:
        with open(_place(folder, name, "direct_url.json"), encoding="utf-8") as file:
            record = json.load(file)
        url = str(record["url"])
        editable = record["dir_info"]["editable"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not editable or not url.startswith("file://"):
        return None
    path = url[len("file://") :]
    if os.name == "nt":
        from urllib.request import url2pathname

        return url2pathname(path)
    from urllib.parse import unquote  # the same as url2pathname on POSIX, which would import an HTTP client

    return unquote(path)


def _first_line(path: str) -> "str | None":
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip() or None
    except OSError:
        return None


def _as_json(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_as_json(key)}: {_as_json(value[key])}" for key in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_json, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else _escape(c) for c in value) + '"'
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


def _escape(character: str) -> str:
    """Return a character as the one or two units of UTF-16 that JSON has for it."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


if __name__ == "__main__":
    # On a line of its own: a sitecustomize may have printed before us.
    sys.stdout.write("\n" + _as_json(report()) + "\n")
