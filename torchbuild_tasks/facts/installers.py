"""Settings of pip and uv that decide where packages come from and go: variables, and pip's files."""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import InstallerSetting

# pip: every option is a variable and a line of its files, too (pip.pypa.io, topics/configuration).
# uv: docs.astral.sh/uv/reference/environment.
_OF_PIP: Final = (
    *("no-index", "find-links", "target", "prefix", "root", "user"),
    *("constraint", "build-constraint", "requirement"),
)
_OF_UV: Final = (
    *("UV_NO_INDEX", "UV_OFFLINE", "UV_FIND_LINKS"),
    *("UV_CONSTRAINT", "UV_BUILD_CONSTRAINT", "UV_OVERRIDE"),
)
_OF_FILES: Final = ("CONSTRAINT", "REQUIREMENT", "OVERRIDE")  # what variables end with whose values are files
_SECRET: Final = "_FIND_LINKS"  # an address may have a password
_SECTIONS: Final = ("install", "global")  # the first counts


def look_at_installers(probe: Probe) -> tuple[InstallerSetting, ...]:
    """Return the settings that are set: those of the environment, and of pip's files what it does not say."""
    names = (*map(_variable, _OF_PIP), *_OF_UV)
    found = {name: _setting(probe, name, value, "") for name in names if (value := probe.variable(name))}
    for path in places_of_pip(probe):
        for option, value in _lines(probe, path):
            name = _variable(option)
            found.setdefault(name, _setting(probe, name, value, path))
    return tuple(found.values())


def _variable(option: str) -> str:
    return f"PIP_{option.upper().replace('-', '_')}"


def _setting(probe: Probe, name: str, value: str, place: str) -> InstallerSetting:
    paths = [word for word in value.split() if "://" not in word] if name.endswith(_OF_FILES) else []
    gone = tuple(path for path in paths if not probe.exists(probe.absolute(path)))
    shown = "set" if name.endswith(_SECRET) else value[:200]
    return InstallerSetting(name=name, value=shown, place=place, gone=gone)


def places_of_pip(probe: Probe) -> Iterator[str]:
    """Yield pip's files, the strongest first, without that of a venv, which is made for the build.

    The file of PIP_CONFIG_FILE stands in for the user's, and the null device for all (pip 26.3,
    _internal/configuration.py: OVERRIDE_ORDER, iter_config_files).
    """
    named = probe.variable("PIP_CONFIG_FILE")
    if named.casefold() == ("nul" if probe.windows else "/dev/null"):
        return
    if named:
        yield named
    home = probe.names.home(probe.environ)
    if not probe.exists(named):
        yield from _places_of_user(probe, home or "")
    if probe.windows:
        yield probe.join(probe.variable("PROGRAMDATA"), "pip", "pip.ini")
        return
    yield "/etc/pip.conf"
    for folder in reversed((probe.variable("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")):
        yield probe.join(folder, "pip/pip.conf")


def _places_of_user(probe: Probe, home: str) -> Iterator[str]:
    if probe.windows:
        yield probe.join(probe.variable("APPDATA"), "pip", "pip.ini")
    elif folder := probe.variable("XDG_CONFIG_HOME") or (home and probe.join(home, ".config")):
        yield probe.join(folder, "pip/pip.conf")
    if home:
        yield probe.join(home, *(("pip", "pip.ini") if probe.windows else (".pip", "pip.conf")))


def _lines(probe: Probe, path: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser()
    parser.optionxform = _plain_name  # type: ignore[method-assign, assignment]
    try:
        parser.read_string(probe.read(path) or "")
    except configparser.Error:
        return  # pip itself says so
    for section in _SECTIONS:
        for option in _OF_PIP:
            if value := parser.get(section, option, fallback=""):
                yield option, value


def _plain_name(option: str) -> str:
    return option.lower().replace("_", "-")
