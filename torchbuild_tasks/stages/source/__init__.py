"""The `source` verb: checkouts of PyTorch got, moved on, looked at, mended, and mirrored."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.effects.source import place
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.model.source import SourceReport
from torchbuild_tasks.stages.source.task import URL, Needs, Task
from torchbuild_tasks.system.git import fetch as fetching
from torchbuild_tasks.system.git.transfer import settings

__all__ = ["URL", "Needs", "Task", "run_source", "settings"]


def run_source(task: Task, named: Path | None) -> SourceReport:
    """Do what the action of the request says.

    Args:
        task: the action.
        named: the checkout that was named, or that the command runs in; None when there is none.

    Raises:
        SourceError: it cannot be done; nothing of the user's was changed.
    """
    request = task.request
    match request.action:
        case "get":
            return _after(task, _got(task, named))
        case "update":
            from torchbuild_tasks.stages.source.get import update

            return _after(task, update(task, request.ref, _there(named)))
        case "reset":
            from torchbuild_tasks.stages.source.reset import reset_third_party

            removed, kept = reset_third_party(task, _there(named))
            return SourceReport(action="reset", removed=removed, kept=kept)
        case "mirror":
            from torchbuild_tasks.stages.source.mirror import mirror

            mirror(task, request.ref)
            return SourceReport(action="mirror", mirrors=_mirrors(task))
    return _status(task, named)


def _got(task: Task, named: Path | None) -> Path:
    from torchbuild_tasks.stages.source.archive import ARCHIVES, from_archive
    from torchbuild_tasks.stages.source.get import get

    word = task.request.ref
    if word and word.lower().endswith(tuple(ARCHIVES)):
        return from_archive(task, word, named)
    return get(task, word, named)


def _after(task: Task, root: Path) -> SourceReport:
    from torchbuild_tasks.stages.source.status import describe

    return SourceReport(action=str(task.request.action), checkouts=(describe(task, root, whole=False),))


def _status(task: Task, named: Path | None) -> SourceReport:
    from torchbuild_tasks.stages.source.status import describe

    if named is not None and not named.is_dir() and place.growing(named).is_dir():
        return SourceReport(action="status", unfinished=(str(place.growing(named)),))
    if named is not None:
        _there(named)
        parent = (named.parent, *((task.store / place.SOURCES,)))
        return SourceReport(
            action="status",
            checkouts=(describe(task, named),),
            mirrors=_mirrors(task),
            unfinished=tuple(
                str(path) for folder in dict.fromkeys(parent) for path in place.unfinished(folder)
            ),
        )
    return SourceReport(
        action="status",
        checkouts=tuple(describe(task, path, whole=False) for path in place.checkouts(task.store)),
        mirrors=_mirrors(task),
        unfinished=tuple(str(path) for path in place.unfinished(task.store / place.SOURCES)),
    )


def _mirrors(task: Task) -> tuple[tuple[str, str], ...]:
    found = fetching.mirrors_in(task.store / fetching.MIRRORS)
    return tuple((url, str(folder)) for url, folder in found)


def _there(named: Path | None) -> Path:
    if named is not None and named.is_dir():
        return named
    if named is not None:
        raise SourceError(f"There is no folder {named}.", next_step="Get a checkout there: source get WORD")
    raise SourceError(
        "The current folder is not a checkout of PyTorch.",
        looked=(str(Path.cwd()),),
        next_step="Name one: --source PATH, or get one: source get WORD",
    )
