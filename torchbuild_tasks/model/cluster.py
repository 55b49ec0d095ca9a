"""Distributed compiles: a scheduler as it answered, and how a build uses it. No token stands here."""

from __future__ import annotations

import msgspec


class Cluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scheduler as it answered when it was asked.

    `conf` is the file that `cluster join` left for it ("" before that); `busy` are the jobs that
    it has under way. `problem` is why it is no use now; "" when it answered and took our token.
    """

    url: str
    conf: str = ""
    servers: int = 0
    cpus: int = 0
    busy: int = 0
    problem: str = ""


class Distribution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a build uses a scheduler: `compiler` is what the first trial compiles with.

    `jobs` are the parallel jobs once that trial has come back from a server; before, and
    without it, they are as many as without a cluster.
    """

    url: str
    conf: str
    compiler: str
    jobs: int
