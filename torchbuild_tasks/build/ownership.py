"""The record of the files that builds own in a checkout. A clean removes these files and no others.

`before.json` lists the files from before a build, and names the build's log; it exists while a build runs,
and after one was killed. `made.json` has the files that builds own, each with its stamp at the end of a
build, and separately new files that nothing names, which are kept until a later build names them.
build/outputs.py decides which files may be claimed and which must be kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from torchbuild_tasks.build.named_files import find_named
from torchbuild_tasks.build.outputs import UNNAMED, Listing, Outputs
from torchbuild_tasks.errors import CleanRefused, UsageError
from torchbuild_tasks.model.record import Removal
from torchbuild_tasks.system.files import (
    STATE_DIR,
    Patience,
    state_dir,
    translate_errors,
    unlink,
    write_json,
)
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.left_running import ENDED
from torchbuild_tasks.system.log import last_write_of, name_newest
from torchbuild_tasks.system.reading import read_bytes, read_value
from torchbuild_tasks.system.remove import Stamp, is_folder, is_link, snapshot, stamp
from torchbuild_tasks.values import replace

BEFORE: Final = "before.json"
OWNED: Final = "made.json"
Reasons = tuple[tuple[str, str], ...]
Written = Mapping[Path, tuple[bytes | None, os.stat_result | None]]
_SMALL: Final = 1 << 20  # bytes of what a step writes at every build; torch/version.py has 200


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A listing: its files, the log of the build, and new files that nothing names; each with its stamp."""

    log: str = ""
    paths: dict[str, Stamp] = {}
    unnamed: dict[str, Stamp] = {}


def owned(root: Path) -> Record:
    """Return what builds own in a checkout; nothing if that cannot be read."""
    return _read(root, OWNED) or Record()


def _read(root: Path, name: str) -> Record | None:
    return read_value(Record, root / STATE_DIR / name)


def write(root: Path, name: str, record: Record) -> None:
    """Write a listing; raises UsageError if that fails."""
    values = msgspec.structs.asdict(record)  # as it is: to_json would take each of 20,000 files apart
    write_json(root / STATE_DIR / name, values, error=UsageError)


def forget(root: Path, paths: set[str]) -> None:
    """Remove paths from both listings: after a clean within a build they must not look foreign."""
    for name in (OWNED, BEFORE):
        if record := _read(root, name):
            remaining = {path: stamp for path, stamp in record.paths.items() if path not in paths}
            write(root, name, replace(record, paths=remaining))


def announce(root: Path, staged: Path, names: Iterable[str]) -> None:
    """Record files as owned before they are moved into the checkout, in case the move is killed.

    Args:
        staged: the folder that has them now, under the same names.
        names: the files, relative to both.

    Raises:
        UsageError: the record cannot be written.
    """
    record = owned(root)
    for name in names:
        record.paths[name] = stamp((staged / name).lstat())
    write(root, OWNED, record)


def renew(root: Path, since: int, written: Written | None = None) -> None:
    """Update the stamps of owned files that steps which Ninja always runs have written since then.

    Args:
        since: a time, in nanoseconds.
        written: the outputs of the one step that was run, where it says what it writes (`read_outputs`).

    Raises:
        UsageError: the record cannot be written.
    """
    record = owned(root)
    known = written is not None and any(info for _, info in written.values())
    names = {_name_below(root, path) for path in written or ()} & record.paths.keys()
    for name in names if known else record.paths:
        with contextlib.suppress(OSError):
            info = os.lstat(f"{root}/{name}")
            if info.st_mtime_ns >= since and not is_folder(info):
                record.paths[name] = stamp(info)
    if record.paths:
        write(root, OWNED, record)


def read_outputs(build_dir: Path, outputs: Iterable[str]) -> Written | None:
    """Return what a step will write again: content and times of the outputs that are there.

    Args:
        build_dir: the build tree, to which Ninja's paths are relative.
        outputs: all that the step says that it writes; CMake's names for steps are no files.

    Returns:
        None where one is no small file.
    """
    written: dict[Path, tuple[bytes | None, os.stat_result | None]] = {}
    for name in outputs:
        path = build_dir / name
        try:
            info = path.lstat()
            written[path] = (read_bytes(path, most=_SMALL), info)
        except FileNotFoundError:
            written[path] = (None, None)
            continue
        except OSError:
            return None
        if not stat.S_ISREG(info.st_mode):
            return None
    return written


def put_times_back(root: Path, before: Written | None) -> bool:
    """Give outputs whose content a step left as it was the times they had, so that nothing looks changed.

    Else every build with nothing to do would have to note 20,000 files anew (0.1 s of 2.6.0).

    Returns:
        Whether all that the step writes, and that is something, is as it was and as it is recorded.
    """
    if not before or not any(info for _, info in before.values()):
        return False
    try:
        record = read_bytes(root / STATE_DIR / OWNED)
        if not all(_has_stamp(record, root, path, info) for path, (_, info) in before.items() if info):
            return False  # written by a bare `ninja`, say
        for path, (data, info) in before.items():
            if info is None:
                if os.path.lexists(path):
                    return False
            elif not stat.S_ISREG(path.lstat().st_mode) or read_bytes(path, most=_SMALL) != data:
                return False
            else:
                os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))  # on Windows it follows any link
    except OSError:
        return False
    return True


def _name_below(root: Path, path: Path) -> str:
    """Return a path relative to the checkout; as it is for one elsewhere, which no record has."""
    normal = Path(os.path.normpath(path))
    return (normal.relative_to(root) if normal.is_relative_to(root) else normal).as_posix()


def _has_stamp(record: bytes, root: Path, path: Path, info: os.stat_result) -> bool:
    """Say whether a record has a file as it is: its text is searched, for to read it takes long."""
    modified, size, _ = stamp(info)
    return f"{json.dumps(_name_below(root, path))}:[{modified},{size},".encode() in record


def is_recorded(root: Path) -> bool:
    """Say whether a build of ours ever began here."""
    return any((root / STATE_DIR / name).exists() for name in (OWNED, BEFORE))


def find_claimed(
    root: Path, build_dir: Path | str, outputs: Outputs, now: Listing, log_time: int | None
) -> Record:
    """Return the files that builds own, including those of a killed build up to the end of its log.

    `log_time` is when the newest log was last written. That log may be of a later run that ended before it
    built anything, so the killed build's own log is looked up as well.
    """
    recorded = owned(root)
    earlier = recorded.paths
    begun = _read(root, BEFORE)
    if begun is None or log_time is None:
        return Record(paths=earlier, unnamed={path: now[path] for path in recorded.unnamed if path in now})
    before = begun.paths
    if begun.log:
        log_time = min(log_time, last_write_of(root / STATE_DIR, begun.log) or 0)
    claimed = outputs.claim(before, now, earlier, until=log_time)
    # Programs of the killed build may have run until a later run ended them: claim files that it names.
    if (ended := _time_of_end(root)) > log_time:
        later = outputs.claim(before, now, earlier, until=ended)
        other = {path for path, stamp in later.items() if stamp != claimed.get(path)}
        named = find_named(root, Path(root, build_dir), other)
        claimed = {**claimed, **{path: later[path] for path in named}}
    return _split_claims(root, build_dir, outputs, claimed, earlier)


def _time_of_end(root: Path) -> int:
    """Return when leftover programs of the killed build were ended, in nanoseconds; 0 if there were none."""
    with contextlib.suppress(OSError):
        ended = (root / STATE_DIR / ENDED).stat().st_mtime_ns
        return ended if ended > (root / STATE_DIR / BEFORE).stat().st_mtime_ns else 0
    return 0


def _split_claims(
    root: Path, build_dir: Path | str, outputs: Outputs, claimed: Listing, earlier: Listing
) -> Record:
    """Split the claimed files into those that the build names and the others."""
    unnamed = outputs.find_unnamed(
        claimed, earlier, lambda files: find_named(root, Path(root, build_dir), files)
    )
    named = {path: stamp for path, stamp in claimed.items() if path not in unnamed}
    return Record(paths=named, unnamed={path: claimed[path] for path in unnamed})


def within(root: Path, build_dir: Path | str) -> str:
    """Return the build folder relative to the checkout, with a final `/`; "" if it is elsewhere."""
    with contextlib.suppress(ValueError):
        parts = (root / build_dir).relative_to(root).parts
        if ".." not in parts:
            return "".join(f"{part}/" for part in _spell_as_on_disk(root, parts))
    return ""


def _spell_as_on_disk(folder: Path, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the names as spelled on the disk: on Windows `Build` may be an existing `build`."""
    for part in parts:
        name = _name_there(folder, part) if sys.platform == "win32" else part
        yield name
        folder = folder / name


def _name_there(folder: Path, name: str) -> str:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [path.name for path in folder.iterdir()]
    same = (each for each in names if os.path.normcase(each) == os.path.normcase(name))
    return name if name in names else next(same, name)


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a clean; `failed` are files that could not be removed, each with the reason."""

    count: int
    bytes: int
    failed: Reasons = ()


# ---- around a build


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A running build, from `begin`."""

    root: Path
    build_dir: Path | str
    outputs: Outputs

    def finish(self) -> None:
        """Record the files of the build, also of a failed one."""
        after = snapshot(self.root, self.outputs)
        before = _read(self.root, BEFORE)
        earlier = owned(self.root).paths
        claimed = self.outputs.claim(before.paths if before else after, after, earlier)
        write(self.root, OWNED, _split_claims(self.root, self.build_dir, self.outputs, claimed, earlier))
        before_file = self.root / STATE_DIR / BEFORE
        with translate_errors(UsageError, before_file):
            unlink(before_file, missing_ok=True)


def begin(root: Path, build_dir: Path | str, outputs: Outputs, *, log_time: int | None) -> Build:
    """List the existing files before a build writes any.

    The build's own log is open already. A listing that is still there is that of a build
    which was killed; `log_time` (ns) is when the log before this one was last written.
    What the killed build wrote until its last word is claimed, later files never.

    Raises:
        UsageError: the checkout cannot be written.
    """
    outputs = outputs.below(within(root, build_dir))
    state = state_dir(root)
    now = snapshot(root, outputs)
    mine = find_claimed(root, build_dir, outputs, now, log_time)
    if (state / BEFORE).exists():
        write(root, OWNED, mine)
    # An interrupted build may not have written its names yet, so the unnamed files are checked again later.
    before = {path: now[path] for path in now if path not in mine.unnamed}
    write(root, BEFORE, Record(log=name_newest(state), paths=before))
    return Build(root=root, build_dir=build_dir, outputs=outputs)


# ---- a clean


def plan_removal(
    root: Path, build_dir: Path | str, outputs: Outputs, *, log_time: int | None = None
) -> Removal:
    """Return what a clean would remove; change nothing.

    `log_time` is given when no build runs here, as for `begin`.

    Raises:
        CleanRefused: no build of ours was recorded here, the current folder would be
            removed, or git cannot say what is tracked.
    """
    inside = within(root, build_dir)
    planned = time.time_ns()
    outputs = outputs.below(inside)
    now = snapshot(root, outputs)
    if not is_recorded(root):
        _refuse_unrecorded(root, now)
    claimed = find_claimed(root, build_dir, outputs, now, log_time)
    paths = claimed.paths
    files, kept = outputs.split_removable(paths, now, _select_tracked(root, paths))
    kept = (*kept, *((path, UNNAMED) for path in sorted(claimed.unnamed) if not path.endswith("/")))
    if inside and is_link(root / inside):
        kept = (*kept, (inside, "a symbolic link; what is behind it is not followed"))
    folders = _find_emptied(root, files, [path for path in paths if path in now and path.endswith("/")])
    _refuse_from_inside(root, folders)
    return Removal(root=str(root), files=files, folders=folders, kept=kept, planned=planned)


def plan_stale(root: Path, build_dir: Path | str, outputs: Outputs, listed: Iterable[str]) -> Removal:
    """Return which of these files are unchanged outputs of builds; change nothing.

    Raises:
        CleanRefused: git cannot say what is tracked.
    """
    planned = time.time_ns()
    wanted = frozenset(listed)
    outputs = outputs.below(within(root, build_dir))
    now = snapshot(root, outputs)
    recorded = owned(root).paths
    stale = {path: stamp for path, stamp in recorded.items() if path in wanted}
    files, kept = outputs.split_removable(stale, now, _select_tracked(root, stale))
    folders = _find_emptied(root, files, [path for path in recorded if path in now and path.endswith("/")])
    return Removal(root=str(root), files=files, folders=folders, kept=kept, planned=planned)


def _find_emptied(root: Path, files: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the build's own folders that will be empty, deepest first."""
    going = set(files)
    for folder in sorted(folders, reverse=True):  # children sort after their folder; reversed, before it
        with contextlib.suppress(OSError):
            inside = [folder + path.name for path in (root / folder).iterdir()]
            if all(path in going or f"{path}/" in going for path in inside):
                going.add(folder)
    return tuple(sorted((path for path in going if path.endswith("/")), reverse=True))


def _select_tracked(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that git tracks (case ignored on Windows); none outside a repository."""
    if not (paths := tuple(paths)):
        return ()
    listed = Git(folder=root).ask("ls-files", "-z", timeout=None)
    if listed.rc == 0:
        tracked = frozenset(os.path.normcase(name) for name in os.fsdecode(listed.stdout).split("\0"))
        return tuple(path for path in paths if os.path.normcase(path) in tracked)
    if not (root / ".git").exists():
        return ()
    raise CleanRefused(
        "git cannot say which files it tracks, so nothing is removed.",
        looked=("git ls-files: " + listed.error_text,),
        next_step="Make `git ls-files` work in the checkout; git's own words say how.",
    )


def _refuse_unrecorded(root: Path, now: Listing) -> None:
    files = sorted(path for path in now if not path.endswith("/"))
    if not files:
        return
    raise CleanRefused(
        f"No build by this tool is recorded in {root}, so nothing there can be removed safely.",
        looked=(f"{len(files)} files look like outputs of a build:", *files[:10]),
        next_step="PyTorch's own clean is `python setup.py clean` (up to 2.13) or `spin clean`. It removes "
        "all that .gitignore lists, a folder `env` of yours too: `git clean -ndX` shows what is ignored.",
    )


def _refuse_from_inside(root: Path, folders: Iterable[str]) -> None:
    with contextlib.suppress(OSError, ValueError):  # gone already, or elsewhere
        here = Path.cwd().resolve().relative_to(root.resolve()).as_posix() + "/"
        if any(here.startswith(folder) for folder in folders):
            raise CleanRefused(
                f"You are in {root / here}, which would be removed.", next_step=f"Go to {root} and try again."
            )


def remove(removal: Removal) -> Removed:
    """Remove the files, then the empty folders, and take both off the record.

    No folder is entered through a link, so nothing outside the checkout can be reached.
    Raises UsageError when the record cannot be written.
    """
    root = Path(removal.root)
    real = {""}
    size = 0
    removed: set[str] = set()
    failed: list[tuple[str, str]] = []
    patience = Patience()
    for path in removal.files:
        try:
            size += _unlink(root, path, removal.planned, real, patience)
            removed.add(path)
        except OSError as error:
            failed.append((path, error.strerror or str(error)))
    for folder in removal.folders:
        with contextlib.suppress(OSError):
            if _has_no_link(root, folder, real):
                patience.rmdir(root / folder)
                removed.add(folder)
    forget(root, removed)
    return Removed(count=len(removal.files) - len(failed), bytes=size, failed=tuple(failed))


def _unlink(root: Path, path: str, planned: int, real: set[str], patience: Patience) -> int:
    """Remove one file and return its size; raises OSError."""
    if not _has_no_link(root, path.rpartition("/")[0], real):
        raise OSError("a folder on the way to it is now a link")
    info = (root / path).lstat()
    # ctime is not compared: removing another hard link to the file changes it.
    if is_folder(info) or info.st_mtime_ns > planned:
        raise OSError("changed just now")
    patience.unlink(root / path)
    return info.st_size


def _has_no_link(root: Path, folder: str, real: set[str]) -> bool:
    """Say whether every part of this path below the root is a folder and no link; `real` is a cache."""
    folder = folder.rstrip("/")
    if folder in real:
        return True
    known = _has_no_link(root, folder.rpartition("/")[0], real) and is_folder((root / folder).lstat())
    if known:
        real.add(folder)
    return known
