"""docs/flags.md, written from the declarations of the flags; `nox -s docs` runs this."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from torchbuild_tasks.fronts.parsing import SHORT, help_text
from torchbuild_tasks.options import VERBS, BuildRequest, flag_name

FLAGS_HEAD = """# Flags

Written by `nox -s docs` from [`request/`](../torchbuild_tasks/request/__init__.py); the same in nox
(after `--`), Invoke and `torchbuild`. A flag marked *file* may have its default in
`torchbuild.toml`.

| flag | verbs | file | meaning |
| --- | --- | --- | --- |
"""


def flags_page() -> str:
    """The whole page as Markdown."""
    return FLAGS_HEAD + "".join(
        _flag_row(field) for field in dataclasses.fields(BuildRequest) if field.metadata["verbs"]
    )


def _flag_row(field: dataclasses.Field[Any]) -> str:
    short = f", `-{SHORT[field.name]}`" if field.name in SHORT else ""
    metavar = f" {field.metadata['metavar']}" if field.metadata["metavar"] else ""
    verbs = field.metadata["verbs"]
    where = "all" if verbs == VERBS else ", ".join(verbs)
    in_file = "file" if field.metadata["in_file"] else ""
    name = field.metadata["metavar"] if field.metadata["positional"] else f"{flag_name(field.name)}{metavar}"
    flag = f"`{name}`".replace("|", "\\|")
    return f"| {flag}{short} | {where} | {in_file} | {help_text(field).replace('|', ', ')} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(flags_page(), "utf-8")
