"""Brings the patches of the source to what a plan wants, and remembers what they changed.

Everything is tried in memory first (`git_apply`): what is recorded is taken back, what is wanted is applied
to that, one after the other. Then the record is written, then each file that is not as it shall be, whole.
A refusal changes nothing; what a killed run left is finished by the next one, for the record then holds
both ends of the way. It is `.torchbuild/patches.json` and holds the diffs themselves, so that a later
version of this tool, or one without the patch's file, can take back what was applied.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.effects.git_apply import DoesNotApply, changed, fits
from torchbuild_tasks.effects.patched_files import PatchedFiles, sha
from torchbuild_tasks.errors import PatchRefused, UsageError
from torchbuild_tasks.model import Patch
from torchbuild_tasks.system.files import STATE_DIR, state_dir, told_as, unlink, write_atomic
from torchbuild_tasks.text.diffs import Section, sections
from torchbuild_tasks.values import dumps, from_json

RECORD: Final = "patches.json"


class FileChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sha256 of a file before and after a patch; the same where the change stood there already."""

    before: str
    after: str


class Applied(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One patch that stands in the source: `files` are all that it is about, by their path."""

    id: str
    sha256: str
    diff: str
    files: Mapping[str, FileChange]
    path: str = ""

    @property
    def ours(self) -> bool:
        """Whether this tool changed anything for it; else all of it was there."""
        return any(change.before != change.after for change in self.files.values())


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is applied, in that order. `replaced` is what was before, as long as files are written."""

    patches: tuple[Applied, ...] = ()
    replaced: tuple[tuple[Applied, ...], ...] = ()

    @property
    def chains(self) -> tuple[tuple[Applied, ...], ...]:
        """All that a file may have been left by, the latest first."""
        return (self.patches, *self.replaced)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Ids of patches: newly applied, taken back, those whose change the source has by itself.

    `moved` says for a patch where its parts were found, when not on the lines that it names.
    """

    applied: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    moved: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


def recorded(root: Path) -> Record:
    """What this tool has applied here.

    Raises:
        PatchRefused: the record cannot be read.
    """
    path = root / STATE_DIR / RECORD
    try:
        record = from_json(Record, json.loads(path.read_bytes()), RECORD)
    except FileNotFoundError:
        return Record()
    except (OSError, ValueError, UsageError) as error:
        raise _unreadable(path, str(error)) from None
    for applied in itertools.chain(*record.chains):
        if sha(applied.diff.encode()) != applied.sha256:
            raise _unreadable(path, f"the diff of {applied.id} is not the one that was applied")
    return record


def bring(root: Path, wanted: Sequence[Patch], *, dry_run: bool = False) -> Outcome:
    """Have these patches and no others in the source; without any, take back all that is recorded.

    Raises:
        PatchRefused: one does not fit or cannot be taken back, or a file cannot be written; no file was
            changed.
    """
    record, files = recorded(root), PatchedFiles(root)
    if not record.replaced and _stand(files, record.patches, wanted):
        return Outcome()
    gone = _take_back(record, files)
    moved: dict[str, tuple[str, ...]] = {}
    entries = tuple(_stage(patch, files, moved) for patch in wanted)
    files.check()
    if not dry_run:
        _write_record(root, Record(patches=entries, replaced=record.chains))
        files.write()
        _write_record(root, Record(patches=entries))
    before = {(done.id, done.diff): done.ours for done in record.patches if done.id not in gone}
    new = tuple(entry for entry in entries if before.get((entry.id, entry.diff)) != entry.ours)
    kept = {(entry.id, entry.diff) for entry in entries}
    olds = itertools.chain(*(reversed(chain) for chain in record.chains))
    return Outcome(
        applied=tuple(entry.id for entry in new if entry.ours),
        undone=tuple(dict.fromkeys(old.id for old in olds if old.ours and (old.id, old.diff) not in kept)),
        there=tuple(entry.id for entry in new if not entry.ours),
        moved={id: where for id, where in moved.items() if id in {entry.id for entry in new}},
    )


def _stand(files: PatchedFiles, done: Sequence[Applied], wanted: Sequence[Patch]) -> bool:
    """Whether just these are recorded and all files are as they left them, so that git need not be asked."""
    if [(each.id, each.diff) for each in done] != [(each.id, each.diff) for each in wanted]:
        return False
    left = {path: change.after for each in done for path, change in each.files.items()}
    return all(sha(files.get(path)) == after for path, after in left.items())


# ---------------------------------------------------------------- back


def _take_back(record: Record, files: PatchedFiles) -> frozenset[str]:
    """Make the files in memory what they were before us; ids of patches of which a part was gone already."""
    gone: set[str] = set()
    for path in dict.fromkeys(path for each in itertools.chain(*record.chains) for path in each.files):
        now = sha(files.get(path))
        way = _way(record, path, now)
        if way and way[0][0].files[path].before == now:  # git has restored it, or we never came to it
            gone.update(applied.id for applied, _ in way)
            continue
        for applied, section in reversed(way):
            if not _reverse(applied, section, files):
                gone.add(applied.id)
    return frozenset(gone)


def _way(record: Record, path: str, now: str) -> list[tuple[Applied, Section]]:
    """The changes of one file to take back: of a killed run, those that it had come to."""
    ways = [
        [(applied, section) for applied in chain for section in _sections(applied) if section.path == path]
        for chain in record.chains
    ]
    reached = (way for way in ways if way and way[-1][0].files[path].after == now)
    return next(reached, next(filter(None, ways), []))


def _sections(applied: Applied) -> Iterator[Section]:
    for section in sections(applied.diff):
        change = applied.files.get(section.path)
        if change is not None and change.before != change.after:
            yield section


def _reverse(applied: Applied, section: Section, files: PatchedFiles) -> bool:
    """Take one change back; False when somebody has done it already."""
    content, change = files.get(section.path), applied.files[section.path]
    if sha(content) == change.before:
        return False
    try:
        files.set(section.path, changed(content, section, reverse=True))
    except DoesNotApply as error:
        if content is None or fits(content, section):
            return False
        raise _kept(applied.id, section.path, str(error)) from None
    return True


# ---------------------------------------------------------------- and forth


def _stage(patch: Patch, files: PatchedFiles, moved: dict[str, tuple[str, ...]]) -> Applied:
    """Make the patch's changes in memory, as far as they do not stand already."""
    changes: dict[str, FileChange] = {}
    for section in sections(patch.diff):
        path, content = section.path, files.get(section.path)
        if obstacle := files.obstacle(path):
            raise _refused(patch, path, obstacle)
        if content is None and not section.creates:
            raise _refused(patch, path, "there is no such file in this checkout")
        result = content
        if not fits(content, section, reverse=True):
            result = _forth(patch, section, content, moved)
            files.set(path, result)
        changes[path] = FileChange(before=sha(content), after=sha(result))
    digest = sha(patch.diff.encode())
    return Applied(id=patch.id, sha256=digest, diff=patch.diff, files=changes, path=patch.path)


def _forth(
    patch: Patch, section: Section, content: bytes | None, moved: dict[str, tuple[str, ...]]
) -> bytes | None:
    lines: list[str] = []
    try:
        result = changed(content, section, said=lines.append)
    except DoesNotApply as error:
        raise _refused(patch, section.path, str(error)) from None
    if lines:
        where = (f"{section.path}, line {line}" for line in lines)
        moved[patch.id] = (*moved.get(patch.id, ()), *where)
    return result


def _write_record(root: Path, record: Record) -> None:
    if not (record.patches or record.replaced) and not (root / STATE_DIR / RECORD).exists():
        return
    path = state_dir(root) / RECORD
    if record.patches or record.replaced:
        write_atomic(path, dumps(record).encode(), error=PatchRefused)
        return
    with told_as(PatchRefused, path):
        unlink(path, missing_ok=True)


# ---------------------------------------------------------------- refusals


def _refused(patch: Patch, path: str, words: str) -> PatchRefused:
    if patch.path:
        advice = f"If {path} is as released, make the patch anew for this version. Else move it away from "
        advice += f"{patch.path}, or say --no-patches."
    else:
        advice = f"If you changed that file, take your change back (git checkout -- {path}). A patch that "
        advice += "does not fit the file as released is a bug of this tool; --no-patches leaves it out."
    return PatchRefused(
        f"The patch {patch.id} does not fit {path}. Nothing was changed.",
        looked=tuple(words.splitlines()),
        next_step=advice,
    )


def _kept(id: str, path: str, words: str) -> PatchRefused:
    return PatchRefused(
        f"{path} has been changed where the patch {id} changed it, so that cannot be taken back. "
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
