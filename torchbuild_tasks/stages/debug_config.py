"""What `debug-config` does: entries in VS Code's files, compile_commands.json for clangd, and checks."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from torchbuild_tasks.core.debug_config import LAUNCH, TASKS, Lists, findings, launch_lists, task_lists
from torchbuild_tasks.core.jsonc import NotEditable, with_entries
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Finding
from torchbuild_tasks.model.debugging import Debugging
from torchbuild_tasks.system.files import STATE_DIR, state_dir, told_as, write_atomic

COMMANDS: Final = "compile_commands.json"
COPIED: Final = "compile_commands.sha256"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """One file of VS Code: `problem` says why it was left as it is; `entries` are then to paste."""

    path: str
    problem: str = ""
    entries: Mapping[str, Any] | None = None


class DebugConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: the files, a sentence on compile_commands.json, and what was found."""

    files: tuple[Written, ...]
    commands: str
    findings: tuple[Finding, ...]


def write_debug_config(root: Path, debugging: Debugging, *, dry_run: bool) -> DebugConfig:
    """Give .vscode/launch.json and tasks.json our entries, link compile_commands.json, and check.

    Raises:
        UsageError: something cannot be written.
    """
    windows = sys.platform == "win32"
    folder = root / ".vscode"
    tool = (sys.executable, "-m", "torchbuild_tasks.fronts.console")
    launch = launch_lists(debugging, root.as_posix(), windows)
    files = (
        _give(folder / "launch.json", LAUNCH, launch, dry_run),
        _give(folder / "tasks.json", TASKS, task_lists(tool, windows), dry_run),
    )
    commands = _link(root, debugging.commands, dry_run)
    return DebugConfig(files=files, commands=commands, findings=findings(debugging, windows))


def _give(path: Path, empty: Mapping[str, Any], lists: Lists, dry_run: bool) -> Written:
    try:
        before = path.read_bytes()
        text = before.decode("utf-8")
    except FileNotFoundError:
        before, text = b"", json.dumps(empty, indent=4) + "\n"
    except (OSError, UnicodeDecodeError) as error:
        return Written(path=str(path), problem=f"it cannot be read: {error}", entries=_plain(lists))
    try:
        after = with_entries(text, lists).encode()
    except NotEditable as error:
        return Written(path=str(path), problem=str(error), entries=_plain(lists))
    if after != before and not dry_run:
        with told_as(UsageError, path):
            path.parent.mkdir(exist_ok=True)
            place = path.resolve()  # a link to a file elsewhere stays one
        write_atomic(place, after, error=UsageError)
    return Written(path=str(path))


def _plain(lists: Lists) -> dict[str, Any]:
    return {name: entries for name, (_, entries) in lists.items()}


def _link(root: Path, source: str | None, dry_run: bool) -> str:
    """Put the build's compile_commands.json where clangd looks; somebody's own file is kept."""
    place = root / COMMANDS
    if source is None:
        return f"{COMMANDS}: the build tree has none; build with --set CMAKE_EXPORT_COMPILE_COMMANDS=ON"
    if Path(source) == place:
        return f"{place} is there"
    if os.path.lexists(place) and not _is_ours(root, place, Path(source)):
        return f"{place} is not ours and is kept; clangd reads it"
    if dry_run:
        return f"{place} would lead to {source}"
    with told_as(UsageError, place):
        if sys.platform == "win32":  # a link needs a right there that few have
            shutil.copyfile(source, place)
            digest = hashlib.sha256(place.read_bytes()).hexdigest()
            write_atomic(state_dir(root) / COPIED, digest.encode(), error=UsageError)
            return f"{place} is a copy of {source}; run this again after a build"
        if not place.is_symlink():
            place.symlink_to(os.path.relpath(source, root))
    return f"{place} leads to {source}"


def _is_ours(root: Path, place: Path, source: Path) -> bool:
    """A link to that file, or the copy that we made, unchanged."""
    if place.is_symlink():
        return place.resolve() == source.resolve()
    note = root / STATE_DIR / COPIED
    if not note.is_file() or not place.is_file():
        return False
    return hashlib.sha256(place.read_bytes()).hexdigest() == note.read_text("utf-8").strip()
