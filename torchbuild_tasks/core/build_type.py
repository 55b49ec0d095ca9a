"""The CMake build type of a build, and which layer decides it."""

from __future__ import annotations

from collections.abc import Iterator

from torchbuild_tasks.core.question import LAYERS, Question
from torchbuild_tasks.core.rows import preset_rows
from torchbuild_tasks.core.variables import decide, is_off
from torchbuild_tasks.model import Choice
from torchbuild_tasks.values import replace


def choose_build_type(question: Question) -> Choice:
    """The CMake build type: --build-type, else CMAKE_BUILD_TYPE, DEBUG, REL_WITH_DEB_INFO, else the preset's.

    The layer comes first; within one it is the order of PyTorch's own env.py.
    """
    asked = [choice for choice in _asked_types(question) if choice]
    if asked:
        return min(asked, key=lambda choice: LAYERS.index(choice.source))
    preset = question.preset.value
    rows = preset_rows(question.catalog, preset, question.facts.host.os)
    default = rows[-1].build_type if rows else "Release"
    return Choice(name="build type", value=default, because=f"preset {preset}", source="preset")


def _asked_types(question: Question) -> Iterator[Choice | None]:
    """What each way of naming a build type says, in upstream's order within one layer."""
    if given := question.given("build_type"):
        yield Choice(name="build type", value=str(given[0]), because=given[2], source=given[1])
    if asked := decide(question, "CMAKE_BUILD_TYPE"):
        yield replace(asked, name="build type")
    for name, value in (("DEBUG", "Debug"), ("REL_WITH_DEB_INFO", "RelWithDebInfo")):
        asked = decide(question, name)
        if asked and asked.value and not is_off(asked.value):
            because = f"{name}={asked.value}: {asked.because}"
            yield Choice(name="build type", value=value, because=because, source=asked.source)
