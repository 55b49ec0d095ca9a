"""Fills the folders of submodules of a release that came without git, each at the commit that a row has."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from torchbuild_tasks.catalog import PinRow, load_catalog
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source.get import Task, git_dir, git_failure
from torchbuild_tasks.plan.submodules import find_pins
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.git.fetch import Wish, bring
from torchbuild_tasks.system.reading import read_text
from torchbuild_tasks.system.remove import discard, unfinished_folder

_DEPTH: Final = 3  # submodules of submodules of submodules
_PIN_REF: Final = "refs/torchbuild/pin"


def fill(task: Task, root: Path) -> Path:
    """Bring what this folder's plan needs of third_party and the folder lacks.

    Raises:
        SourceError: nothing is missing, so that only git could do something here; or no row has the commit
            of a folder; or one is not available. What was brought stays.
        TreeBusy: another command works on it.
    """
    lacking = task.lacking(root)
    if not lacking.missing:
        git_dir(task.git(root))  # says that this is not a checkout
    version = None
    with contextlib.suppress(OSError):
        version = read_text(root / "version.txt").strip()
    pins = find_pins(load_catalog(), version)
    with lock.hold(root, "source update"):
        for _ in range(_DEPTH):
            if unknown := [path for path in lacking.missing if path not in pins]:
                raise SourceError(
                    f"{root} is not a git checkout, and it is not known which commits torch {version} has of "
                    f"{len(unknown)} folders.",
                    looked=tuple(unknown),
                    next_step=lacking.fix,
                )
            _bring_all(task, root, [pins[path] for path in lacking.missing])
            lacking = task.lacking(root)
            if not lacking.missing:
                break
    return root


def _bring_all(task: Task, root: Path, pins: Sequence[PinRow]) -> None:
    failed: dict[str, SourceError] = {}
    for pin in pins:
        try:
            _bring(task, root, pin)
        except SourceError as error:
            failed[pin.path] = error
    if failed:
        first = next(iter(failed.values()))
        raise SourceError(
            f"{len(failed)} of {len(pins)} folders could not be fetched: {', '.join(failed)}. "
            "The others are there, and the same command goes on.",
            looked=first.looked,
            next_step=first.next_step,
        )


def _bring(task: Task, root: Path, pin: PinRow) -> None:
    """Lay out one, which is there whole or not at all."""
    target = root / pin.path
    with unfinished_folder(target, SourceError) as part:
        git = task.git(part)
        git.run("init", "--quiet")
        if task.facts.windows:
            git.run("config", "--local", "core.longpaths", "true")
        wish = Wish(url=pin.url, what=pin.commit, into=_PIN_REF, commit=pin.commit)
        outcome = bring(git, wish, task.access(root), target.name)
        if outcome.rc != 0:
            raise git_failure(f"{pin.path} could not be fetched.", outcome, pin.url)
        git.run("checkout", "--quiet", "--detach", pin.commit)
        discard(part / ".git")
        with files.translate_errors(SourceError, target):
            if target.is_dir():
                target.rmdir()  # it is empty
            files.replace(part, target)
