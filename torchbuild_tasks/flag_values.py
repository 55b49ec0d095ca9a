"""Check the values of flags and settings, before anything is looked at.

What every machine refuses is checked by the flag's own declaration; addresses, sizes and places by a function
of the table below, whose error begins with the flag.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.machine import nearest_existing, takes_files
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import patch_folders
from torchbuild_tasks.features.cache.address import is_reapi, read_remotes
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.plan.linker import is_path
from torchbuild_tasks.plan.settings import Settings, Stale, check_value, read_size, split_assignment
from torchbuild_tasks.values import replace


def check_request(request: BuildRequest) -> None:
    """Refuse values that are wrong on every machine.

    Raises:
        UsageError: a value is none of its choices, a job count is below 1, a --set is not KEY=VALUE.
    """
    for field in dataclasses.fields(BuildRequest):
        variable = variable_name(field.name) if field.name in request.from_environment else ""
        check_value(field.name, getattr(request, field.name), variable)
    for assignment in request.set:
        name, value = split_assignment(assignment)
        if "\0" in value:
            raise UsageError(f"--set {name}: its value has a NUL, which no program is given")


def check_texts(request: BuildRequest, settings: Settings) -> None:
    """Refuse addresses and sizes that are none, of a flag or a setting, and places that flags name.

    Raises:
        UsageError: one is none; begins with the flag, or with the setting and its file.
    """
    for name, read in _TEXTS.items():
        given = getattr(request, name, None)
        value = given or settings.values.get(name)
        if not value:
            continue
        try:
            read(value)
        except UsageError as error:
            if given:
                raise
            what = _said_of(error, name, f"{flag_name(name)[2:]} in {settings.place(name)}")
            raise UsageError(what, looked=error.looked, next_step=error.next_step) from None
    for name, look in _PLACES.items():
        given = getattr(request, name, None)
        if given and not (name in request.from_environment or request.facts):
            look(given)


def set_stale_aside(request: BuildRequest, settings: Settings) -> tuple[BuildRequest, Settings]:
    """Return both without the places of settings files and the environment that are not there.

    These outlive what they name, so they stop only what needs them; `Settings.stale` tells of each.
    Those of another machine cannot be looked at.
    """
    stale: dict[str, Stale] = {}
    for name, look in _PLACES.items() if not request.facts else ():
        own = getattr(request, name, None)
        place = variable_name(name) if own else f"{flag_name(name)[2:]} in {settings.place(name)}"
        value = own or settings.values.get(name)
        if not value or (own and name not in request.from_environment):
            continue
        try:
            look(value)
        except UsageError as error:
            way = f"Or unset {place}." if own else f"Or take it out of {settings.place(name)}."
            fix = f"{error.next_step.rstrip('.')}. {way}" if error.next_step else way
            stale[name] = Stale(what=_said_of(error, name, place), fix=fix)
    if not stale:
        return request, settings
    emptied = dict.fromkeys(name for name in stale if getattr(request, name, None))
    return replace(request, **emptied), replace(settings.without(stale), stale=stale)


def refuse_stale(settings: Settings, name: str) -> None:
    """Refuse to go on without a place that a setting names.

    Raises:
        UsageError: it is not there.
    """
    if stale := settings.stale.get(name):
        raise UsageError(stale.what, next_step=stale.fix)


def _said_of(error: UsageError, name: str, place: str) -> str:
    """Return what is wrong with a value, said of the place where it was given instead of the flag."""
    return f"{place}: {error.what.removeprefix(flag_name(name)).lstrip(': ').rstrip('.')}"


def _read_mirrors(text: str) -> None:
    from torchbuild_tasks.system.net.client import read_mirrors

    read_mirrors(text)


def _read_url(url: str) -> None:
    if not re.match(r"\w+://.|[^/\\]{2,}:.", url) and not Path(url).expanduser().exists():
        raise UsageError(
            f"--url {url} is no address, and no folder.",
            next_step="Write for example: --url https://github.com/pytorch/pytorch",
        )


def _read_cache(text: str) -> None:
    from torchbuild_tasks.features.cache.choose import read_word

    read_word(text)
    read_remotes(text)


def _read_scheduler(text: str) -> None:
    from torchbuild_tasks.features.cluster.choose import scheduler_url

    if is_reapi(text):
        read_remotes(text, flag="--distribute")
        return
    try:
        scheduler_url(text)
    except UsageError as error:
        raise UsageError(f"--distribute {error.what}", next_step=error.next_step) from None


def _read_registries(entries: tuple[str, ...]) -> None:
    from torchbuild_tasks.features.container.choose import read_registries

    read_registries(entries)


def _read_cache_size(text: str) -> None:
    read_size(text, "--cache-size")


def _find_wheels(folder: str) -> None:
    if not Path(folder).expanduser().is_dir():
        raise UsageError(
            f"--wheels {folder} is no folder.",
            next_step="Name the one that holds the wheels; they get there by: pip download --dest FOLDER",
        )


def _find_cache_folder(folder: str) -> None:
    path = Path(folder).expanduser()
    if os.path.lexists(path) and not path.is_dir():
        raise UsageError(
            f"--cache-dir {folder} is there, and is no folder.", next_step="Name a folder, or a new one."
        )
    probe = Probe()
    above = nearest_existing(probe, str(path.absolute()))
    if not probe.is_dir(above) or takes_files(probe, above) is False:
        raise UsageError(
            f"--cache-dir {folder} cannot be used: this user can make no files in {above}.",
            next_step="Name another place.",
        )


def _find_patches(folder: str) -> None:
    patch_folders(folder, None, "")


def _find_linker(name: str) -> None:
    path = Path(name).expanduser()
    if is_path(name) and not (path.is_file() and os.access(path, os.X_OK)):
        raise UsageError(
            f"--linker {name} is no program that this user may start.",
            next_step="Name one that is here, or auto, default, bfd, gold, lld or mold.",
        )


_TEXTS: Final[Mapping[str, Callable[[Any], None]]] = {
    "mirror": _read_mirrors,
    "url": _read_url,
    "cache": _read_cache,
    "cache_size": _read_cache_size,
    "distribute": _read_scheduler,
    "registry": _read_registries,
}
_PLACES: Final[Mapping[str, Callable[[Any], None]]] = {
    "wheels": _find_wheels,
    "cache_dir": _find_cache_folder,
    "linker": _find_linker,
    "patch_dir": _find_patches,
}
