"""What only the doctor looks at: the surroundings of a build, beside the machine and the tree."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Room(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Free bytes where something is written: `purpose` is source, build, store, cache or tmp.

    `mount` tells which of them share a file system. `kind` is the file system ("ext4", "nfs4",
    "NTFS"), `noexec` whether no program may be started from it; None fields are not known.
    """

    purpose: str
    path: str
    mount: str | None = None
    free: int | None = None
    kind: str | None = None
    noexec: bool | None = None
    writable: bool | None = None


class OtherTree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A build tree in the checkout, and the source folder that its CMakeCache.txt was made for."""

    path: str
    home: str | None = None


class Reached(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one host answered: `dns` and `https` say why they failed, "" for well, None for not asked.

    `proxy` is the host of the proxy that it is asked through (its DNS is the one that counts then),
    `ahead` the seconds by which its clock is ahead of ours.
    """

    host: str
    why: str
    dns: str | None = None
    https: str | None = None
    proxy: str = ""
    ahead: float | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the doctor saw; None and empty fields mean that it could not be looked at.

    `open_files` is `ulimit -n`, `open_files_most` what it may be raised to. `locale` is the locale of
    messages and file names, `locale_known` whether the system has it. `newest` is a file of the
    checkout with a time in the future, `ahead` by how many seconds. `git` are the settings of git that
    matter (`GIT_SETTINGS` in facts/health), `git_refuses` what it says of a checkout of another user.
    `environ` are the variables that change which compilers and libraries are found, `strangers` the
    names (never values) of variables that look like those of a build and that no row knows.
    `conda_linkers` are ld programs that conda's Pythons bring along, `shadows` the folders in which
    `import torch` would find something else first. `others` are further build trees. `reached` is None
    when no host was asked; `proxies` says what is wrong with the variables of proxies.
    """

    rooms: tuple[Room, ...] = ()
    open_files: int | None = None
    open_files_most: int | None = None
    locale: str | None = None
    locale_known: bool | None = None
    newest: str | None = None
    ahead: float | None = None
    git: Mapping[str, str] = msgspec.field(default_factory=dict)
    git_refuses: bool = False
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)
    strangers: tuple[str, ...] = ()
    conda_linkers: tuple[str, ...] = ()
    shadows: tuple[str, ...] = ()
    others: tuple[OtherTree, ...] = ()
    offline: bool = False
    reached: tuple[Reached, ...] | None = None
    proxies: tuple[str, ...] | None = None
    administrator: bool | None = None
