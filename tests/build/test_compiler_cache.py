"""The stages around the compiler cache, with a cache that cannot begin."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from torchbuild_tasks.build import compiler_cache
from torchbuild_tasks.features.cache import run


def test_what_keeps_a_cache_from_beginning_is_what_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    @contextlib.contextmanager
    def refused(*_args: object, **_named: object) -> Any:
        raise PermissionError(13, "Permission denied", "/closed/cache")
        yield

    monkeypatch.setattr(run, "cache_running", refused)
    work: Any = SimpleNamespace(
        plan=SimpleNamespace(cache=SimpleNamespace(distribution=None)),
        root=tmp_path,
        report=SimpleNamespace(note=print),
        facts=SimpleNamespace(tree=SimpleNamespace(previous=None)),
        request=SimpleNamespace(target=""),
        cache_addresses="",
        env={},
        background=contextlib.ExitStack(),
    )
    with pytest.raises(PermissionError, match="/closed/cache"):
        compiler_cache.begin_cache(work)
