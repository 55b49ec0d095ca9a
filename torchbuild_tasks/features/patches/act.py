"""Apply the planned patches to the source, undo others, and record the changes.

git decides whether a patch fits: every line of its context must exist as in the diff. Its place may have
moved, as it does with every release; a note names the lines. git works on a copy of one file in a separate
folder. The copy keeps its name and path, so that git's messages name the file; no outer repository, no
setting of the user's and no variable of a git hook has an effect.

First come the stages: the patches are tried before everything else, and applied before the build.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.work import Reporter, Work
from torchbuild_tasks.errors import INSTALL_GIT, PatchRefused, UsageError
from torchbuild_tasks.features.patches.choose import PATCH_RECORD
from torchbuild_tasks.model import BuildPlan, Patch
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR, state_dir, translate_errors, unlink, write_atomic
from torchbuild_tasks.system.reading import read_json
from torchbuild_tasks.text.diffs import Section, sections
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import dumps, from_json


def try_patches(work: Work) -> Work:
    """Try all patches in memory, so that one that does not fit ends the build at its start."""
    require_fit(work.plan)
    return work


def require_fit(plan: BuildPlan) -> None:
    """Check that every planned patch fits, and that others can be undone.

    Nothing is known of a source that is still to be got.

    Raises:
        PatchRefused: one does not.
    """
    if (Path(plan.source) / "CMakeLists.txt").is_file():
        bring(Path(plan.source), plan.patches, dry_run=True)


def apply_patches(work: Work) -> Work:
    """Undo patches that are no longer planned, and apply the planned ones."""
    planned = work.plan.patches
    say = work.report.note
    outcome = bring(work.root, planned)
    because = {patch.id: patch.because for patch in planned}
    for id in outcome.undone:
        again = " in its older form" if id in because else ", this plan has no use for it"
        say(f"source patch {id}: undone{again}")
    for id in outcome.applied:
        say(f"source patched ({id}): {because[id]}")
    for id in outcome.there:
        say(f"source patch {id}: the source has that change already, so it is left out")
    for id, where in outcome.moved.items():
        say(f"source patch {id}: found on other lines: {'; '.join(where)}")
    return work


def undo_patches(root: Path, report: Reporter, dry_run: bool) -> tuple[str, ...]:
    """Undo every patch recorded in a checkout, or only list them; return their ids.

    Raises:
        PatchRefused: the same lines have been changed since; no file was changed.
    """
    ids = bring(root, (), dry_run=dry_run).undone
    for id in () if dry_run else ids:
        report.note(f"source patch {id}: undone")
    return ids


ABSENT = ""
# The user's settings for whitespace or line ends would change what fits, or what is written.
_PLAIN: Final = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", f"core.attributesFile={os.devnull}"),
    *("-c", "apply.whitespace=nowarn", "-c", "apply.ignoreWhitespace=no"),
)
_DIFF: Final = "change.diff"
_SECONDS: Final = 60.0
_OFFSET: Final = re.compile(r"^Hunk #\d+ succeeded at (\d+ \(offset .*\))\.$", re.MULTILINE)


class FileChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sha256 of a file before and after a patch; equal if the change was there already."""

    before: str
    after: str


class Applied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One applied patch: `files` are the changed files by path."""

    id: str
    sha256: str
    diff: str
    files: Mapping[str, FileChange]
    path: str = ""

    @property
    def ours(self) -> bool:
        """Say whether this tool changed a file for it; else the change was there already."""
        return any(change.before != change.after for change in self.files.values())


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The applied patches, in order. `replaced` is the earlier record while files are written."""

    patches: tuple[Applied, ...] = ()
    replaced: tuple[tuple[Applied, ...], ...] = ()

    @property
    def chains(self) -> tuple[tuple[Applied, ...], ...]:
        """The records that may have changed a file, the latest first."""
        return (self.patches, *self.replaced)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of patches: newly applied, undone, and already part of the source.

    `moved` has, by patch, where its parts were found when not on the lines that it names.
    """

    applied: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def read_record(root: Path) -> Record:
    """Return the patches that this tool has applied here.

    Raises:
        PatchRefused: the record cannot be read.
    """
    path = root / STATE_DIR / PATCH_RECORD
    try:
        record = from_json(Record, read_json(path), PATCH_RECORD)
    except FileNotFoundError:
        return Record()
    except (OSError, ValueError, UsageError) as error:
        raise _unreadable(path, str(error)) from None
    for applied in itertools.chain(*record.chains):
        if sha(applied.diff.encode()) != applied.sha256:
            raise _unreadable(path, f"the diff of {applied.id} is not the one that was applied")
    return record


def bring(root: Path, wanted: Sequence[Patch], *, dry_run: bool = False) -> Outcome:
    """Apply exactly these patches to the source, and undo all others on record.

    Raises:
        PatchRefused: one does not fit or cannot be taken back, or a file cannot be written; no file was
            changed.
    """
    record = read_record(root)
    files = PatchedFiles(root)
    if not record.replaced and _are_applied(files, record.patches, wanted):
        return Outcome()
    restored = _revert(record, files)
    moved: dict[str, tuple[str, ...]] = {}
    entries = tuple(_apply(patch, files, moved) for patch in wanted)
    files.check()
    if not dry_run:
        _write_record(root, Record(patches=entries, replaced=record.chains))
        files.write()
        _write_record(root, Record(patches=entries))
    before = {(old.id, old.diff): old.ours for old in record.patches if old.id not in restored}
    new = tuple(entry for entry in entries if before.get((entry.id, entry.diff)) != entry.ours)
    after = {(entry.id, entry.diff) for entry in entries}
    earlier = itertools.chain(*(reversed(chain) for chain in record.chains))
    return Outcome(
        applied=tuple(entry.id for entry in new if entry.ours),
        undone=tuple(
            dict.fromkeys(old.id for old in earlier if old.ours and (old.id, old.diff) not in after)
        ),
        there=tuple(entry.id for entry in new if not entry.ours),
        moved={id: where for id, where in moved.items() if id in {entry.id for entry in new}},
    )


def _are_applied(files: PatchedFiles, recorded: Sequence[Applied], wanted: Sequence[Patch]) -> bool:
    """Say whether exactly these are on record with unchanged files, so that git is not needed."""
    if [(each.id, each.diff) for each in recorded] != [(each.id, each.diff) for each in wanted]:
        return False
    expected = {path: change.after for each in recorded for path, change in each.files.items()}
    return all(sha(files.get(path)) == after for path, after in expected.items())


def _revert(record: Record, files: PatchedFiles) -> frozenset[str]:
    """Undo all recorded patches in memory; return ids of those already undone in part."""
    restored: set[str] = set()
    for path in dict.fromkeys(path for each in itertools.chain(*record.chains) for path in each.files):
        now = sha(files.get(path))
        changes = _changes_of(record, path, now)
        if (
            changes and changes[0][0].files[path].before == now
        ):  # git has restored it, or it was never changed
            restored.update(applied.id for applied, _ in changes)
            continue
        for applied, section in reversed(changes):
            if not _reverse(applied, section, files):
                restored.add(applied.id)
    return frozenset(restored)


def _changes_of(record: Record, path: str, now: str) -> list[tuple[Applied, Section]]:
    """Return the changes of one file to undo: for a killed run, those that it has made."""
    chains = [
        [(applied, section) for applied in chain for section in _sections(applied) if section.path == path]
        for chain in record.chains
    ]
    reached = (changes for changes in chains if changes and changes[-1][0].files[path].after == now)
    return next(reached, next(filter(None, chains), []))


def _sections(applied: Applied) -> Iterator[Section]:
    for section in sections(applied.diff):
        change = applied.files.get(section.path)
        if change is not None and change.before != change.after:
            yield section


def _reverse(applied: Applied, section: Section, files: PatchedFiles) -> bool:
    """Undo one change; return False if it is undone already."""
    content = files.get(section.path)
    change = applied.files[section.path]
    if sha(content) == change.before:
        return False
    try:
        files.set(section.path, apply_section(content, section, reverse=True))
    except DoesNotApply as error:
        if content is None or fits(content, section):
            return False
        raise _refuse_removal(applied.id, section.path, str(error)) from None
    return True


def _apply(patch: Patch, files: PatchedFiles, moved: dict[str, tuple[str, ...]]) -> Applied:
    """Apply a patch's changes in memory, unless they are there already."""
    changes: dict[str, FileChange] = {}
    for section in sections(patch.diff):
        path = section.path
        content = files.get(section.path)
        if obstacle := files.obstacle(path):
            raise _refuse_patch(patch, path, obstacle)
        if content is None and not section.creates:
            raise _refuse_patch(patch, path, "there is no such file in this checkout")
        result = content
        if not fits(content, section, reverse=True):
            result = _apply_anew(patch, section, content, moved)
            files.set(path, result)
        changes[path] = FileChange(before=sha(content), after=sha(result))
    digest = sha(patch.diff.encode())
    return Applied(id=patch.id, sha256=digest, diff=patch.diff, files=changes, path=patch.path)


def _apply_anew(
    patch: Patch, section: Section, content: bytes | None, moved: dict[str, tuple[str, ...]]
) -> bytes | None:
    lines: list[str] = []
    try:
        result = apply_section(content, section, on_moved=lines.append)
    except DoesNotApply as error:
        raise _refuse_patch(patch, section.path, str(error)) from None
    if lines:
        where = (f"{section.path}, line {line}" for line in lines)
        moved[patch.id] = (*moved.get(patch.id, ()), *where)
    return result


def _write_record(root: Path, record: Record) -> None:
    if not (record.patches or record.replaced) and not (root / STATE_DIR / PATCH_RECORD).exists():
        return
    path = state_dir(root) / PATCH_RECORD
    if record.patches or record.replaced:
        write_atomic(path, dumps(record).encode(), error=PatchRefused)
        return
    with translate_errors(PatchRefused, path):
        unlink(path, missing_ok=True)


# ---- the files


def sha(content: bytes | None) -> str:
    """Return the sha256 of a file's content; "" without a file."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


class PatchedFiles:
    """The future files of a checkout; None for a missing file."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = root.resolve()
        self._old: dict[str, bytes | None] = {}
        self._new: dict[str, bytes | None] = {}

    def get(self, path: str) -> bytes | None:
        """Return the present content of a file."""
        if path not in self._old:
            self._old[path] = self._read(path)
        return self._new.get(path, self._old[path])

    def set(self, path: str, content: bytes | None) -> None:
        """Set the future content of a file."""
        self._new[path] = content

    def obstacle(self, path: str) -> str:
        """Return why this path cannot be read or written as a file of the checkout; "" if it can."""
        file = self._root / path
        try:
            real = file.resolve()
        except (OSError, RuntimeError) as error:
            return str(error)
        if os.path.normcase(real) != os.path.normcase(self._real / path):
            return f"it leads to {real}"
        return "it is not a file" if os.path.lexists(file) and not file.is_file() else ""

    def _read(self, path: str) -> bytes | None:
        with contextlib.suppress(OSError):
            if not self.obstacle(path):
                return (self._root / path).read_bytes()
        return None

    @property
    def changes(self) -> dict[str, bytes | None]:
        """Return the files to write: those with a changed content."""
        return {path: content for path, content in self._new.items() if content != self._old[path]}

    def check(self) -> None:
        """Raise before the first file is written if one cannot be.

        Raises:
            PatchRefused: a file or its folder is not writable.
        """
        for path in self.changes:
            file = self._root / path
            folder = next(each for each in file.parents if each.exists())
            locked = [each for each in (file, folder) if each.exists() and not os.access(each, os.W_OK)]
            if locked:
                raise PatchRefused(
                    f"{path} has to be changed, and {locked[0]} is not writable. Nothing was changed.",
                    next_step="Make it writable: "
                    + ("attrib -r " if os.name == "nt" else "chmod u+w ")
                    + as_word(locked[0]),
                )

    def write(self) -> None:
        """Replace the files atomically, keeping their modes.

        Raises:
            PatchRefused: one cannot be written.
        """
        for path, content in self.changes.items():
            file = self._root / path
            with translate_errors(PatchRefused, file):
                if content is None:
                    unlink(file, missing_ok=True)
                    self._drop_empty(file.parent)
                    continue
                file.parent.mkdir(parents=True, exist_ok=True)
            mode = file.stat().st_mode if file.exists() else None
            write_atomic(file, content, error=PatchRefused)
            if mode is not None:
                with contextlib.suppress(OSError):
                    file.chmod(stat.S_IMODE(mode))

    def _drop_empty(self, folder: Path) -> None:
        """Remove folders that a patch created and that are empty now."""
        with contextlib.suppress(OSError):
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent


# ---- git


class DoesNotApply(Exception):
    """The change does not fit the file; the message is git's."""


def apply_section(
    content: bytes | None,
    section: Section,
    *,
    reverse: bool = False,
    on_moved: Callable[[str], None] = lambda line: None,
) -> bytes | None:
    """Apply a section to a file's content by git, and keep that file's line ends; None is no file.

    Args:
        content: the present content of the file.
        section: the change; all its context must be there, though it may be on other lines.
        reverse: take the change back.
        on_moved: called for each part that was found on other lines.

    Raises:
        DoesNotApply: git refuses.
        PatchRefused: there is no git.
    """
    import tempfile

    crlf = content is not None and _is_crlf(content)
    plain = content.replace(b"\r\n", b"\n") if crlf and content is not None else content
    with tempfile.TemporaryDirectory(prefix="torchbuild-patch-") as folder:
        root = Path(folder).resolve()
        file = root / section.path
        file.parent.mkdir(parents=True, exist_ok=True)
        if plain is not None:
            file.write_bytes(plain)
        (root / _DIFF).write_bytes(_with_ends_of(plain, section.text.encode()))
        for line in _OFFSET.findall(_git(root, reverse)):
            on_moved(line)
        result = file.read_bytes() if file.exists() else None
    if result == plain:  # git skips, with exit code 0, paths that it considers outside of its folder
        raise DoesNotApply("git apply changed nothing")
    return result.replace(b"\n", b"\r\n") if crlf and result is not None else result


def _git(root: Path, reverse: bool) -> str:
    argv = ("git", *_PLAIN, "apply", "--verbose", *(("-R",) if reverse else ()), _DIFF)
    captured = process.capture(argv, cwd=root, env=dict(_outside_of_git(os.environ, root)), timeout=_SECONDS)
    if captured.rc == process.CANNOT_START:
        raise PatchRefused(
            "The source has to be patched, and git, which does that, cannot be started. Nothing was changed.",
            looked=(captured.error_text,),
            next_step=INSTALL_GIT,
        )
    if captured.rc != 0:
        output = (captured.stderr or captured.stdout).decode(errors="replace").strip()
        raise DoesNotApply(output or f"git apply ended with exit code {captured.rc}")
    return captured.error_text


def _outside_of_git(environ: Mapping[str, str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield the environment without git's variables for hooks, and with a ceiling above the folder."""
    for name, value in environ.items():
        if not name.startswith("GIT_") or name == "GIT_EXEC_PATH":
            yield name, value
    yield "GIT_CEILING_DIRECTORIES", str(root.parent)
    yield "LC_ALL", "C"


def _is_crlf(content: bytes) -> bool:
    """Say whether every line ends in CRLF; a file with mixed line ends is used unchanged."""
    return b"\r\n" in content and content.count(b"\n") == content.count(b"\r\n")


def _with_ends_of(plain: bytes | None, diff: bytes) -> bytes:
    """Return a diff without CRLF where the file has none, or where an editor has put it on every line."""
    other = plain is not None and b"\r\n" not in plain
    return diff.replace(b"\r\n", b"\n") if other or _is_crlf(diff) else diff


def fits(content: bytes | None, section: Section, *, reverse: bool = False) -> bool:
    """Say whether git can apply or reverse the change."""
    try:
        apply_section(content, section, reverse=reverse)
    except DoesNotApply:
        return False
    return True


# ---- refusals


def _refuse_patch(patch: Patch, path: str, words: str) -> PatchRefused:
    if patch.path:
        advice = (
            f"If {path} is as released, make the patch again for this version. Otherwise move it away from "
        )
        advice += f"{patch.path}, or use --no-patches."
    else:
        advice = f"If you changed that file, take your change back (git checkout -- {path}). A patch that "
        advice += "does not fit the file as released is a bug of this tool; --no-patches leaves it out."
    return PatchRefused(
        f"The patch {patch.id} does not fit {path}. Nothing was changed.",
        looked=tuple(words.splitlines()),
        next_step=advice,
    )


def _refuse_removal(id: str, path: str, words: str) -> PatchRefused:
    return PatchRefused(
        f"{path} has been changed where the patch {id} changed it, so it cannot be undone. "
        "Nothing was changed.",
        looked=tuple(words.splitlines()),
        next_step=f"Save your change and restore the file: git checkout -- {path}. Then run the same again.",
    )


def _unreadable(path: Path, reason: str) -> PatchRefused:
    return PatchRefused(
        f"The record of applied patches cannot be used: {path}",
        looked=(reason,),
        next_step="`git status` names the patched files. Restore them (git checkout -- FILE) and remove "
        "the record.",
    )
