"""The record of a run of the tests; `runs` writes it. Imports nothing that a bare Python lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

ENDS: Final = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Past:
    """The content of a record."""

    ended: dict[str, str]  # the id of a test -> the last way it ended
    open: tuple[str, ...]  # what began and did not end
    code: int | None  # pytest's own exit code; None if it did not get that far


def read_record(file: Path) -> Past:
    """Parse the record; a missing one is empty. A truncated line is ignored."""
    ended: dict[str, str] = {}
    began: dict[str, None] = {}
    code: int | None = None
    text = file.read_text("utf-8") if file.is_file() else ""
    for line in text.splitlines(keepends=True):
        word, _, rest = line.rstrip("\n").partition("\t")
        if not line.endswith("\n"):
            continue
        if word == "session":
            began, code = {}, None
        elif word == "code":
            code = int(rest)
        elif word == "begins":
            began[rest] = None
        elif word in ENDS:
            ended[rest] = word
            began.pop(rest, None)
    return Past(ended=ended, open=tuple(began), code=code)
