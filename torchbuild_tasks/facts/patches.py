"""The user's own changes to the source: `*.patch` and `*.diff` of a folder, in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import OwnPatch
from torchbuild_tasks.options import flag_name

ENDINGS = (".patch", ".diff")


def patch_folders(named: str | None, settings: str | None, source: str) -> tuple[str, ...]:
    """Where the user's patches are: as said, else `patches` beside torchbuild.toml and in the checkout.

    Raises:
        UsageError: there is no such folder as the one that was named.
    """
    if not named:
        beside = (str(Path(settings).parent / "patches"),) if settings else ()
        return (*beside, str(Path(source, "patches")))
    if Path(named).expanduser().is_dir():
        return (named,)
    raise UsageError(
        f"{flag_name('patch_dir')}: there is no folder {named}",
        next_step="Name the folder that holds the *.patch and *.diff files.",
    )


def look_at_patches(folders: Sequence[str], probe: Probe | None = None) -> tuple[OwnPatch, ...]:
    """The patches in these folders, one folder after the other, each folder once.

    `probe` is another machine than this one, for tests.
    """
    probe = probe or Probe(environ=dict(os.environ))
    found: list[OwnPatch] = []
    for folder in dict.fromkeys(probe.realpath(probe.absolute(folder)) for folder in folders):
        names = (name for name in probe.children(folder) if name.lower().endswith(ENDINGS))
        found += [_read(probe, name, probe.join(folder, name)) for name in names]
    return tuple(found)


def _read(probe: Probe, name: str, path: str) -> OwnPatch:
    data = probe.read_bytes(path)
    if data is None:
        return OwnPatch(name=name, path=path, problem="cannot be read")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return OwnPatch(name=name, path=path, problem=f"is not UTF-8 text: {error.reason}")
    if text.count("\r\n") == text.count("\n"):  # as git checks it out on Windows
        text = text.replace("\r\n", "\n")
    return OwnPatch(name=name, path=path, text=text)
