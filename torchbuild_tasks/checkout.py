"""Which checkout a verb is about, and ours where there is none, which is got first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.context import Sight, look, network
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.signals import interruptible
from torchbuild_tasks.values import replace

if TYPE_CHECKING:
    from torchbuild_tasks.features.source.get import Task


def here(sight: Sight) -> Sight:
    """The sight; outside of a checkout that of ours of the torch that --torch names, where it was got."""
    ours = _ours(sight)
    return _on(sight, ours[1]) if ours and ours[1].is_dir() else sight


def have_source(sight: Sight, report: Reporter) -> Sight:
    """The same, and ours is got first where it is not there."""
    ours = _ours(sight)
    if ours is None:
        return sight
    if not ours[1].is_dir():
        from torchbuild_tasks.features.source.get import get

        with interruptible():
            return _on(sight, get(source_task(sight, report), ours[0], None))
    return _on(sight, ours[1])


def _on(sight: Sight, root: Path) -> Sight:
    return look(replace(sight.request, source=str(root), name=None), sight.settings)


def _ours(sight: Sight) -> tuple[str, Path] | None:
    """The torch that is asked for where there is no checkout, and the folder of ours that is for it."""
    question = _question(sight)
    if sight.facts.tree.version or question.given("source") or sight.request.facts:
        return None
    if sight.settings.build or not question.given("torch"):
        return None
    from torchbuild_tasks.features.source.get import ours
    from torchbuild_tasks.plan.torch_ref import wanted_torch

    wanted = wanted_torch(question)
    assert wanted is not None
    ref = wanted.ref.ref
    name = ref[:12] if wanted.ref.kind == "commit" else ref
    return ref, ours(network(sight).store, _repository(sight), name)


def named_checkout(sight: Sight) -> Path | None:
    """The checkout that an action on sources is about: the one that was named, else the current folder.

    A new one is got into the current folder only when that is named.
    """
    named = _question(sight).given("source")
    if not named and (sight.request.action == "get" or sight.facts.tree.version is None):
        return None
    return Path(sight.facts.tree.root)


def source_task(sight: Sight, report: Reporter) -> Task:
    """An action on sources: where from, with which mirrors of hosts, and what a checkout's plan needs."""
    from torchbuild_tasks.features.source.get import Task
    from torchbuild_tasks.plan.fit import does_without
    from torchbuild_tasks.plan.torch_ref import wanted_torch
    from torchbuild_tasks.system.git.transfer import settings

    wanted = wanted_torch(_question(sight)) if sight.request.ref is None else None

    def needs(root: Path) -> Callable[[str], bool]:
        there = _on(sight, root)
        question = _question(there)
        return lambda path: bool(there.facts.tree.problem) or not does_without(question, path)

    return Task(
        request=sight.request,
        facts=sight.facts,
        report=report,
        store=network(sight).store,
        url=_repository(sight),
        config=settings(sight.settings.mirrors),
        needs=needs,
        newest=wanted.ref.ref if wanted else "latest",
    )


def _repository(sight: Sight) -> str:
    from torchbuild_tasks.features.source.get import URL

    return str(sight.request.url or sight.settings.values.get("url") or URL)


def _question(sight: Sight) -> Question:
    return Question(sight.request, sight.facts, sight.catalog, sight.settings)
