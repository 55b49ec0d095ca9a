"""The rows that only the doctor and bootstrap read."""

from __future__ import annotations

from typing import Literal

import msgspec


class OptionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of PyTorch's build by name; they are handed on by a pattern, so no variable row names them."""

    names: tuple[str, ...]
    source: str


class ManagerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a package manager is called: `install` stands before the names, `refresh` is called before it.

    One that is `single` takes one package a call; only `root` may call some.
    """

    name: str
    install: tuple[str, ...]
    refresh: tuple[str, ...] = ()
    single: bool = False
    root: bool = False


class WantRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `bootstrap` gets where none of `tools` is here, or that `part` of Python or Windows is missing."""

    package: str
    kind: Literal["needed", "faster"]
    because: str
    tools: tuple[str, ...] = ()
    part: Literal["", "python", "python headers", "python venv", "msvc"] = ""
    os: str = ""
