"""What is built beside torch: what was looked at of its source, and what will be done."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class CompanionSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder that --with names: `version` stands in its version.txt, `problem` says why it is none."""

    name: str
    path: str
    version: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    problem: str | None = None


class Companion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One project to build against the torch that was built.

    Its source lies in `folder`; where `url` is not empty it is first cloned there, at `ref`. `argv`
    builds and installs it, with the variables `set`, in which `{torch}` is the version of the torch
    that was built. `state` tells whether it has to be built anew ("" always).
    """

    name: str
    version: str
    folder: str
    url: str = ""
    ref: str = ""
    argv: tuple[str, ...]
    set: Mapping[str, str] = msgspec.field(default_factory=dict)
    state: str = ""
    because: str = ""
