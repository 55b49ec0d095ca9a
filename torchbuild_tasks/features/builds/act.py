"""List, show, enter, prepare and remove named builds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchbuild_tasks.build.ownership import owned
from torchbuild_tasks.build.work import Reporter
from torchbuild_tasks.errors import CleanRefused, NotBuilt, SourceError, UsageError
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import look_at_running
from torchbuild_tasks.facts.trust import is_own_env_file
from torchbuild_tasks.features.builds.choose import ACTIVE, entry_line
from torchbuild_tasks.features.builds.named_build import (
    NO_BUILD,
    Note,
    Place,
    last_build,
    place_of,
    read_default,
    read_note,
    write_default,
    write_note,
)
from torchbuild_tasks.model.source import Away, Entering, Last, Shown
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.env_files import file_name
from torchbuild_tasks.plan.settings import Settings, pick
from torchbuild_tasks.system import lock, venv
from torchbuild_tasks.system.files import STATE_DIR, state_dir
from torchbuild_tasks.system.git import worktree
from torchbuild_tasks.system.git.fetch import Access
from torchbuild_tasks.system.git.run import Git
from torchbuild_tasks.system.remove import size_of, stamp
from torchbuild_tasks.text.show import size_text
from torchbuild_tasks.text.words import as_word
from torchbuild_tasks.values import replace

SHELLS: Final = ("sh", "fish", "bat", "ps1")


@contextlib.contextmanager
def hold_build(place: Place, report: Reporter, access: Access) -> Iterator[None]:
    """Lock the build for one run; create its worktree, or check that it is at torchbuild.toml's ref.

    Raises:
        TreeBusy: another run makes, builds or removes it.
        SourceError: it cannot be made or switched.
    """
    if not place.worktree:
        yield
        return
    with _lock_build(place.main, place.build.name):
        _make_ready(place, report, access)
        yield


def _make_ready(place: Place, report: Reporter, access: Access) -> None:
    git = Git(folder=place.main, config=access.config)
    note = read_note(place.folder)
    if note and note.name != place.build.name:
        raise UsageError(
            f"{place.folder} is the build {note.name}, and {place.build.name} has the same folder.",
            next_step=f"Give one of them another: folder = ... in [builds.{place.build.name}]",
        )
    if _state(git, place.folder) != "here":
        report.stage("make the worktree")
        report.note(f"{place.folder}: a worktree of {place.main} at {place.ref}")
        _need_git(place)
        worktree.add(git, place.folder, place.ref, access)
    elif note and note.ref != place.ref:
        report.stage("switch the worktree")
        report.note(f"{place.folder}: from {note.ref} to {place.ref}")
        worktree.switch(Git(folder=place.folder, config=access.config), place.ref, access)
    note = Note(name=place.build.name, config=place.config, main=str(place.main), ref=place.ref)
    if read_note(place.folder) != note:
        write_note(place.folder, note)


def _need_git(place: Place) -> None:
    if not (place.main / ".git").exists():
        raise SourceError(
            f"{place.main} is not under git, so it can have no worktree for the build {place.build.name}.",
            next_step=f"Clone PyTorch with git, or name another checkout: source = ... in "
            f"[builds.{place.build.name}]",
        )


@contextlib.contextmanager
def _lock_build(main: Path, name: str) -> Iterator[None]:
    folder = state_dir(main) / "builds" / name
    folder.mkdir(parents=True, exist_ok=True)
    with lock.hold(folder, f"builds {name}"):
        yield


def _state(git: Git, folder: Path) -> str | None:
    """Return the state of a worktree of ours that exists, as the main checkout records it."""
    entry = next((entry for entry in _entries(git) if entry.folder == folder), None)
    return entry.state if entry and (entry.state == "adding" or folder.exists()) else None


def _entries(git: Git) -> tuple[worktree.Entry, ...]:
    return worktree.entries(git) if (git.folder / ".git").exists() else ()


def list_builds(settings: Settings, main: Path) -> tuple[Shown, ...]:
    """Return every build of the settings file, then our worktrees that are no longer in it."""
    git = Git(folder=main)
    places = [place_of(settings, build, main) for build in settings.builds.values()]
    default = read_default(main)
    shown = [_describe(place, git) for place in places]
    shown = [
        replace(each, state=f"{each.state}, the default") if each.name == default else each for each in shown
    ]
    for entry in _entries(git):
        note = read_note(entry.folder)
        if entry.folder not in {place.folder for place in places} and note:
            state = "not in torchbuild.toml"
            shown.append(_row(note.name, entry.folder, state, note.ref))
    return tuple(shown)


def _describe(place: Place, git: Git) -> Shown:
    if not place.worktree:
        state = "your own checkout" if place.folder.exists() else "no such checkout"
    else:
        state = {"here": "there", "adding": "half made", None: "not made yet"}[_state(git, place.folder)]
    return _row(place.build.name, place.folder, state, place.build.ref or "", place.build.parents)


def _row(name: str, folder: Path, state: str, ref: str, parents: tuple[str, ...] = ()) -> Shown:
    return Shown(
        name=name,
        folder=str(folder),
        state=state,
        active=is_active(name, folder),
        ref=ref,
        parents=parents,
        last=_last(folder),
    )


def _last(folder: Path) -> Last | None:
    """Return the last build; a killed one still has the result "running"."""
    last = last_build(folder) if folder.exists() else None
    if last is None or last.result != "running":
        return last
    running = look_at_running(Probe(), str(folder))
    return replace(last, result="running" if running else "cut off")


def show_build(settings: Settings, name: str, main: Path) -> tuple[Shown, ...]:
    """Return one build with all its fields and variables, and the table that sets each."""
    build = pick(settings.builds, name, settings.path)
    effective = settings.of(build)
    table = {**effective.values, **{f"set.{key}": value for key, value in effective.variables.items()}}
    shown = _describe(place_of(settings, build, main), Git(folder=main))
    values = {key: (value, effective.place(key)) for key, value in sorted(table.items())}
    return (replace(shown, values=values),)


def is_active(name: str, folder: Path) -> bool:
    """Say whether this shell has entered the build: by its hook, its folder, or its venv."""
    if os.environ.get(ACTIVE) == name:
        return True
    inside = [Path.cwd(), *(Path(value) for value in (os.environ.get("VIRTUAL_ENV"),) if value)]
    return any(path.resolve().is_relative_to(folder) for path in inside)


def use_build(settings: Settings, request: BuildRequest, main: Path) -> Entering:
    """Make a build the default of the checkout, and return the lines that enter it, by shell.

    Raises:
        UsageError: there is no such build, with --env-shell no env file of it, or this shell is in another.
    """
    name = str(request.name)
    if name in NO_BUILD and name not in settings.builds:
        write_default(main, None)
        return Entering(name="", folder=str(main), lines={}, missing=())
    if request.env_shell not in (None, "all"):  # which shells evaluate when they enter
        return enter_build(settings, request, main)
    place = place_of(settings, pick(settings.builds, name, settings.path), main)
    _refuse_two(name)
    write_default(main, name)
    if not any(is_own_env_file(place.folder / file_name(shell)) for shell in SHELLS):
        return Entering(name=name, folder=str(place.folder), lines={}, missing=SHELLS)
    return enter_build(settings, request, main)


def enter_build(settings: Settings, request: BuildRequest, main: Path) -> Entering:
    """Return the lines that enter a build.

    Raises:
        NotBuilt: it was not built yet.
        UsageError: it has no env file for this shell, or the shell is in another build already.
    """
    place = place_of(settings, pick(settings.builds, str(request.name), settings.path), main)
    name = place.build.name
    folder = place.folder
    _refuse_two(name)
    present = [shell for shell in SHELLS if is_own_env_file(folder / file_name(shell))]
    wanted = request.env_shell if request.env_shell not in (None, "all") else None
    if not present or (wanted and wanted not in present):
        raise (UsageError if present else NotBuilt)(
            f"The build {name} has no {file_name(wanted) if wanted else 'env file'} in {folder}"
            " as torchbuild wrote it here, and a shell would run it.",
            next_step=f"Build it first (build --name {name}), or write the file: "
            f"env --name {name}{f' --env-shell {wanted}' if wanted else ''}",
        )
    last = last_build(folder)
    constraints = str(venv.folder_of(last.python) / venv.CONSTRAINTS) if last and last.python else ""
    constraints = constraints if constraints and Path(constraints).is_file() else ""
    return Entering(
        name=name,
        folder=str(folder),
        lines={
            shell: entry_line(shell, str(folder), name, constraints)
            for shell in ([wanted] if wanted else present)
        },
        missing=() if wanted else tuple(shell for shell in SHELLS if shell not in present),
    )


def _refuse_two(name: str) -> None:
    """Refuse to use a build in a shell that has entered another one."""
    entered = os.environ.get(ACTIVE)
    if entered not in (None, "", name):
        raise UsageError(
            f"This shell is in the build {entered}; its variables would also apply to {name}.",
            next_step="Enter the other build from a new shell.",
        )


def remove_build(settings: Settings, request: BuildRequest, main: Path, report: Reporter) -> Away:
    """List what would be removed, ask, and remove the build's worktree with its files.

    Raises:
        CleanRefused: it is the active one, no worktree of ours, or the user did not agree.
        SourceError: something in it would be lost; it is listed.
        TreeBusy: a run works in it.
    """
    name = str(request.name)
    folder = _folder_of(settings, name, main)
    git = Git(folder=main)
    if is_active(name, folder):
        raise CleanRefused(
            f"{name} is the active build: this shell is in {folder}, or has loaded its environment.",
            next_step="Run this from another folder, in a shell that has not entered the build.",
        )
    # No run builds or cleans in it meanwhile.
    own = lock.hold(folder, "builds remove") if (folder / STATE_DIR).is_dir() else contextlib.nullcontext()
    with _lock_build(main, name), own:
        created = _list_created_files(folder)
        if (
            folder.exists()
            and _state(git, folder) == "here"
            and (lost := worktree.losses(git, folder, created))
        ):
            raise worktree.loss_error(folder, lost)
        away = Away(
            name=name,
            folder=str(folder),
            size=size_of(folder) if folder.exists() else 0,
            left=_warn_of_install(folder),
        )
        report.note(f"{folder}: the worktree, its build tree, venv and records, {size_text(away.size)}")
        for line in away.left:
            report.note(line)
        if request.dry_run:
            return away
        if not (request.yes or report.confirm(f"Remove {folder} ({size_text(away.size)})?")):
            raise CleanRefused("Nothing was removed.", next_step="Add --yes to remove what is listed.")
    with _lock_build(main, name):  # without the lock in the folder, which would keep Windows from removing it
        worktree.remove(git, folder, created=created)
    return replace(away, removed=True)


def _folder_of(settings: Settings, name: str, main: Path) -> Path:
    """Return our worktree of this name, also if it is no longer in torchbuild.toml."""
    git = Git(folder=main)
    by_note = {note.name: entry.folder for entry in _entries(git) if (note := read_note(entry.folder))}
    if name in by_note:
        return by_note[name]
    place = place_of(settings, pick(settings.builds, name, settings.path), main)
    if not place.worktree:
        raise CleanRefused(
            f"{place.folder} is a checkout of yours; nothing of it is removed.",
            next_step=f"What was built in it: clean --source {as_word(place.folder)}. "
            f"To forget the build, take [builds.{name}] out of torchbuild.toml.",
        )
    if not any(entry.folder == place.folder for entry in _entries(git)):
        raise CleanRefused(
            f"The build {name} was not made yet; there is nothing to remove in {place.folder}."
        )
    return place.folder


def _list_created_files(folder: Path) -> frozenset[str]:
    """Return the env files and unchanged files of builds, some of them untracked."""
    created = {file_name(shell) for shell in SHELLS}
    for path, known in owned(folder).paths.items():
        with contextlib.suppress(OSError):
            if path.endswith("/") or stamp((folder / path).lstat()) == known:
                created.add(path)
    return frozenset(created)


def _warn_of_install(folder: Path) -> tuple[str, ...]:
    last = last_build(folder) if folder.exists() else None
    if last is None or not last.python or Path(last.python).is_relative_to(folder):
        return ()
    return (f"torch in {last.python} points there; take it out: {last.python} -m pip uninstall torch",)
