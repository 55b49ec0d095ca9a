"""The compiler cache of a plan, and what it did in one build. No password ever stands in these values."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from torchbuild_tasks.model.cluster import Distribution


class CacheTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cache program of a plan: `name` is ccache or sccache, `program` its path.

    `folder` is where it keeps results ("" for its own default folder). `settings` are those of its
    settings that decide whether a result fits, without anything that differs between checkouts.
    """

    name: str
    program: str
    version: str
    folder: str = ""
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)


class CachePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is needed to run the caches of a build beside it.

    `remotes` are the addresses of shared caches, as they may be shown. `size` is the least number
    of bytes that a cache may fill. `memory` is the file in which our store keeps which settings a
    folder was filled with, and which folders we made.
    """

    tools: tuple[CacheTool, ...]
    remotes: tuple[str, ...] = ()
    read_only: bool = False
    distribution: Distribution | None = None
    size: int = 0
    memory: str = ""


class CacheReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one cache did in one build: hits and misses by language.

    `not_cached` are commands that it passed on, by the cache's own reason; `shared` are the hits
    that came from a shared cache; `errors` are failures of the cache, none of the compiler. `away` are
    the compiles that servers of a cluster made, by address, `given_back` those that should have been.
    """

    tool: str
    hits: Mapping[str, int] = msgspec.field(default_factory=dict)
    misses: Mapping[str, int] = msgspec.field(default_factory=dict)
    not_cached: Mapping[str, int] = msgspec.field(default_factory=dict)
    shared: int = 0
    errors: int = 0
    away: Mapping[str, int] = msgspec.field(default_factory=dict)
    given_back: int = 0


class CacheState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cache as it lies there: bytes used and the most it fills (None where that is not known).

    `made` says whether a build of ours made the folder.
    """

    tool: str
    version: str
    program: str
    folder: str
    used: int | None = None
    limit: int | None = None
    made: bool = False
