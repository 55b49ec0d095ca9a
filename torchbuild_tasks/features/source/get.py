"""Fetch a new checkout, completely or not at all, and update an existing one to another version."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import INSTALL_GIT, SourceError, UsageError
from torchbuild_tasks.features.source import places
from torchbuild_tasks.features.source.choose import (
    Revision,
    check_room,
    find,
    least_room,
    long_path,
    parse_listing,
)
from torchbuild_tasks.features.source.places import Note
from torchbuild_tasks.model import Facts
from torchbuild_tasks.model.source import Lacking
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.torch_ref import read_word
from torchbuild_tasks.system import files, lock, process
from torchbuild_tasks.system.git import cut_off, submodules
from torchbuild_tasks.system.git.checkout import InTheWay, changed_files
from torchbuild_tasks.system.git.complete import complete
from torchbuild_tasks.system.git.fetch import MIRRORS, Access, WantedCommit, access_for, bring, mirror_of
from torchbuild_tasks.system.git.run import Git, unread_error
from torchbuild_tasks.system.git.transfer import Outcome, Reason, advice, find_reason, run
from torchbuild_tasks.system.reading import read_text
from torchbuild_tasks.text.words import as_word, first_few, first_lines
from torchbuild_tasks.values import replace

URL: Final = "https://github.com/pytorch/pytorch.git"
Needs = Callable[[Path], Callable[[str], bool]]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One action of the `source` verb.

    Args:
        facts: the machine, and the checkout that was named.
        store: the folder of our checkouts and mirrors.
        url: the repository; `config` are settings that go with each git.
        needs: says of a checkout which of its submodules the plan needs.
        lacking: says of a checkout which of its submodules hold nothing, as a plan sees it.
        newest: what is got without a word.
    """

    request: BuildRequest
    facts: Facts
    report: Reporter
    store: Path
    url: str
    config: tuple[str, ...]
    needs: Needs
    lacking: Callable[[Path], Lacking] = lambda root: Lacking()
    newest: str = "latest"

    def git(self, folder: Path) -> Git:
        """Return git in a folder, with the settings of this action."""
        return Git(folder=folder, config=self.config)

    def access(self, tree: Path) -> Access:
        """Return the access to repositories for a checkout."""
        offline = self.request.offline
        return access_for(tree, self.report, config=self.config, store=self.store, offline=offline)


def resolve(task: Task, word: str, url: str) -> Revision:
    """Resolve a word to a ref, by the repository or, offline, its mirror.

    Raises:
        SourceError: it cannot be reached, or it means nothing there.
    """
    where = url
    access = task.access(task.store)
    if access.offline:
        where = str(mirror_of(task.store / MIRRORS, url))
    lines: list[str] = []
    words = ("ls-remote", "--heads", "--tags", where)
    files.make_store(task.store, error=SourceError)
    if access.offline and not Path(where).exists():
        raise SourceError(
            f"With --offline nothing is fetched, and there is no mirror of {url} here.",
            looked=(where,),
            next_step="Fill one where there is a network: torchbuild source mirror WORD\n"
            f"and take the folder {MIRRORS} of the store along (docs/source.md).",
        )
    outcome = run(task.git(task.store), words, url, access.watch, lines=lines)
    if outcome.rc != 0:
        raise git_failure(f"{url} does not say which versions it has. Nothing was fetched.", outcome, url)
    listing = parse_listing("\n".join(lines))
    known = f"refs/tags/{_by_table(word)}"
    return find(known if known in listing else word, listing, url)


def _by_table(word: str) -> str:
    """Return the ref for a version word, as for --torch, by our rows; "" for none."""
    try:
        return read_word(word, load_catalog()).ref
    except UsageError:
        return ""


def git_failure(what: str, outcome: Outcome, url: str) -> SourceError:
    """Return the error of a failed git command: its message, and a fix."""
    if outcome.rc == process.CANNOT_START:
        return SourceError(what, looked=outcome.words[-6:], next_step=INSTALL_GIT)
    why: Reason = find_reason(outcome.words)
    return SourceError(what, looked=outcome.words[-6:], next_step=advice((why,), url))


@contextlib.contextmanager
def lock_checkout(tree: Path, what: str, git_dir: Path) -> Iterator[None]:
    """Lock a checkout for one action, and clean up after a killed one.

    Raises:
        TreeBusy: another command works on it.
        SourceError: a git of the user's is in the way.
    """
    with lock.hold(tree, what), cut_off.mark_change(tree / files.STATE_DIR, tree, git_dir):
        yield


def git_dir(git: Git) -> Path:
    """Return the repository of a worktree.

    Raises:
        SourceError: the folder is not the top of a worktree, or of a repository that does not know it.
    """
    output = (git.output("rev-parse", "--show-toplevel", "--absolute-git-dir") or "").split("\n")
    if len(output) == 2 and Path(output[0]).samefile(git.folder):
        own = Path(output[1])
        if own.parent == git.folder.resolve() or _knows(own, git):
            return own
        folder = as_word(git.folder)
        raise SourceError(
            f"{git.folder / '.git'} leads to {own}, which does not name {git.folder} as its checkout: "
            "it may belong to another checkout, which would be changed.",
            next_step=f"If it belongs here: git -C {folder} config core.worktree {folder}",
        )
    if unread := unread_error(git):
        raise unread
    raise SourceError(
        f"{git.folder} is not a git checkout, so nothing can be fetched into it.",
        looked=(git.ask("rev-parse", "--show-toplevel").error_text,),
        next_step="Get one beside it: source get WORD --source OTHER_FOLDER",
    )


def _knows(own: Path, git: Git) -> bool:
    """Say whether another repository refers to this checkout as its worktree."""
    with contextlib.suppress(OSError):
        if Path(read_text(own / "gitdir", most=4096).strip()).samefile(git.folder / ".git"):
            return True
    named = git.output("config", "--local", "core.worktree")
    with contextlib.suppress(OSError):
        return bool(named) and (own / str(named)).samefile(git.folder)
    return False


# ---------------- a new checkout, and one moved to another version


def get(task: Task, word: str | None, folder: Path | None) -> Path:
    """Fetch a checkout into `folder` or the store; complete or update an existing one.

    Raises:
        SourceError: it is not available; what was fetched stays, and the same command continues from there.
        TreeBusy: another command works on it.
    """
    if folder is not None and not places.is_free(folder):
        return update(task, word, folder)
    source = resolve(task, word or task.newest, task.url)
    target = folder or store_folder(task.store, task.url, source.name)
    if not places.is_free(target):
        return update(task, word if source.branch else None, target)
    note = Note(
        url=task.url,
        word=word or task.newest,
        ref=source.ref,
        commit=source.commit,
        full=task.request.full,
    )
    _report_room(task, target)
    task.report.stage(f"get {source.name} into {target}")
    growing = places.make_temporary_checkout(target)
    with lock_checkout(growing, "source get", growing / "tree" / ".git"):
        if not places.is_free(target):  # another run was quicker
            return target
        tree = _grow(task, growing, note)
        places.publish(tree, target)
    places.remove_temporary_checkout(growing)
    return target


def store_folder(store: Path, url: str, name: str) -> Path:
    """Return the folder in the store for a ref, with a digest for other repositories than PyTorch's."""
    plain = name.removeprefix("tags/").removeprefix("heads/").replace("/", "-")
    whose = "" if url == URL else f"-{sha256(url.encode()).hexdigest()[:6]}"
    return store / places.SOURCES / f"{plain}{whose}"


def _report_room(task: Task, target: Path) -> None:
    access = task.access(target)
    need = least_room(task.url, full=task.request.full, mirrored=access.mirrors is not None)
    if text := check_room(need, files.free_bytes(target), str(target)):
        task.report.note(text)
    windows = task.facts.windows
    if windows and windows.long_paths is not True and (text := long_path(str(target))):
        task.report.note(text)


def _grow(task: Task, growing: Path, note: Note) -> Path:
    """Fetch and check out everything; resume an interrupted run."""
    tree = growing / "tree"
    with files.translate_errors(SourceError, tree):
        tree.mkdir(exist_ok=True)
    git = task.git(tree)
    if git.output("rev-parse", "--show-toplevel") is None or not (tree / ".git" / "HEAD").exists():
        git.run("init", "--quiet", ".")
    git.run("config", "--local", "remote.origin.url", note.url)
    git.run("config", "--local", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    if task.facts.windows:
        git.run("config", "--local", "core.longpaths", "true")
    before = places.read_note(tree)
    places.write_note(tree, replace(note, moving=note.commit))
    _check_out(task, growing, git, note, before)
    _complete(task, tree, note.full, managed=True)
    places.write_note(tree, note)
    return tree


def _check_out(task: Task, watched: Path, git: Git, note: Note, before: Note | None) -> None:
    """Fetch and check out the commit of a note."""
    branch = note.ref.startswith("refs/heads/")
    # A branch may move while it is fetched, so it is fetched by its commit.
    into = f"refs/remotes/origin/{note.ref.removeprefix('refs/heads/')}" if branch else note.ref
    what = note.commit if branch or not note.ref else note.ref
    wish = WantedCommit(
        url=note.url,
        what=what,
        into=into or f"refs/torchbuild/{note.commit}",
        commit=note.commit,
        full=note.full,
    )
    access = task.access(watched)
    outcome = bring(git, wish, access, "pytorch")
    if outcome.rc == 0:
        if (
            git.output("rev-parse", "--verify", "--quiet", "HEAD") == note.commit
            and (Path(git.run("rev-parse", "--absolute-git-dir")) / "index").exists()
        ):
            return
        try:
            also = (before.moving, before.commit) if before and before.moving else ()
            outcome = submodules.move(git, note.commit, "pytorch", access.watch, also=also)
        except InTheWay as error:
            raise changes_error(git, error.files) from None
    if outcome.rc != 0:
        raise git_failure(f"{note.word} of {note.url} could not be fetched.", outcome, note.url)


def _complete(task: Task, root: Path, full: bool, *, managed: bool) -> None:
    needed = (lambda path: True) if full else task.needs(root)
    left_out = complete(task.git(root), task.access(root), needed, sync=managed)
    if left_out:
        names = first_few(left_out, 4)
        task.report.note(f"left out, because this build does not need them: {names} (--full gets them)")


def update(task: Task, word: str | None, root: Path) -> Path:
    """Update a checkout to another version, or to a branch's newest commit, with its submodules.

    Without a word a checkout that was not got by a branch's name stays at its commit.

    Raises:
        SourceError: changes of the user's are in the way, or something is not available.
        TreeBusy: another command works on it.
    """
    git = task.git(root)
    own = git_dir(git)
    with lock_checkout(root, "source update", own):
        before = places.read_note(root)
        note = _note_of_move(task, git, word, before)
        task.report.stage(f"update {root}" + (f" to {note.word}" if note else ""))
        if note is not None:
            _move(task, root, note, before)
        full = task.request.full or bool(before and before.full)
        _complete(task, root, full, managed=before is not None and before.url == task.url)
    return root


def _note_of_move(task: Task, git: Git, word: str | None, before: Note | None) -> Note | None:
    """Return the note with the target of an update; None if there is nothing to do."""
    known = before.url if before else git.output("remote", "get-url", "origin")
    url = task.request.url or known or task.url
    head = git.output("rev-parse", "--verify", "--quiet", "HEAD")
    if word is None and before and before.moving and before.moving != head:
        word = before.word  # finish an interrupted update
    if word is None and before and before.ref.startswith("refs/heads/") and head == before.commit:
        word = before.ref.removeprefix("refs/heads/")
    full = task.request.full or bool(before and before.full)
    if word is None:
        return replace(before, full=True) if before and task.request.full else None
    source = resolve(task, word, url)
    return Note(url=url, word=word, ref=source.ref, commit=source.commit, full=full)


def _move(task: Task, root: Path, note: Note, before: Note | None) -> None:
    git = task.git(root)
    head = git.output("rev-parse", "--verify", "--quiet", "HEAD")
    cut_off = before is not None and before.moving != ""
    if head != note.commit and not cut_off and (changed := changed_files(git, untracked=False)):
        raise changes_error(git, changed)
    if head != note.commit:
        submodules.keep_head(git)
    moving = replace(before or note, word=note.word, moving=note.commit)
    places.write_note(root, moving)
    _check_out(task, root, git, note, before)
    places.write_note(root, note)


def changes_error(git: Git, changed: tuple[str, ...]) -> SourceError:
    """Return the error about an update that would overwrite the user's changes, with fixes."""
    return SourceError(
        f"{git.folder} has changes that are not committed, so it is not moved to another version.",
        looked=first_lines(changed, 10),
        next_step=f"Commit them: git -C {as_word(git.folder)} commit -a\n"
        f"or put them aside: git -C {as_word(git.folder)} stash push   (back with: stash pop)\n"
        "or leave this checkout as it is and get the other version beside it: source get WORD --source "
        "OTHER_FOLDER",
    )
