"""The linker of a plan: which one, how it is asked for, and what it is tried on."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class LinkTrial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A small library and a program that uses it, made in an empty folder and run.

    `sources` are file name to text; `commands` make `library` and the program; `run` must end with 0.
    `mark` is what the linker leaves in what it makes ("" where it leaves nothing).
    """

    sources: Mapping[str, str]
    commands: tuple[tuple[str, ...], ...]
    run: tuple[str, ...]
    library: str
    mark: str = ""


class LinkerPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linker that is not the system's default. `tool` is its name among the facts' tools.

    `folder` is where a link called ld has to lead to `program`, for compilers that cannot be told its
    name ("" where they can). A `demanded` one is not given up when it does not link; `trial` is None
    where it has proved itself in the last build.
    """

    name: str
    tool: str
    program: str
    folder: str = ""
    demanded: bool = False
    trial: LinkTrial | None = None
