"""The `source` verb: checkouts of PyTorch got, moved on, looked at, mended, and mirrored."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from torchbuild_tasks.errors import SourceError, UsageError
from torchbuild_tasks.features.source import places as place
from torchbuild_tasks.features.source.choose import check_room, least_room
from torchbuild_tasks.features.source.get import Task, failure, git_dir, held, resolve
from torchbuild_tasks.model.source import Checkout, Kind, ModuleState, SourceReport
from torchbuild_tasks.system import files, lock
from torchbuild_tasks.system.archive.unpack import unpack
from torchbuild_tasks.system.git import fetch as fetching
from torchbuild_tasks.system.git import fetch as remains
from torchbuild_tasks.system.git import submodules
from torchbuild_tasks.system.git.complete import AT_ONCE, Reason, advice, complete, reason
from torchbuild_tasks.system.git.fetch import Way, Wish
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.git.submodules import Module
from torchbuild_tasks.system.remove import remove_tree
from torchbuild_tasks.values import replace

ARCHIVES: Final[Mapping[str, str]] = {
    ".tar.gz": "tar.gz",
    ".tgz": "tar.gz",
    ".tar.xz": "tar.xz",
    ".tar.bz2": "tar.bz2",
    ".zip": "zip",
}


def from_archive(task: Task, word: str, folder: Path | None) -> Path:
    """Unpack a release archive as a checkout: in `folder`, or in the store.

    Raises:
        SourceError: there is no such file, it holds no PyTorch or no submodules, or the place is taken.
        ArchiveRefused: it is broken, or holds what may not be unpacked.
        TreeBusy: another command works on it.
    """
    archive = Path(word).expanduser().absolute()
    kind = next(kind for end, kind in ARCHIVES.items() if word.lower().endswith(end))
    if not archive.is_file():
        raise SourceError(
            f"There is no archive {archive}.",
            next_step="Download the one called pytorch-vX.Y.Z.tar.gz from "
            "https://github.com/pytorch/pytorch/releases and name the file.",
        )
    name = archive.name.lower().removesuffix(next(end for end in ARCHIVES if word.lower().endswith(end)))
    target = folder or task.store / place.SOURCES / name
    if not place.is_free(target):
        raise SourceError(f"{target} is there already.", next_step="Name another folder: --source PATH")
    task.report.stage(f"unpack {archive.name} into {target}")
    growing = place.growing(target)
    with files.told_as(SourceError, growing):
        growing.mkdir(parents=True, exist_ok=True)
    with lock.hold(growing, "source get"):
        outer = growing / "unpacked"
        with files.told_as(SourceError, outer):
            if outer.is_dir():  # of a run that was cut off
                remove_tree(outer)
        unpack(archive, kind, outer, tell=task.report.transfer, name=archive.name)
        tree = _tree(outer, archive, task)
        place.write_note(tree, place.Note(url=str(archive), word=word))
        place.publish(tree, target)
        remove_tree(outer)
    place.clear_away(growing)
    return target


def _tree(outer: Path, archive: Path, task: Task) -> Path:
    """The one folder in an archive, if it is a PyTorch with its submodules; else it is removed again."""
    inner = [path for path in outer.iterdir() if path.is_dir()]
    wrong = ""
    if len(inner) != 1 or not (inner[0] / "version.txt").is_file():
        wrong = "holds no PyTorch"
    elif (inner[0] / ".gitmodules").is_file() and not _has_submodules(inner[0]):
        wrong = "holds no submodules, as archives that GitHub makes of a tag do"
    if wrong:
        remove_tree(outer)
        raise SourceError(
            f"{archive} {wrong}.",
            next_step="Take the release's own archive, pytorch-vX.Y.Z.tar.gz, or: source get vX.Y.Z",
        )
    return inner[0]


def _has_submodules(tree: Path) -> bool:
    folders = [path for path in (tree / "third_party").glob("*") if path.is_dir()]
    return any(any(folder.iterdir()) for folder in folders)


# ----------------
# `source mirror`: the repositories of a version, and of its submodules, in the mirror store


class _Wanted(NamedTuple):
    """A commit of a repository."""

    url: str
    commit: str


def mirror(task: Task, word: str | None) -> None:
    """Fill the mirror store with a version and its submodules; --full brings all history of PyTorch.

    Raises:
        SourceError: something cannot be had; what came stays.
    """
    found = resolve(task, word or task.newest, task.url)
    folder = task.store / fetching.MIRRORS
    need = least_room(task.url, full=task.request.full, mirrored=False)
    if said := check_room(need, place.free_bytes(folder), str(folder)):
        task.report.note(said)
    task.report.stage(f"mirror {found.name} of {task.url} into {folder}")
    way = replace(task.way(folder), mirrors=folder)
    what = found.commit if found.branch or not found.ref else found.ref
    top = Wish(url=task.url, what=what, into="", commit=found.commit, full=task.request.full)
    moved = fetching.fill(fetching.mirror_of(folder, task.url), top, way, "pytorch")
    if moved.rc != 0:
        raise failure(f"{found.name} of {task.url} could not be mirrored.", moved, task.url)
    _submodules(task, way, folder, _Wanted(task.url, found.commit))


def _submodules(task: Task, way: Way, folder: Path, top: _Wanted) -> None:
    seen = {top}
    level = list(_named(task, folder, top))
    failed = list[tuple[_Wanted, Reason]]()
    while level:
        seen.update(level)
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            try:
                results = list(pool.map(lambda wanted: _one(way, folder, wanted), level))
            except BaseException:
                way.watch.stop.set()
                raise
        failed += [(wanted, why) for wanted, why in zip(level, results, strict=True) if why]
        good = [wanted for wanted, why in zip(level, results, strict=True) if not why]
        level = list(
            dict.fromkeys(n for wanted in good for n in _named(task, folder, wanted) if n not in seen)
        )
        task.report.note(f"{len(seen) - len(failed)} repositories are mirrored")
    if failed:
        raise SourceError(
            f"{len(failed)} repositories could not be mirrored; the others are.",
            looked=tuple(f"{wanted.url}: {why.line}" for wanted, why in failed),
            next_step=advice([why for _, why in failed], failed[0][0].url),
        )


def _one(way: Way, folder: Path, wanted: _Wanted) -> Reason | None:
    wish = Wish(url=wanted.url, what=wanted.commit, into="", commit=wanted.commit)
    name = wanted.url.rpartition("/")[2]
    moved = fetching.fill(fetching.mirror_of(folder, wanted.url), wish, way, name)
    if moved.rc != 0 and reason(moved.words).again:
        moved = fetching.fill(fetching.mirror_of(folder, wanted.url), wish, way, name)
    return reason(moved.words) if moved.rc != 0 else None


def _named(task: Task, folder: Path, top: _Wanted) -> Iterator[_Wanted]:
    """The submodules that a commit in a mirror names, by their addresses."""
    git = task.git(fetching.mirror_of(folder, top.url))
    for module in submodules.modules(git, commit=top.commit):
        if module.listed:
            yield _Wanted(module.listed, module.commit)


# ----------------
# `source reset --third-party`: submodules removed, their addresses renewed, and laid out anew


_ASIDE: Final = "broken-repositories"
Kept = tuple[tuple[str, tuple[str, ...]], ...]


def reset_third_party(task: Task, root: Path) -> tuple[tuple[str, ...], Kept]:
    """Get every submodule anew, but those that hold changes of the user's.

    Returns:
        The submodules that were got anew (with --dry-run: would be), and those kept with their changes.

    Raises:
        UsageError: nothing was said of what is to be reset.
        SourceError: something cannot be removed or had.
        TreeBusy: another command works on it.
    """
    if not task.request.third_party:
        raise UsageError("source reset resets nothing by itself", next_step="Say: source reset --third-party")
    git = task.git(root)
    own = git_dir(git)
    with held(root, "source reset", own):
        outer = submodules.modules(git)
        found = {module: _changes(git, module) for module in outer}
        kept = tuple((module.top, changed) for module, changed in found.items() if changed)
        gone = [module for module, changed in found.items() if task.request.yes or not changed]
        if task.request.dry_run:
            return tuple(module.top for module in gone), () if task.request.yes else kept
        task.report.stage(f"get submodules of {root} anew")
        for top, changed in () if task.request.yes else kept:
            task.report.note(f"{top} is kept: {', '.join(changed[:4])}{' …' if len(changed) > 4 else ''}")
        for module in gone:
            _remove(task, root, module)
        spared = () if task.request.yes else tuple(top for top, _ in kept)
        needed = task.needs(root)
        complete(git, task.way(root), lambda path: needed(path) and not _within(path, spared), sync=True)
    return tuple(module.top for module in gone), () if task.request.yes else kept


def _within(path: str, tops: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(f"{top}/") for top in tops)


def _changes(git: Git, module: Module) -> tuple[str, ...]:
    """The files of a submodule, and of those in it, that are not as its commit has them.

    A file that was deleted holds nothing that could be lost.
    """
    here = Git(folder=module.folder, config=git.config)
    if submodules.head(module, git.config) is None:
        return _without_head(here, module)
    inner = (
        f"{each.path}/{file}"
        for each in submodules.modules(here, f"{module.top}/")
        for file in _changes(here, each)
    )
    return (*submodules.edits(here, deleted=False), *inner)


def _without_head(git: Git, module: Module) -> tuple[str, ...]:
    """The files in a folder that was never checked out whole, and that are not of its commit.

    Where the repository cannot say what its commit holds, every file counts.
    """
    if not module.folder.is_dir():
        return ()
    if os.path.lexists(module.folder / ".git") and git.has(module.commit):
        return submodules.strangers(git, module.commit)
    return tuple(sorted(path.name for path in module.folder.iterdir() if path.name != ".git"))


def _remove(task: Task, root: Path, module: Module) -> None:
    """Take a submodule's worktree away; its repository stays, unless it is broken: then it is put aside."""
    repository = Git(folder=module.repository, config=task.config, bare=True)
    with files.told_as(SourceError, module.folder):
        if (module.folder / ".git").is_dir():
            return  # a repository of the user's own making: its only copy is in there
        if submodules.head(module, task.config) is not None:
            submodules.keep_head(Git(folder=module.folder, config=task.config))
        submodules.forget_index(module)
        if module.folder.is_dir() and not module.folder.is_symlink():
            _empty(module.folder)
        if module.repository.is_dir() and not _answers(repository):
            _put_aside(task, root, module)


def _empty(folder: Path) -> None:
    """Remove what is in a submodule's folder; the folder itself belongs to the checkout around it."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.name != ".git":
            files.unlink(path)
    link = folder / ".git"
    if os.path.lexists(link):  # last: until then a run that is cut off leaves a checkout that git knows
        files.unlink(link)


def _answers(git: Git) -> bool:
    """Whether a repository's objects can be read as far as its commit goes."""
    if git.said("rev-parse", "--git-dir") is None:
        return False
    head = git.said("rev-parse", "--verify", "--quiet", "HEAD")
    return head is None or git.ask("ls-tree", "-r", head, timeout=None).rc == 0


def _put_aside(task: Task, root: Path, module: Module) -> None:
    folder = files.state_dir(root) / _ASIDE
    folder.mkdir(exist_ok=True)
    stem = module.top.replace("/", "-")
    target = next(path for n in range(1, 10_000) if not (path := folder / f"{stem}-{n}").exists())
    files.replace(module.repository, target)
    task.report.note(f"the repository of {module.top} is broken; it is put aside in {target}")


# ---------------- `source status`: what a checkout is, where it is from, and what is amiss with it


def describe(task: Task, root: Path, *, whole: bool = True) -> Checkout:
    """Look at a checkout; `whole` also looks into every submodule for changes."""
    git = task.git(root)
    note = place.read_note(root)
    version = None
    with contextlib.suppress(OSError):
        version = (root / "version.txt").read_text("utf-8").strip() or None
    if not _is_top(git):
        return Checkout(
            path=str(root),
            kind="archive" if note else "folder",
            version=version,
            url=note.url if note else "",
            notes=("it is no git checkout: get another version beside it",),
        )
    needed = task.needs(root) if whole else None
    return Checkout(
        path=str(root),
        kind=_kind(git),
        version=version,
        url=(note.url if note else git.said("remote", "get-url", "origin")) or "",
        commit=git.said("rev-parse", "--verify", "--quiet", "HEAD"),
        at=_at(git),
        shallow=fetching.is_shallow(git),
        changed=submodules.edits(git) if whole else (),
        modules=tuple(_state(git, module, needed) for module in submodules.walk(git)) if needed else (),
        cut_off=remains.was_cut_off(root / files.STATE_DIR) or bool(note and note.moving),
        lost=fetching.borrowed(git),
        notes=_notes(task, git),
    )


def _is_top(git: Git) -> bool:
    said = git.said("rev-parse", "--show-toplevel")
    return said is not None and Path(said).samefile(git.folder)


def _kind(git: Git) -> Kind:
    """`.git` as a file means a worktree, or a submodule of a repository around it."""
    if (git.folder / ".git").is_dir():
        return "clone"
    around = git.said("rev-parse", "--show-superproject-working-tree")
    return "submodule" if around else "worktree"


def _at(git: Git) -> str:
    return (
        git.said("symbolic-ref", "--quiet", "--short", "HEAD")
        or git.said("describe", "--tags", "--exact-match")
        or ""
    )


def _state(git: Git, module: submodules.Module, needed: Callable[[str], bool]) -> ModuleState:
    there = submodules.head(module, git.config)
    if there is None:
        return ModuleState(
            path=module.top,
            wanted=module.commit,
            there=None,
            state="missing" if needed(module.top) else "unneeded",
        )
    changed = submodules.edits(Git(folder=module.folder, config=git.config))
    return ModuleState(
        path=module.top,
        wanted=module.commit,
        there=there,
        state="changed" if changed else "ok" if there == module.commit else "elsewhere",
        changed=changed,
    )


def _notes(task: Task, git: Git) -> tuple[str, ...]:
    notes = []
    if kept := git.said("for-each-ref", "--format=%(objectname:short)", "refs/torchbuild/kept"):
        commits = ", ".join(kept.split("\n")[:4])
        notes.append(f"commits that no branch holds are kept under refs/torchbuild/kept: {commits}")
    if task.facts.windows:
        links = sum(
            1 for line in (git.said("ls-files", "--stage") or "").splitlines() if line[:6] == "120000"
        )
        if links and git.said("config", "core.symlinks") == "false":
            notes.append(f"{links} symbolic links are text files here, as git does without Developer Mode")
    return tuple(notes)


# ----------------


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
            from torchbuild_tasks.features.source.get import update

            return _after(task, update(task, request.ref, _there(named)))
        case "reset":
            removed, kept = reset_third_party(task, _there(named))
            return SourceReport(action="reset", removed=removed, kept=kept)
        case "mirror":
            mirror(task, request.ref)
            return SourceReport(action="mirror", mirrors=_mirrors(task))
    return _status(task, named)


def _got(task: Task, named: Path | None) -> Path:
    from torchbuild_tasks.features.source.get import get

    word = task.request.ref
    if word and word.lower().endswith(tuple(ARCHIVES)):
        return from_archive(task, word, named)
    return get(task, word, named)


def _after(task: Task, root: Path) -> SourceReport:

    return SourceReport(action=str(task.request.action), checkouts=(describe(task, root, whole=False),))


def _status(task: Task, named: Path | None) -> SourceReport:

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
