"""Changes the source by patches, remembers what it changed, and takes just that back.

First everything is tried on copies (`git_apply`), then the record is written, then the files
are replaced whole: a refusal changes nothing, and what a killed run left is finished by the next one.
The record, `.torchbuild/patches.json`, holds the diffs themselves, so that a later version of
this tool can take back what an older one did.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from torchbuild_tasks import codec
from torchbuild_tasks.effects.files import STATE_DIR, state_dir, told_as, unlink, write_atomic
from torchbuild_tasks.effects.git_apply import DoesNotApply, Section, changed, fits, sections
from torchbuild_tasks.errors import PatchRefused, UsageError
from torchbuild_tasks.model import Patch

RECORD: Final = "patches.json"
State = Literal["applied", "clean", "refused"]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """The sha256 of a file before and after a patch changed it."""

    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Applied:
    """One patch that this tool applied: `files` are those that it changed, by their path."""

    id: str
    sha256: str
    diff: str
    files: Mapping[str, FileChange]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is applied, in that order."""

    patches: tuple[Applied, ...] = ()


def state(root: Path, diff: str) -> State:
    """Whether a diff stands in the source already, whole (applied), can be applied (clean), or neither.

    One of which only some files have their part is clean: what is missing can be applied.
    """
    found = {_state(_read(root, section.path), section) for section in sections(diff)}
    if "refused" in found:
        return "refused"
    return "clean" if "clean" in found else "applied"


def recorded(root: Path) -> tuple[Applied, ...]:
    """What this tool has applied here.

    Raises:
        PatchRefused: the record cannot be read.
    """
    path = root / STATE_DIR / RECORD
    try:
        record = codec.decode(Record, json.loads(path.read_bytes()), RECORD)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, UsageError) as error:
        raise _unreadable(path, str(error)) from None
    for applied in record.patches:
        if _sha(applied.diff.encode()) != applied.sha256:
            raise _unreadable(path, f"the diff of {applied.id} is not the one that was applied")
    return record.patches


def stale(root: Path, planned: Sequence[Patch]) -> tuple[str, ...]:
    """The applied ones that are not planned any more, or planned otherwise."""
    wanted = {(patch.id, patch.diff) for patch in planned}
    return tuple(done.id for done in recorded(root) if (done.id, done.diff) not in wanted)


def apply(root: Path, patches: Sequence[Patch]) -> tuple[str, ...]:
    """Apply what does not stand in the source yet; the ids of those that changed something.

    Raises:
        PatchRefused: one does not fit, or a file cannot be written; no file was changed.
    """
    before = {done.id: done for done in recorded(root)}
    contents, entries, ids = _Contents(root), dict(before), []
    for patch in patches:
        known = before.get(patch.id)
        if known is not None and _stands(root, known):
            continue
        files = _stage(patch, contents)
        if files:
            ids.append(patch.id)
            entries[patch.id] = _entry(patch, {**(known.files if known else {}), **files})
    contents.check()
    if entries != before:
        _write_record(root, tuple(entries.values()))
    contents.write()
    return tuple(ids)


def undo(root: Path, ids: Collection[str] | None = None, *, dry_run: bool = False) -> tuple[str, ...]:
    """Take back what is recorded, the last one first, all or those of `ids`; their ids.

    Raises:
        PatchRefused: somebody has changed the same lines since; no file was changed.
    """
    contents, done = _Contents(root), recorded(root)
    going = [applied for applied in reversed(done) if ids is None or applied.id in ids]
    for applied in going:
        for section in sections(applied.diff):
            if section.path in applied.files:
                _take_back(applied, section, contents)
    contents.check()
    if going and not dry_run:
        contents.write()
        _write_record(root, tuple(applied for applied in done if applied not in going))
    return tuple(applied.id for applied in going)


class _Contents:
    """The files as they will be: read once, changed in memory, written in the end."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._old: dict[str, bytes | None] = {}
        self._new: dict[str, bytes] = {}

    def get(self, path: str) -> bytes | None:
        """The content as it is so far; None when there is no such file."""
        if path not in self._old:
            self._old[path] = _read(self._root, path)
        return self._new.get(path, self._old[path])

    def set(self, path: str, content: bytes) -> None:
        """What the file shall hold."""
        self._new[path] = content

    def check(self) -> None:
        """Refuse before the first file is written when one of them cannot be.

        Raises:
            PatchRefused: a file or its folder is not writable.
        """
        for path in self._new:
            file = self._root / path
            locked = [each for each in (file, file.parent) if not os.access(each, os.W_OK)]
            if locked:
                raise PatchRefused(
                    f"{path} has to be changed, and {locked[0]} is not writable. Nothing was changed.",
                    next_step=f"Make it writable: chmod u+w {locked[0]}",
                )

    def write(self) -> None:
        """Replace the files, each at once, with the rights that they have."""
        for path, content in self._new.items():
            file = self._root / path
            mode = file.stat().st_mode
            write_atomic(file, content, error=PatchRefused)
            with contextlib.suppress(OSError):
                file.chmod(stat.S_IMODE(mode))


def _state(content: bytes | None, section: Section) -> State:
    if content is None:
        return "refused"
    if fits(content, section, reverse=True):
        return "applied"
    return "clean" if fits(content, section) else "refused"


def _stands(root: Path, applied: Applied) -> bool:
    """Whether it is whole and all its files are as it left them, so that git need not be asked."""
    left = {path: change.after for path, change in applied.files.items()}
    return all(
        (content := _read(root, section.path)) is not None and _sha(content) == left.get(section.path)
        for section in sections(applied.diff)
    )


def _stage(patch: Patch, contents: _Contents) -> dict[str, FileChange]:
    """Make the patch's changes in memory, as far as they do not stand already; what it changed."""
    files = {}
    for section in sections(patch.diff):
        content = contents.get(section.path)
        if content is None:
            raise _refused(patch.id, section.path, "there is no such file in this checkout")
        if fits(content, section, reverse=True):
            continue
        try:
            result = changed(content, section)
        except DoesNotApply as error:
            raise _refused(patch.id, section.path, str(error)) from None
        contents.set(section.path, result)
        files[section.path] = FileChange(before=_sha(content), after=_sha(result))
    return files


def _entry(patch: Patch, files: Mapping[str, FileChange]) -> Applied:
    return Applied(id=patch.id, sha256=_sha(patch.diff.encode()), diff=patch.diff, files=files)


def _take_back(applied: Applied, section: Section, contents: _Contents) -> None:
    content = contents.get(section.path)
    if content is None or _sha(content) == applied.files[section.path].before:
        return
    try:
        contents.set(section.path, changed(content, section, reverse=True))
    except DoesNotApply as error:
        if fits(content, section):  # somebody has taken it back already
            return
        raise _kept(applied.id, section.path, str(error)) from None


def _read(root: Path, path: str) -> bytes | None:
    """A file of the checkout; a link that leads elsewhere is none."""
    file = root / path
    with contextlib.suppress(OSError):
        if os.path.normcase(file.resolve()) == os.path.normcase(root.resolve() / path):
            return file.read_bytes()
    return None


def _write_record(root: Path, patches: tuple[Applied, ...]) -> None:
    path = state_dir(root) / RECORD
    if patches:
        write_atomic(path, codec.dumps(Record(patches=patches)).encode(), error=PatchRefused)
        return
    with told_as(PatchRefused, path):
        unlink(path, missing_ok=True)


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _refused(id: str, path: str, words: str) -> PatchRefused:
    return PatchRefused(
        f"The patch {id} does not fit {path}. Nothing was changed.",
        looked=tuple(words.splitlines()),
        next_step=f"If you changed that file, take your change back (git checkout -- {path}). A patch that "
        "does not fit the file as released is a bug of this tool.",
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
        next_step="Restore the patched files (git checkout -- aten) and remove the record.",
    )
