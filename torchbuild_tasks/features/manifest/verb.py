"""A recorded build, looked at once more here and now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from torchbuild_tasks.context import Sight, decide, look
from torchbuild_tasks.features.manifest.choose import pinned, pins, request_of, settings_of
from torchbuild_tasks.model import BuildPlan
from torchbuild_tasks.model.record import Manifest
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.values import replace

_SAME = "Nothing that a manifest knows differs.\n"
_REPLAYED = (
    "This replay differs in nothing from the recorded build; its env file is the same, byte for byte.\n"
)
_PATH = 70  # letters of a value before it gets a line of its own


class Differs(Protocol):
    """One line of a comparison."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def there(self) -> str: ...
    @property
    def here(self) -> str: ...
    @property
    def remedy(self) -> str: ...


class Replayed(Protocol):
    """What `flow.replay` found."""

    @property
    def differences(self) -> Sequence[Differs]: ...
    @property
    def not_carried(self) -> Sequence[str]: ...


def compare_text(found: Sequence[Differs], names: tuple[str, str]) -> str:
    """Every difference by group; `-` stands for what one of them lacks."""
    head = f"- {names[0]}\n+ {names[1]}\n"
    return head + ("".join(_groups(found)) if found else _SAME)


def replay_text(replay: Replayed) -> str:
    """What the replay could not make the same, each with what would."""
    number = len(replay.differences)
    if number:
        what = "One difference is" if number == 1 else f"{number} differences are"
        text = f"\n{what} left (- there, + here, -> what would remove it)\n" + "".join(
            _groups(replay.differences)
        )
    else:
        text = f"\n{_REPLAYED}"
    if replay.not_carried:
        text += f"Not in the manifest, or not known here: {', '.join(replay.not_carried)}\n"
    return text


def _groups(found: Iterable[Differs]) -> Iterator[str]:
    for group, members in groupby(found, key=lambda each: each.group):
        yield f"\n{group}\n"
        for each in members:
            yield from _lines(each)


def _lines(each: Differs) -> Iterator[str]:
    yield f"  {each.name}\n    - {each.there}\n    + {each.here}\n"
    if each.remedy:
        yield f"    -> {each.remedy}\n"


# ----------------


def look_again(request: BuildRequest, manifest: Manifest, source: str) -> tuple[Sight, BuildPlan]:
    """What a recorded build starts from, here and now, and its plan brought as near to that one as can be."""
    sight = look(request_of(manifest, request, source), settings_of(manifest))
    sight = replace(sight, facts=pinned(sight.facts, manifest))
    made_plan = decide(sight)
    if more := pins(manifest, made_plan, sight.facts):
        asked = replace(sight.request, set=(*sight.request.set, *more))
        sight = replace(sight, request=asked)
        made_plan = decide(sight)
    return sight, made_plan
