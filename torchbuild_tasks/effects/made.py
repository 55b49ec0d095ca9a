"""Records what builds made in a checkout, and removes just that.

Around a build: `begin`, then `finish` of what it returns, however the build ended. For a
clean: `plan_removal`, ask, `remove`. The record itself is in `owned.py`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from torchbuild_tasks.effects import owned
from torchbuild_tasks.effects.owned import BEFORE, MADE, Kept, Listing, Outputs
from torchbuild_tasks.errors import CleanRefused, UsageError
from torchbuild_tasks.system import process
from torchbuild_tasks.system.files import STATE_DIR, Patience, state_dir, told_as, unlink
from torchbuild_tasks.system.log import name_newest
from torchbuild_tasks.system.remove import is_folder, is_link, snapshot


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What a clean would remove and what it keeps, relative to `root`, folders with a final `/`.

    `planned` is when this was found out, in nanoseconds: what changes later is kept too.
    """

    root: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    kept: Kept
    planned: int


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed; `failed` are files that are still there, each with the reason."""

    count: int
    bytes: int
    failed: Kept = ()


# ---------------------------------------------------------------- around a build


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A build under way, from `begin`."""

    root: Path
    outputs: Outputs

    def finish(self) -> int:
        """Write down what the build made, however it ended; returns how many paths builds own now."""
        after = snapshot(self.root, self.outputs)
        before = owned.read(self.root, BEFORE)
        earlier = owned.read(self.root, MADE)
        mine = self.outputs.made(after if before is None else before, after, earlier or {})
        owned.write(self.root, MADE, mine)
        before_file = self.root / STATE_DIR / BEFORE
        with told_as(UsageError, before_file):
            unlink(before_file, missing_ok=True)
        return len(mine)


def begin(root: Path, build_dir: Path | str, outputs: Outputs, *, log_time: int | None) -> Build:
    """List what is there before a build writes anything.

    The build's own log is open already. A listing that is still there is that of a build
    which was killed; `log_time` (ns) is when the log before this one was last written.
    What the killed build wrote until its last word is claimed, later files never.

    Raises:
        UsageError: the checkout cannot be written.
    """
    outputs = outputs.below(owned.within(root, build_dir))
    state = state_dir(root)
    now = snapshot(root, outputs)
    if (state / BEFORE).exists():
        owned.write(root, MADE, owned.owned(root, outputs, now, log_time))
    owned.write(root, BEFORE, now, name_newest(state))
    return Build(root=root, outputs=outputs)


# ---------------------------------------------------------------- a clean


def plan_removal(
    root: Path, build_dir: Path | str, outputs: Outputs, *, log_time: int | None = None
) -> Removal:
    """Find out what a clean would remove; changes nothing.

    `log_time` is given when no build runs here, as for `begin`.

    Raises:
        CleanRefused: no build of ours was recorded here, the current folder would be
            removed, or git cannot say what is tracked.
    """
    inside = owned.within(root, build_dir)
    planned = time.time_ns()
    outputs = outputs.below(inside)
    now = snapshot(root, outputs)
    if not owned.is_recorded(root):
        _refuse_unrecorded(root, now)
    mine = owned.owned(root, outputs, now, log_time)
    files, kept = outputs.sort_out(mine, now, _tracked(root, mine))
    if inside and is_link(root / inside):
        kept = (*kept, (inside, "a symbolic link; what is behind it is not followed"))
    folders = _emptied(root, files, [path for path in mine if path in now and path.endswith("/")])
    _refuse_from_inside(root, folders)
    return Removal(root=str(root), files=files, folders=folders, kept=kept, planned=planned)


def plan_stale(root: Path, build_dir: Path | str, outputs: Outputs, listed: Iterable[str]) -> Removal:
    """Find out which of these files builds made and left as they are; changes nothing.

    Raises:
        CleanRefused: git cannot say what is tracked.
    """
    planned = time.time_ns()
    wanted = frozenset(listed)
    outputs = outputs.below(owned.within(root, build_dir))
    now = snapshot(root, outputs)
    mine = owned.read(root, MADE) or {}
    stale = {path: stamp for path, stamp in mine.items() if path in wanted}
    files, kept = outputs.sort_out(stale, now, _tracked(root, stale))
    folders = _emptied(root, files, [path for path in mine if path in now and path.endswith("/")])
    return Removal(root=str(root), files=files, folders=folders, kept=kept, planned=planned)


def _emptied(root: Path, files: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Those of the build's own folders that hold nothing else, deepest first."""
    going = set(files)
    for folder in sorted(folders, reverse=True):  # what is below sorts after, so reversed before
        with contextlib.suppress(OSError):
            inside = [folder + path.name for path in (root / folder).iterdir()]
            if all(path in going or f"{path}/" in going for path in inside):
                going.add(folder)
    return tuple(sorted((path for path in going if path.endswith("/")), reverse=True))


def _tracked(root: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Those that git tracks, in whatever case on Windows; none outside a repository."""
    if not (paths := tuple(paths)):
        return ()
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # set inside a git hook
    env = {name: value for name, value in os.environ.items() if name not in elsewhere} | {"LC_ALL": "C"}
    listed = process.capture(("git", "ls-files", "-z"), cwd=root, env=env)
    if listed.rc == 0:
        tracked = frozenset(os.path.normcase(name) for name in os.fsdecode(listed.stdout).split("\0"))
        return tuple(path for path in paths if os.path.normcase(path) in tracked)
    if not (root / ".git").exists():
        return ()
    raise CleanRefused(
        "git cannot say which files it tracks, so nothing is removed.",
        looked=("git ls-files: " + listed.stderr.decode(errors="replace").strip(),),
        next_step="Make `git ls-files` work in the checkout; git's own words say how.",
    )


def _refuse_unrecorded(root: Path, now: Listing) -> None:
    files = sorted(path for path in now if not path.endswith("/"))
    if not files:
        return
    raise CleanRefused(
        f"No build by this tool is recorded in {root}, so nothing there is known to be its work.",
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
    """Remove the files one by one, then the folders that are empty, and forget both.

    No folder is entered through a link, so nothing outside the checkout can be reached.
    Raises UsageError when the record cannot be written.
    """
    root, real, size = Path(removal.root), {""}, 0
    gone: set[str] = set()
    failed: list[tuple[str, str]] = []
    patience = Patience()
    for path in removal.files:
        try:
            size += _unlink(root, path, removal.planned, real, patience)
            gone.add(path)
        except OSError as error:
            failed.append((path, error.strerror or str(error)))
    for folder in removal.folders:
        with contextlib.suppress(OSError):
            if _is_real(root, folder, real):
                patience.rmdir(root / folder)
                gone.add(folder)
    owned.forget(root, gone)
    return Removed(count=len(removal.files) - len(failed), bytes=size, failed=tuple(failed))


def _unlink(root: Path, path: str, planned: int, real: set[str], patience: Patience) -> int:
    """Remove one file and return its size; OSError says why it stays."""
    if not _is_real(root, path.rpartition("/")[0], real):
        raise OSError("a folder on the way to it is now a link")
    info = (root / path).lstat()
    # Not the time of change of the inode: removing another hard link to it sets that.
    if is_folder(info) or info.st_mtime_ns > planned:
        raise OSError("changed just now")
    patience.unlink(root / path)
    return info.st_size


def _is_real(root: Path, folder: str, real: set[str]) -> bool:
    """Whether every part of this path below the root is a folder and no link; `real` remembers."""
    folder = folder.rstrip("/")
    if folder in real:
        return True
    known = _is_real(root, folder.rpartition("/")[0], real) and is_folder((root / folder).lstat())
    if known:
        real.add(folder)
    return known
