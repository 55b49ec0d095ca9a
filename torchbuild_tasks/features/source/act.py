"""Run the actions of `source`, and describe checkouts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.facts.tree import look_at_version
from torchbuild_tasks.features.source import places
from torchbuild_tasks.features.source.archive import ARCHIVES, fill_submodules, unpack_archive
from torchbuild_tasks.features.source.get import Task, get, update
from torchbuild_tasks.features.source.mirror import fill_mirrors
from torchbuild_tasks.features.source.reset import reset_third_party
from torchbuild_tasks.model.source import Checkout, Kind, Lacking, ModuleState, SourceReport
from torchbuild_tasks.system import files
from torchbuild_tasks.system.git import cut_off, submodules
from torchbuild_tasks.system.git.checkout import changed_files
from torchbuild_tasks.system.git.fetch import MIRRORS, is_shallow, lost_alternates, mirrors_in
from torchbuild_tasks.system.git.run import Git, unread_error
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace


def run_source(task: Task, named: Path | None) -> SourceReport:
    """Run the action of the request.

    Args:
        named: the checkout that was named, or that the command runs in; None when there is none.

    Raises:
        SourceError: it cannot be done; nothing of the user's was changed.
    """
    request = task.request
    match request.action:
        case "get":
            return _report_on(task, _get(task, named))
        case "update":
            return _report_on(task, _update(task, _require_folder(named)))
        case "reset":
            removed, changed = reset_third_party(task, _require_folder(named))
            return SourceReport(action="reset", removed=removed, kept=changed)
        case "mirror":
            fill_mirrors(task, request.ref)
            return SourceReport(action="mirror", mirrors=_mirrors(task))
    return _status(task, named)


def _get(task: Task, named: Path | None) -> Path:
    word = task.request.ref
    if word and word.lower().endswith(tuple(ARCHIVES)):
        return unpack_archive(task, word, named)
    return get(task, word, named)


def _update(task: Task, root: Path) -> Path:
    if unread := unread_error(task.git(root)):
        raise unread
    if task.request.ref is None and not _is_top(task.git(root)):
        return fill_submodules(task, root)
    return update(task, task.request.ref, root)


def _report_on(task: Task, root: Path) -> SourceReport:
    return SourceReport(action=str(task.request.action), checkouts=(describe(task, root, details=False),))


def _status(task: Task, named: Path | None) -> SourceReport:
    if named is not None and not named.is_dir() and places.temporary_checkout(named).is_dir():
        return SourceReport(action="status", unfinished=(str(places.temporary_checkout(named)),))
    folders = {task.store / places.SOURCES: None}
    if named is not None:
        checkouts = [describe(task, _require_folder(named))]
        folders = {named.parent: None} | folders
    else:
        checkouts = [describe(task, path, details=False) for path in places.checkouts(task.store)]
    return SourceReport(
        action="status",
        checkouts=tuple(checkouts),
        mirrors=_mirrors(task),
        unfinished=tuple(str(path) for folder in folders for path in places.unfinished_folders(folder)),
    )


def _mirrors(task: Task) -> tuple[tuple[str, str], ...]:
    return tuple((url, str(folder)) for url, folder in mirrors_in(task.store / MIRRORS))


def _require_folder(named: Path | None) -> Path:
    if named is not None and named.is_dir():
        return named
    if named is not None:
        raise SourceError(
            f"There is no folder {named}.",
            next_step=f"Get one there: torchbuild source get WORD --source {as_word(named)}",
        )
    raise SourceError(
        "The current folder is not a checkout of PyTorch.",
        looked=(str(Path.cwd()),),
        next_step="Name one: --source PATH, or get one: source get WORD",
    )


# ---------------- `source status`: the kind, origin and problems of a checkout


def describe(task: Task, root: Path, *, details: bool = True) -> Checkout:
    """Look at a checkout; with `details` also for changes in every submodule."""
    git = task.git(root)
    note = places.read_note(root)
    version = look_at_version(os.path.realpath(root))
    lacking = task.lacking(root) if details else Lacking()
    if not _is_top(git):
        unread = unread_error(git)
        return Checkout(
            path=str(root),
            kind="archive" if note else "folder",
            version=version,
            url=note.url if note else "",
            modules=tuple(_empty(lacking)),
            fix=lacking.fix,
            notes=(" ".join((unread.what, *unread.looked, unread.next_step)),)
            if unread
            else ("it is not a git checkout: get another version beside it",),
        )
    return Checkout(
        path=str(root),
        kind=_kind(git),
        version=version,
        url=(note.url if note else git.output("remote", "get-url", "origin")) or "",
        commit=git.output("rev-parse", "--verify", "--quiet", "HEAD"),
        at=_at(git),
        shallow=is_shallow(git),
        changed=changed_files(git) if details else (),
        modules=_states(task, git, lacking) if details else (),
        fix=lacking.fix,
        cut_off=cut_off.was_cut_off(root / files.STATE_DIR) or bool(note and note.moving),
        lost=lost_alternates(git),
        notes=_notes(task, git),
    )


def _is_top(git: Git) -> bool:
    output = git.output("rev-parse", "--show-toplevel")
    return output is not None and Path(output).samefile(git.folder)


def _kind(git: Git) -> Kind:
    """Return the kind of checkout; `.git` as a file means a worktree, or a submodule."""
    if (git.folder / ".git").is_dir():
        return "clone"
    around = git.output("rev-parse", "--show-superproject-working-tree")
    return "submodule" if around else "worktree"


def _at(git: Git) -> str:
    return (
        git.output("symbolic-ref", "--quiet", "--short", "HEAD")
        or git.output("describe", "--tags", "--exact-match")
        or ""
    )


def _states(task: Task, git: Git, lacking: Lacking) -> tuple[ModuleState, ...]:
    """Return the state of every submodule; of empty ones by the plan."""
    needed = task.needs(git.folder)
    states = {module.top: _state(git, module, needed) for module in submodules.walk(git)}
    for state in _empty(lacking):
        there = states.get(state.path)
        states[state.path] = replace(state, wanted=there.wanted) if there else state
    return tuple(states.values())


def _empty(lacking: Lacking) -> Iterator[ModuleState]:
    for path in lacking.missing:
        yield ModuleState(path=path, wanted="", there=None, state="missing")
    for path in lacking.unneeded:
        yield ModuleState(path=path, wanted="", there=None, state="unneeded")


def _state(git: Git, module: submodules.Module, needed: Callable[[str], bool]) -> ModuleState:
    commit = submodules.head(module, git.config)
    if commit is None:
        return ModuleState(
            path=module.top,
            wanted=module.commit,
            there=None,
            state="missing" if needed(module.top) else "unneeded",
        )
    changed = changed_files(module.git(git.config))
    return ModuleState(
        path=module.top,
        wanted=module.commit,
        there=commit,
        state="changed" if changed else "ok" if commit == module.commit else "elsewhere",
        changed=changed,
    )


def _notes(task: Task, git: Git) -> tuple[str, ...]:
    notes = []
    if saved := git.output("for-each-ref", "--format=%(objectname:short)", "refs/torchbuild/kept"):
        commits = ", ".join(saved.split("\n")[:4])
        notes.append(f"commits that no branch holds are kept under refs/torchbuild/kept: {commits}")
    if task.facts.windows:
        links = sum(
            1 for line in (git.output("ls-files", "--stage") or "").splitlines() if line[:6] == "120000"
        )
        if links and git.output("config", "core.symlinks") == "false":
            notes.append(f"{links} symbolic links are text files here, as git does without Developer Mode")
    return tuple(notes)
