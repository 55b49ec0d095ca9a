"""Write the pages of docs/ that come from code and rows, flags.md and failures.md: `nox -s docs`."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchbuild_tasks.catalog import PHASES, FailureRow, load_catalog
from torchbuild_tasks.features.config import choose as config
from torchbuild_tasks.fronts.parsing import SHORT, flags, help_text
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.verbs import VERBS

FAILURES_HEAD = """# Failures

Written by `nox -s docs` from [`data/failures/`](../torchbuild_tasks/data/failures): every failure that
`torchbuild diagnose LOG` and a failing build know by what it says ([how](diagnose.md)). `{1}` stands for a
part of the message, other names in braces for what this machine has.

"""
TITLES = {
    "checkout": "The checkout",
    "python": "The Python that gets torch",
    "configure": "Configuring",
    "compile": "Compiling",
    "link": "Linking",
    "install": "Installing and packaging",
    "import": "Importing torch",
    "runtime": "Running it",
}


def failures_page() -> str:
    """Return the page of all failures as Markdown."""
    rows = load_catalog().failure
    index = "".join(
        f"* [{TITLES[phase]}](#{_slug(TITLES[phase])}): {', '.join(_links(rows, phase))}\n"
        for phase in PHASES
    )
    return FAILURES_HEAD + index + "".join("".join(_phase(rows, phase)) for phase in PHASES)


def _links(rows: tuple[FailureRow, ...], phase: str) -> Iterator[str]:
    return (f"[{row.id}](#{row.id})" for row in rows if row.phase == phase)


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _phase(rows: tuple[FailureRow, ...], phase: str) -> Iterator[str]:
    yield f"\n## {TITLES[phase]}\n"
    for row in rows:
        if row.phase == phase:
            yield from _failure_row(row)


def _failure_row(row: FailureRow) -> Iterator[str]:
    yield f'\n<a id="{row.id}"></a>\n### {row.id}\n\n'
    if row.samples:
        yield from (
            "```text\n",
            *(f"{line}\n" for sample in row.samples for line in sample.split("\n")),
            "```\n\n",
        )
    else:
        yield "No message says it.\n\n"
    yield f"{row.cause}{_limits(row)}\n\n"
    yield "".join(f"* {sentence}\n" for sentence in row.fix)
    yield "".join(f"* `{sentence}`\n" for sentence in row.command)
    if row.mistaken_for:
        yield f"\nOften taken for {row.mistaken_for}.\n"
    yield f"\nSource: {row.source}\n"


def _limits(row: FailureRow) -> str:
    """Say where it can happen, and how sure that is."""
    system = {"linux": "Linux", "windows": "Windows"}.get(row.os, "")
    limits = [system, f"torch {row.torch}" if row.torch else ""]
    kind = [
        "a warning, no failure" if row.severity == "warning" else "",
        "" if row.confirmed else "UNCONFIRMED",
    ]
    found = "; ".join(filter(None, (*limits, *kind)))
    return f" ({found})" if found else ""


SCHEMA = "torchbuild.schema.json"
FLAGS_HEAD = """# Flags

Written by `nox -s docs` from [`options.py`](../torchbuild_tasks/options.py) and the verbs' own;
the same in nox (after `--`), Invoke and `torchbuild`. Each has an environment variable as well
(`--build-type`: `TORCHBUILD_BUILD_TYPE`, a switch by 1 or 0, a list separated by blanks); `--cache` has
`TORCHBUILD_COMPILER_CACHE` and `--name` `TORCHBUILD_BUILD`. A flag marked *file* may have its default in
`torchbuild.toml` ([config](config.md)).

| flag | verbs | file | meaning |
| --- | --- | --- | --- |
"""


def flags_page() -> str:
    """Return the page of all flags as Markdown: those that several verbs take, then each verb's own."""
    shared = {field.name for field in dataclasses.fields(BuildRequest)}
    rows = [(field, _takers(field)) for field in dataclasses.fields(BuildRequest)]
    for verb in VERBS:
        rows += [(field, (verb,)) for field in flags(verb) if field.name not in shared]
    return FLAGS_HEAD + "".join(_flag_row(field, verbs) for field, verbs in rows if verbs)


def _takers(field: dataclasses.Field[Any]) -> tuple[str, ...]:
    return tuple(verb for verb in VERBS if field.name in {each.name for each in flags(verb)})


def _flag_row(field: dataclasses.Field[Any], verbs: tuple[str, ...]) -> str:
    short = f", `-{SHORT[field.name]}`" if field.name in SHORT else ""
    metavar = f" {field.metadata['metavar']}" if field.metadata["metavar"] else ""
    where = "all" if verbs == tuple(VERBS) else ", ".join(verbs)
    in_file = "file" if field.metadata["in_file"] else ""
    name = field.metadata["metavar"] if field.metadata["positional"] else f"{flag_name(field.name)}{metavar}"
    flag = f"`{name}`".replace("|", "\\|")
    return f"| {flag}{short} | {where} | {in_file} | {help_text(field).replace('|', ', ')} |\n"


def write_pages(folder: Path) -> None:
    """Write both pages, and the schema of torchbuild.toml."""
    schema = json.dumps(config.schema(), indent=2, ensure_ascii=False)
    (folder / SCHEMA).write_text(f"{schema}\n", "utf-8")
    (folder / "flags.md").write_text(flags_page(), "utf-8")
    (folder / "failures.md").write_text(failures_page(), "utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
