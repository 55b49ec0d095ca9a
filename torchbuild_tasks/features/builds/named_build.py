"""Find the named build of a request, and its folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.trust import common_git_folder, is_trusted_manifest
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE
from torchbuild_tasks.model.source import Last
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import NamedBuild, Settings, pick
from torchbuild_tasks.system.files import STATE_DIR, state_dir, translate_errors, write_json
from torchbuild_tasks.system.reading import read_json, read_value
from torchbuild_tasks.values import replace

NOTE: Final = "build.json"
DEFAULT: Final = "default-build.json"
NO_BUILD: Final = ("none", "default")  # used instead of a name: the checkout itself


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The note in a worktree: the build's name, its settings file, the main checkout, and the ref."""

    name: str
    config: str
    main: str
    ref: str


def read_note(folder: Path) -> Note | None:
    """Return the note of a folder; None if it is not a named build's, or cannot be read."""
    return read_value(Note, folder / STATE_DIR / NOTE)


def write_note(folder: Path, note: Note) -> None:
    """Write the note; raises UsageError."""
    write_json(state_dir(folder) / NOTE, note, error=UsageError)


def read_default(main: Path) -> str | None:
    """Return the default build of a checkout, for verbs without --name; None without one."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return str(read_json(main / STATE_DIR / DEFAULT)["name"])
    return None


def write_default(main: Path, name: str | None) -> None:
    """Make a build the default of a checkout, or none; raises UsageError."""
    path = state_dir(main) / DEFAULT
    if name is None:
        with translate_errors(UsageError, path):
            path.unlink(missing_ok=True)
    else:
        write_json(path, {"name": name}, error=UsageError)


def last_build(folder: Path) -> Last | None:
    """Return the newest manifest in a checkout, or record of 0.1.0; None before the first build.

    Its Python is started and that folder stands first on PATH: only a manifest of a build here has one.
    """
    records = (path for name in (MANIFEST_FILE, RECORD_FILE) for path in folder.glob(f"*/{name}"))
    newest = sorted(records, key=lambda path: path.stat().st_mtime)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        data: Any = read_json(newest[-1])
        choices = {choice["name"]: str(choice["value"]) for choice in data["choices"]}
        return Last(
            result=str(data["result"]),
            finished=str(data["finished"] or data["started"]),
            torch=choices.get("torch", ""),
            python=choices.get("python", "") if is_trusted_manifest(os.path.realpath(newest[-1])) else "",
            mode=choices.get("mode", ""),
        )
    return None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A named build and its folder.

    `worktree` is false where torchbuild.toml names a checkout of the user's own; `main` is the checkout
    that worktrees are made of.
    """

    build: NamedBuild
    config: str
    main: Path
    folder: Path
    worktree: bool
    torch: str | None = None

    @property
    def ref(self) -> str:
        """Return the ref at which the worktree is created."""
        if self.build.ref or not self.torch:
            return self.build.ref or "HEAD"
        from torchbuild_tasks.plan.torch_ref import read_word

        return read_word(self.torch, load_catalog(), f"torch in [builds.{self.build.name}]").ref


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings of a request, the main checkout, and the named build, if any."""

    settings: Settings
    main: Path
    place: Place | None = None


def note_of(request: BuildRequest) -> Note | None:
    """Return the note of a request's folder, if that is a named build's worktree.

    A checkout may bring a note that names settings and a checkout of yours: verbs would be about that.
    """
    folder = Path(request.source or ".").expanduser()
    note = read_note(folder)
    if note is None or not (common := common_git_folder(folder)):
        return None
    main = Path(note.main)
    own = common_git_folder(main) or os.path.realpath(main / ".git")
    return note if os.path.normcase(own) == os.path.normcase(common) else None


def config_of(request: BuildRequest, note: Note | None) -> str | None:
    """Return the settings file to read: the given one, else the one that defines the worktree."""
    return request.config or (note.config if note and Path(note.config).is_file() else None)


def resolve(request: BuildRequest, note: Note | None, settings: Settings) -> Named:
    """Return the build of --name, else the one whose worktree is the request's folder.

    Raises:
        UsageError: there is no build of that name.
    """
    if "wheels" in settings.values:
        named_in = settings.places.get("wheels", settings.path)  # the user-wide file, or this one
        settings = replace(settings, values={**settings.values, **_wheels(named_in, settings.values)})
    main = Path(note.main if note else request.source or settings.values.get("source") or ".").expanduser()
    main = Path(os.path.realpath(main))
    name = request.name or (note.name if note and note.name in settings.builds else None)
    if name is None or (name in NO_BUILD and name not in settings.builds):
        return Named(settings=settings, main=main)
    build = pick(settings.builds, name, settings.path)
    place = place_of(settings, build, main)
    values = {**build.values, "source": str(place.folder), **_wheels(settings.path, build.values)}
    return Named(settings=settings.of(replace(build, values=values)), main=main, place=place)


def _wheels(file: str | None, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder of wheels as an absolute path, relative to the settings file that names it."""
    if "wheels" not in values:
        return {}
    folder = Path(file or ".").parent / Path(str(values["wheels"])).expanduser()
    return {"wheels": os.path.realpath(folder)}


def place_of(settings: Settings, build: NamedBuild, main: Path) -> Place:
    """Return the folder of a build: its checkout, the given folder, or one next to the main checkout."""
    base = Path(str(settings.path)).parent
    own = build.values.get("source")
    default = main.with_name(f"{main.name}-{build.name}")
    folder = base / Path(str(own or build.folder)).expanduser() if own or build.folder else default
    return Place(
        build=build,
        config=str(settings.path),
        main=main,
        folder=Path(os.path.realpath(folder)),
        worktree=not own,
        torch=build.values.get("torch") or settings.values.get("torch"),
    )
