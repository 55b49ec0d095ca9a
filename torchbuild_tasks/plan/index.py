"""Say whether packages can be had from an index: --offline, or a variable of pip or uv, forbids it."""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.model import Choice
from torchbuild_tasks.plan.question import Question

# What pip and uv take for yes (pip's strtobool, clap's boolish).
_YES: Final = ("y", "yes", "t", "true", "on", "1")
_OF_PIP: Final = ("PIP_NO_INDEX",)
_OF_UV: Final = ("UV_NO_INDEX", "UV_OFFLINE")
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
        asked = question.decided.get(name)
        if asked and asked.value.strip().casefold() in _YES:
            return asked
    return None


def has_folder(question: Question) -> bool:
    """Say whether a variable names a folder of packages, in which this tool does not look."""
    name = question.decided.get(_FOLDERS[_names(question)])
    return name is not None and bool(name.value.strip())


def _names(question: Question) -> tuple[str, ...]:
    return _OF_UV if uv_of(question) else _OF_PIP


def asks_index(question: Question) -> bool:
    """Say whether the installer may ask an index."""
    return not question.given("offline") and no_index(question) is None
