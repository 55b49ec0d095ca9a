"""Read each file of tests for the first time in one process alone.

pytest rewrites the assertions of a file when it reads it, and keeps the result: 9 of the 14 seconds of CPU
that a first collection takes. Workers that collect in step would each do it for every file.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def import_in_turn(config: pytest.Config, left_out: Callable[[Path], object]) -> None:
    """Import what a worker is about to collect, beginning at another file than the other workers."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    files = [file for file in _files(config.args) if not left_out(file)]
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in rotated(files, number, count):
        with contextlib.suppress(BaseException):  # the collection says it, and a skip is one, too
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))


def rotated(files: Sequence[Path], number: int, count: int) -> list[Path]:
    """Return the files as worker `number` of `count` takes them."""
    start = len(files) * number // count
    return [*files[start:], *files[:start]]


def _files(args: Sequence[str]) -> list[Path]:
    """Return the files of tests in or below what pytest was given, as far as they are ours."""
    found = set[Path]()
    for arg in args:
        path = Path(arg.partition("::")[0]).absolute()
        if path.is_relative_to(ROOT / "tests"):
            found.update(path.rglob("test_*.py") if path.is_dir() else [path])
    return sorted(found)
