"""The rows of what is built beside torch: torchvision, torchaudio."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class CompanionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One project; `set` are variables of its build, in which `{torch}` is the version of the built torch.

    `{cuda}` is 1 or 0.
    """

    name: str
    url: str
    requires: tuple[str, ...]
    source: str
    set: Mapping[str, str] = msgspec.field(default_factory=dict)


class CompanionReleaseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release of a project and the torch versions (PEP 440) that it builds against.

    `wheel` is what its wheel asks of torch, which is what pip goes by. A `stable` one uses the stable ABI
    only, so that one build runs with all of them.
    """

    name: str
    version: str
    torch: str
    source: str
    wheel: str = ""
    stable: bool = False
