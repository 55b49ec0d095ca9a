"""How much room a checkout takes, and how long its paths are, before anything of it is fetched.

Measured on the sources of 1.13.1 (Debian's archive): 35,970 files, 656 MiB as they lie on ext4, 236 MiB as a
pack, longest path 175 characters. All history was 3.8 GiB in a mirror of 2026. Later releases are larger, so
these are the least.
"""

from __future__ import annotations

import re
from typing import Final

from torchbuild_tasks.errors import SourceError

MIB: Final = 1 << 20
FILES: Final = 656 * MIB
PACKS: Final = 236 * MIB
HISTORY: Final = 3874 * MIB
LONGEST_PATH: Final = 175
_LIMIT_WINDOWS: Final = 259
_PYTORCH: Final = re.compile(r"[/:]pytorch/pytorch(\.git)?/?$")


def least_room(url: str, *, full: bool, mirrored: bool) -> int | None:
    """The bytes that a new checkout takes at least; None for a repository that is not PyTorch's.

    Args:
        url: the repository.
        full: with all history.
        mirrored: what is fetched goes into the mirror store, too.
    """
    if not _PYTORCH.search(url):
        return None
    packs = HISTORY if full else PACKS
    return FILES + packs * (2 if mirrored else 1)


def check_room(need: int | None, free: int | None, folder: str) -> str:
    """A sentence on the room; empty when the need is not known.

    Raises:
        SourceError: there is less than the least.
    """
    if need is None:
        return ""
    if free is None:
        return f"at least {need // MIB} MiB are needed; how much is free in {folder} is not known"
    if free < need:
        raise SourceError(
            f"{free // MIB} MiB are free for {folder}, and it takes at least {need // MIB} MiB. "
            "Nothing was fetched.",
            next_step="Make room, or name a folder on another disk: --source PATH; TORCHBUILD_CACHE moves "
            "the store.",
        )
    return f"at least {need // MIB} MiB are needed, {free // MIB} MiB are free"


def long_path(folder: str) -> str:
    """On Windows without long paths: what to know about a folder that is too long; else empty."""
    longest = len(folder) + 1 + LONGEST_PATH
    if longest <= _LIMIT_WINDOWS:
        return ""
    return (
        f"paths below {folder} get {longest} characters and more, and programs take {_LIMIT_WINDOWS} here "
        "(LongPathsEnabled is off): git can write them, a build cannot read them. Use a short folder: "
        "--source C:\\pt"
    )
