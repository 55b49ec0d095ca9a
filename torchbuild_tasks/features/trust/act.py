"""Add and remove trust of the user's: the files of a folder, and the venvs of a checkout."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.python import is_our_venv, is_tracked
from torchbuild_tasks.facts.trust import digest, files_of, is_trusted, is_within, place_of
from torchbuild_tasks.system import trust, venv
from torchbuild_tasks.system.files import STATE_DIR


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """A trusted place, the kind of trust, and whether it is unchanged."""

    place: str
    files: tuple[str, ...] = ()
    venvs: tuple[str, ...] = ()
    holds: bool = True
    when: str = ""


def trust_place(path: str) -> Trusted:
    """Trust the present files of a folder, or one settings file; adopt the venvs of a checkout.

    Raises:
        UsageError: there is nothing of the kind, or it cannot be remembered.
    """
    place = _place(path)
    files = tuple(str(file) for file in dict.fromkeys(files_of(place)))
    venvs = _strange_venvs(place)
    if not files and not venvs:
        raise UsageError(
            f"There is nothing to trust in {place}.",
            looked=("torchbuild.toml", "env_templates/*.in", f"{STATE_DIR}/venv-*"),
            next_step="Name the folder with the torchbuild.toml, or the settings file itself.",
        )
    state = os.path.realpath(trust.state_folder(os.environ))
    if is_within(state, place):
        raise UsageError(
            f"{state}, where trust is stored, is in the folder that you want to trust.",
            next_step=f"Name one outside of it: {trust.VARIABLE}=PATH",
        )
    if files:
        trust.write_proof("files", place, digest(place))
    for folder in venvs:
        venv.adopt(Path(folder))
    return Trusted(place=place, files=files, venvs=venvs)


def trust_all(places: Iterable[str]) -> None:
    """Trust the files of several places, but not the venvs there."""
    for place in places:
        trust.write_proof("files", place, digest(place))


def revoke(path: str) -> tuple[str, bool]:
    """Remove the trust of a place; return the place, and whether it was trusted."""
    place = _place(path, gone=True)
    return place, trust.forget("files", place)


def listed() -> tuple[Trusted, ...]:
    """Return every trusted place, and whether it is unchanged."""
    return tuple(
        Trusted(place=entry.place, holds=is_trusted(entry.place), when=entry.when)
        for entry in trust.entries("files")
    )


def _place(path: str, *, gone: bool = False) -> str:
    real = os.path.realpath(Path(path).expanduser())
    if not gone and not Path(real).exists():
        raise UsageError(f"{real} does not exist.", next_step="Name a folder or a file: trust PATH")
    return real if not Path(real).is_file() else place_of(real)


def _strange_venvs(place: str) -> tuple[str, ...]:
    """Return the venvs of a checkout that are not recorded as ours; those that git tracks never are."""
    probe = Probe()
    folders = (folder for folder in sorted(Path(place).glob(f"{STATE_DIR}/venv-*")) if folder.is_dir())
    return tuple(
        str(folder)
        for folder in folders
        if (folder / "pyvenv.cfg").is_file() and not folder.is_symlink()
        if not is_our_venv(probe, str(folder)) and not is_tracked(probe, place, str(folder))
    )
