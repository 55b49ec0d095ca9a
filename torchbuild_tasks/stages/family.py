"""The processes of a build: what descends from us, and what compiles for us in the cache's server."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.effects.cache.place import server_of
from torchbuild_tasks.effects.jobserver.serve import Family

_EVERY: Final = 5.0  # seconds between two looks for the server


def build_family(environ: Mapping[str, str]) -> Family:
    """The family of a build in this environment, which leads to its sccache server if it has one."""
    return Family(_CacheServer(environ))


class _CacheServer:
    """The pid of the server in which sccache compiles; another takes its place when a shared cache dies."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ, self._asked = environ, -_EVERY
        self._found: tuple[int, ...] = ()

    def __call__(self) -> tuple[int, ...]:
        """Look for it, at most every few seconds."""
        if time.monotonic() - self._asked >= _EVERY:
            pid = server_of(self._environ)
            self._asked = time.monotonic()
            self._found = () if pid is None else (pid,)
        return self._found
