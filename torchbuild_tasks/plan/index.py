"""Say what the settings of pip and uv do to an install: no index, packages elsewhere, a missing file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.model import Choice, Finding, Status
from torchbuild_tasks.plan.question import Question

# What pip and uv take for yes (pip's strtobool, clap's boolish).
_YES: Final = ("y", "yes", "t", "true", "on", "1")
_OF_PIP: Final = ("PIP_NO_INDEX",)
_OF_UV: Final = ("UV_NO_INDEX", "UV_OFFLINE")
# pip's options of where packages go; PIP_USER is one of them only outside of a venv.
_ELSEWHERE: Final = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT")
_USER: Final = "PIP_USER"
_FOLDERS: Final = {_OF_PIP: "PIP_FIND_LINKS", _OF_UV: "UV_FIND_LINKS"}


def uv_of(question: Question) -> str | None:
    """Return the uv that installs; None where there is none, or --installer wants pip."""
    if question.value("installer", "auto") == "pip":
        return None
    uv = question.facts.tool("uv")
    return uv.path if uv else None


def no_index(question: Question) -> Choice | None:
    """Return the variable by which the installer asks no index; None without one."""
    for name in _names(question):
        asked = _setting(question, name)
        if asked and asked.value.strip().casefold() in _YES:
            return asked
    return None


def has_folder(question: Question) -> bool:
    """Say whether a variable names a folder of packages, in which this tool does not look."""
    name = _setting(question, _FOLDERS[_names(question)])
    return name is not None and bool(name.value.strip())


def _setting(question: Question, name: str) -> Choice | None:
    """Return a setting of pip or uv: as a build variable, else as the installer itself would find it."""
    if asked := question.decided.get(name):
        return asked
    found = next((each for each in question.facts.installers if each.name == name), None)
    if found is None:
        return None
    because = found.place or f"{name} in the environment"
    return Choice(name=name, value=found.value, because=because, source="environment")


def check_settings(question: Question, missing: tuple[str, ...], *, in_venv: bool) -> Iterator[Finding]:
    """Report settings with which an install goes elsewhere, or ends; pip also installs torch itself."""
    uv = uv_of(question) is not None
    for name in (*_ELSEWHERE, _USER):
        asked = _setting(question, name)
        if asked is None or not asked.value.strip() or (name == _USER and not _is_user(asked, in_venv)):
            continue
        text = f"{name}={asked.value} ({asked.because}): packages go there, not into the Python of the build"
        if name == _USER:
            text = (
                f"{name}={asked.value} ({asked.because}): pip installs nothing for a user in a venv, and ends"
            )
        yield _report(text, unset(question, name), stops=bool(missing) and not uv)
    for each in question.facts.installers:
        if each.gone and (uv or not each.name.startswith("UV_")):
            text = (
                f"{each.name} ({each.place or 'in the environment'}) names {each.gone[0]}, which is not there"
            )
            stops = bool(missing) and uv == each.name.startswith("UV_")
            yield _report(text, unset(question, each.name), stops=stops)


def _is_user(asked: Choice, in_venv: bool) -> bool:
    return in_venv and asked.value.strip().casefold() in _YES


def unset(question: Question, name: str) -> str:
    """Return how a setting is taken away: a line of a file, or a variable."""
    found = next((each for each in question.facts.installers if each.name == name), None)
    if found and found.place:
        option = name.removeprefix("PIP_").lower().replace("_", "-")
        return f"Take {option} out of {found.place}."
    return f"Unset {name}."


def _report(text: str, fix: str, *, stops: bool) -> Finding:
    status: Status = "error" if stops else "warn"
    return Finding(id="requirements", status=status, text=text, fix=fix)


def _names(question: Question) -> tuple[str, ...]:
    return _OF_UV if uv_of(question) else _OF_PIP


def asks_index(question: Question) -> bool:
    """Say whether the installer may ask an index."""
    return not question.given("offline") and no_index(question) is None
