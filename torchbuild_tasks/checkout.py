"""Find the checkout of a verb; without one, use or fetch the release that --torch names.

Outside of a checkout `--torch 2.9.1` means a checkout of that version in the tool's own store.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from torchbuild_tasks.context import fetching_of, look, needed_submodules
from torchbuild_tasks.model.source import Lacking
from torchbuild_tasks.plan.decisions import decide_build
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.submodules import Needs
from torchbuild_tasks.plan.torch_ref import wanted_torch
from torchbuild_tasks.system.signals import interruptible

if TYPE_CHECKING:
    from torchbuild_tasks.build.work import Reporter
    from torchbuild_tasks.features.source.get import Task


def use_stored_checkout(question: Question) -> Question:
    """Add the stored checkout of the torch that --torch names to the question, if there is one."""
    stored = _find_stored_checkout(question)
    return _look_in(question, stored[1]) if stored and stored[1].is_dir() else question


def fetch_checkout(question: Question, report: Reporter) -> Question:
    """Add the stored checkout of the torch that --torch names to the question; fetch it if it is absent."""
    stored = _find_stored_checkout(question)
    if stored is None:
        return question
    ref, folder = stored
    if not folder.is_dir():
        from torchbuild_tasks.features.source.get import get

        with interruptible():
            folder = get(source_task(question, report), ref, None)
    return _look_in(question, folder)


def _look_in(question: Question, root: Path) -> Question:
    return look(dataclasses.replace(question.request, source=str(root), name=None), question.settings)


def _find_stored_checkout(question: Question) -> tuple[str, Path] | None:
    """Return the ref that --torch means outside of a checkout, and its folder in the store."""
    if question.facts.tree.version or question.given("source") or question.request.facts:
        return None
    if question.settings.build or not question.given("torch"):
        return None
    from torchbuild_tasks.features.source.get import store_folder

    wanted = wanted_torch(question)
    assert wanted is not None
    ref = wanted.ref.ref
    name = ref[:12] if wanted.ref.kind == "commit" else ref
    return ref, store_folder(fetching_of(question).store, _repository(question), name)


def named_checkout(question: Question) -> Path | None:
    """Return the checkout for `source`: the one that was named, else the current folder.

    A new one goes into the current folder only when that was named.
    """
    named = question.given("source")
    if not named and (question.request.action == "get" or question.facts.tree.version is None):
        return None
    return Path(question.facts.tree.root)


def source_task(question: Question, report: Reporter) -> Task:
    """Return the task of `source`: the address, the mirrors, and the submodules that the plan needs."""
    from torchbuild_tasks.features.source.get import Task
    from torchbuild_tasks.system.git.transfer import git_settings

    wanted = wanted_torch(question) if question.request.ref is None else None

    def needed(root: Path) -> Callable[[str], bool]:
        return needed_submodules(_look_in(question, root))

    def lacking(root: Path) -> Lacking:
        there = _look_in(question, root)
        if there.facts.tree.problem:
            return Lacking()
        return Needs(there, decide_build(there).variables).lacking()

    return Task(
        request=question.request,
        facts=question.facts,
        report=report,
        store=fetching_of(question).store,
        url=_repository(question),
        config=git_settings(question.settings.mirrors),
        needs=needed,
        lacking=lacking,
        newest=wanted.ref.ref if wanted else "latest",
    )


def _repository(question: Question) -> str:
    from torchbuild_tasks.features.source.get import URL

    return question.value("url", URL)
