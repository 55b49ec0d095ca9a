"""Add, switch and remove worktrees of a checkout with all their submodules.

An entry in the repository (`.git/torchbuild/worktrees`) records each worktree that is ours and how far
it is: it is written before the first file and taken out after the last one, so that a run that was killed
is finished, or cleared away, by the next. A worktree without an entry is the user's and never removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.system.files import translate_errors, unlink, write_json
from torchbuild_tasks.system.git import cut_off, submodules
from torchbuild_tasks.system.git.checkout import InTheWay
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.fetch import Access, is_shallow
from torchbuild_tasks.system.git.run import Git, entries_in
from torchbuild_tasks.system.git.submodules import changes
from torchbuild_tasks.system.git.transfer import Watch
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.system.remove import leftovers, remove_tree, rename_and_remove
from torchbuild_tasks.text.words import as_word, first_lines

State = Literal["adding", "here"]  # "here": complete; these words are in files on disk

_ENTRIES: Final = ("torchbuild", "worktrees")
_SWITCH: Final = "torchbuild-switch.json"  # in the git directory of a checkout, while it is switched
_SHOWN: Final = 10


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The repository's record of one worktree of ours."""

    file: Path
    folder: Path
    state: State
    commit: str


def entries(git: Git) -> tuple[Entry, ...]:
    """Return the worktrees that this tool created, including unfinished ones."""
    result = []
    for file in sorted((_common(git).joinpath(*_ENTRIES)).glob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            data = read_json(file)
            folder = Path(data["folder"])
            result.append(Entry(file=file, folder=folder, state=data["state"], commit=data["commit"]))
    return tuple(result)


def commit_of(git: Git, ref: str) -> str:
    """Return the commit of a branch (local or remote), tag or commit id.

    Raises:
        SourceError: the repository has none of that name.
    """
    for name in () if ref.startswith("-") else (ref, f"refs/remotes/origin/{ref}"):
        if commit := git.output("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return commit
    fetch = f"git -C {as_word(git.folder)} fetch"
    if is_shallow(git):
        advice = f"This checkout has no history. Fetch it: {fetch} --unshallow --tags origin"
    elif "origin" in (git.output("remote") or "").split():
        advice = f"Fetch it first: {fetch} origin {as_word(ref)}"
    else:
        advice = f"This shows the names that there are: git -C {as_word(git.folder)} branch --all"
    raise SourceError(
        f"There is no branch, tag or commit {ref} in {git.folder}.",
        looked=(f"git rev-parse {ref}", f"git rev-parse origin/{ref}"),
        next_step=advice,
    )


def add(git: Git, folder: Path, ref: str, access: Access | None = None, *, modules: bool = True) -> None:
    """Add a worktree at `ref` in `folder` with its submodules; complete an unfinished one.

    Args:
        git: the checkout that it is a worktree of, whose submodules are borrowed.
        folder: where; must not be there, or be empty.
        ref: branch, tag or commit; HEAD is detached.
        access: how what the checkout lacks is fetched.

    Raises:
        SourceError: no such ref, something is in `folder`, or git fails.
    """
    folder = _absolute(folder)
    commit = commit_of(git, ref)
    tree = Git(folder=folder, config=git.config)
    entry = _entry(git, folder)
    access = access or _quiet(tree)
    if entry and entry.state == "adding":
        cut_off.end_orphans(access.watch.tree)
        _remove_parts(git, entry)
    elif os.path.lexists(folder) and not _is_empty(folder):
        raise SourceError(
            f"{folder} is there already; a worktree needs a folder of its own.",
            next_step="Name another folder, or move that one away.",
        )
    _write_entry(git, folder, "adding", commit)
    git.run("worktree", "add", "--quiet", "--detach", str(folder), commit)
    if modules:
        _complete(tree, _main(git), access)
    _write_entry(git, folder, "here", commit)


def switch(git: Git, ref: str, access: Access | None = None, *, modules: bool = True) -> None:
    """Check out `ref` in a checkout or worktree, including its submodules.

    Args:
        ref: branch, tag or commit; HEAD is detached.
        access: how what the main checkout lacks is fetched.
        modules: bring the submodules that the commit names.

    Raises:
        SourceError: no such ref, something was changed (it is listed), or git fails.
    """
    commit = commit_of(git, ref)
    access = access or _quiet(git)
    own = Path(git.run("rev-parse", "--absolute-git-dir"))
    with cut_off.mark_change(own, Path(access.watch.tree), own):
        note = own / _SWITCH
        head = git.run("rev-parse", "HEAD")
        begun = _unfinished_switch(note)
        ends = tuple(dict.fromkeys((head, *begun)))
        # Files of an interrupted switch differ from HEAD, but are not changes of the user's.
        files = [*(() if begun else changes(git)), *submodules.files_overwritten(git, commit, ends)]
        if files:
            raise _dirty(f"{git.folder} cannot be switched to {ref}: it has changes.", sorted(set(files)))
        main = _main(git)
        write_json(note, {"from": head, "to": commit}, error=SourceError)
        try:
            outcome = submodules.move(git, commit, git.folder.name, access.watch, also=ends)
        except InTheWay as error:
            raise _dirty(f"{git.folder} cannot be switched to {ref}.", error.files) from None
        if outcome.rc != 0:
            raise SourceError(f"{git.folder} cannot be switched to {ref}.", looked=outcome.words)
        if modules:
            _complete(git, None if _same(main.folder, git.folder) else main, access)
        if _entry(git, _absolute(git.folder)):
            _write_entry(git, _absolute(git.folder), "here", commit)
        with translate_errors(SourceError, note):
            unlink(note, missing_ok=True)


def _quiet(git: Git) -> Access:
    """Return the access to repositories without reports."""
    return Access(config=git.config, watch=Watch(tree=str(git.folder)))


def _complete(git: Git, main: Git | None, access: Access) -> None:
    """Check out every submodule that is needed or was present, at the commit of HEAD.

    Where nothing says what is needed, what the main checkout left out is left out.
    """
    if access.needed:
        is_needed = access.needed(git.folder)
    else:
        known = submodules.walk(main, commit="HEAD") if main else ()
        missing = {module.top for module in known if not module.is_present}

        def is_needed(top: str) -> bool:
            return top not in missing

    def wanted(top: str) -> bool:
        return is_needed(top) or os.path.lexists(git.folder / top / ".git")

    complete(git, access, wanted, main=main)


def remove(git: Git, folder: Path, *, created: Collection[str] = ()) -> None:
    """Remove a worktree of `add` with its builds.

    Args:
        git: the checkout that it is a worktree of.
        created: files that builds are known to have created, though git neither tracks nor ignores them.

    Raises:
        SourceError: it is none of ours, holds changes or commits that are nowhere else, or git fails.
    """
    folder = _absolute(folder)
    entry = _entry(git, folder)
    if entry is None:
        raise SourceError(
            f"{folder} was not made by torchbuild_tasks, so it is not removed.",
            next_step="If the worktree is no longer needed: "
            f"git -C {as_word(git.folder)} worktree remove {as_word(folder)}",
        )
    if entry.state == "here" and os.path.lexists(folder) and (lost := losses(git, folder, created)):
        raise loss_error(folder, lost)
    _write_entry(git, folder, "adding", entry.commit)  # incomplete from now on, in case this run is killed
    _remove_parts(git, entry)


def loss_error(folder: Path, lost: Sequence[str]) -> SourceError:
    """Return the error of a removal that would lose something."""
    return _dirty(f"{folder} is not removed: what is in it would be lost.", lost)


def losses(git: Git, folder: Path, created: Collection[str] = ()) -> tuple[str, ...]:
    """Return what the removal of a worktree would lose: changes, untracked files, commits."""
    tree = Git(folder=_absolute(folder), config=git.config)
    top = tree.output("rev-parse", "--show-toplevel")
    if top is None or not _same(Path(top), tree.folder):
        return (f"{folder} is not a worktree any more: its .git is missing or broken",)
    entry = _entry(git, tree.folder)
    head = tree.run("rev-parse", "HEAD")
    lost = [*changes(tree), *(name for name in _unknown(tree) if name not in created)]
    if head != (entry and entry.commit) and not tree.output("for-each-ref", "--contains", head, "--count=1"):
        lost.append(f"commit {head[:10]}, which no branch or tag has")
    return tuple(dict.fromkeys(lost))


def _unknown(tree: Git) -> list[str]:
    """Return untracked files, and commits that only a submodule's repository there has."""
    unknown = entries_in(tree.run("ls-files", "--others", "--exclude-standard", "-z"))
    for module in submodules.modules(tree, commit="HEAD"):
        if module.is_present:
            sub = module.git(tree.config)
            unknown += [f"{module.path}/{name}" for name in _unknown(sub)]
            known = ("--not", "--remotes", *((module.commit,) if sub.has(module.commit) else ()))
            if sub.output("log", "--format=%h", "--max-count=1", "--branches", *known):
                unknown.append(f"{module.path} (a branch that was not pushed)")
            if sub.output("rev-parse", "--quiet", "--verify", "refs/stash"):
                unknown.append(f"{module.path} (stashed changes)")
    return unknown


def _unfinished_switch(note: Path) -> tuple[str, ...]:
    """Return the two commits of an interrupted switch; empty if there was none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        data = read_json(note)
        return (str(data["from"]), str(data["to"]))
    return ()


def _remove_parts(git: Git, entry: Entry) -> None:
    """Remove the folder, git's metadata and the entry, in an order that can be resumed after a kill."""
    with translate_errors(SourceError, entry.folder):
        for old in leftovers(entry.folder.parent, entry.folder.name):
            remove_tree(old)
        if entry.folder.exists():
            rename_and_remove(entry.folder)
    captured = git.ask("worktree", "remove", "--force", "--force", str(entry.folder), timeout=None)
    if captured.rc != 0:  # git does not know it yet
        git.run("worktree", "prune")
    with translate_errors(SourceError, entry.file):
        unlink(entry.file, missing_ok=True)


def _dirty(what: str, files: Sequence[str]) -> SourceError:
    return SourceError(
        what,
        looked=first_lines(files, _SHOWN),
        next_step="Commit it (git commit), put it aside (git stash), or drop it (git restore, git clean), "
        "in the submodule where it is one; `clean --patches` takes out what a build patched. Then run the "
        "same command again.",
    )


def _main(git: Git) -> Git:
    """Return the main checkout of the worktrees, which git lists first."""
    first = git.run("worktree", "list", "--porcelain").partition("\n")[0]
    return Git(folder=Path(first.removeprefix("worktree ")), config=git.config)


def _common(git: Git) -> Path:
    return (git.folder / git.run("rev-parse", "--git-common-dir")).resolve()


def _file(git: Git, folder: Path) -> Path:
    digest = hashlib.sha256(os.path.normcase(str(folder)).encode()).hexdigest()
    return _common(git).joinpath(*_ENTRIES, f"{digest[:16]}.json")


def _entry(git: Git, folder: Path) -> Entry | None:
    file = _file(git, folder)
    return next((entry for entry in entries(git) if entry.file == file), None)


def _write_entry(git: Git, folder: Path, state: State, commit: str) -> None:
    file = _file(git, folder)
    with translate_errors(SourceError, file):
        file.parent.mkdir(parents=True, exist_ok=True)
    data = {"folder": str(folder), "state": state, "commit": commit}
    write_json(file, data, error=SourceError)


def _absolute(folder: Path) -> Path:
    return Path(os.path.realpath(folder.expanduser()))


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())


def _same(one: Path, other: Path) -> bool:
    return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))
