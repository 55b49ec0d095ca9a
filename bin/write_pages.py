"""Write what comes from code and rows in docs/: verbs, flags, switches, failures, a schema.

python bin/write_pages.py                 writes docs/{verbs,flags,switches,failures}.md and the schema
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from torchbuild_tasks.catalog import PHASES, Catalog, load_catalog
from torchbuild_tasks.catalog.diagnosis import FailureRow
from torchbuild_tasks.features.config import choose as config
from torchbuild_tasks.features.diagnosis.audience import plain
from torchbuild_tasks.fronts.parsing import SHORT, flags, help_text
from torchbuild_tasks.options import BuildRequest, flag_name
from torchbuild_tasks.verbs import VERBS, Group

FAILURES_HEAD = """# Failures

Every failure that `torchbuild diagnose LOG` and a failing build recognise by its message
([how](diagnose.md)), with cause and fix. In a fix, `{1}` stands for a part of the message, and other names
in braces for values of your machine. `nox -s docs` writes this page from
[`data/failures/`](../torchbuild_tasks/data/failures).

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
        yield "It has no message of its own.\n\n"
    yield f"{row.cause}{_limits(row)}\n\n"
    yield "".join(f"* {plain(sentence)}\n" for sentence in row.fix)
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
    limits_text = "; ".join(filter(None, (*limits, *kind)))
    return f" ({limits_text})" if limits_text else ""


VERBS_HEAD = """# Verbs

Every verb is a nox session, an Invoke task and a command of `torchbuild`. `build_cpu` and `build_cuda` are
`build` with `--cpu` and `--cuda`. `nox -s docs` writes this page from
[`verbs.py`](../torchbuild_tasks/verbs.py).
"""
# The page of a verb that has none of its own name.
_PAGES = {
    "bootstrap": "doctor",
    "env": "env-files",
    "replay": "manifest",
    "compare": "manifest",
    "debug-config": "debug",
    "test": "debug",
    "bench": "debug",
    "trust": "security",
    "run": "builds",
    "shell": "builds",
    "python": "builds",
}


def verbs_page() -> str:
    """Return the page of all verbs as Markdown."""
    text = VERBS_HEAD
    for group in get_args(Group):
        text += f"\n## {group}\n\n| verb | what it does |\n| --- | --- |\n"
        text += "".join(
            f"| [`{name}`]({_PAGES.get(name, name)}.md) | {verb.summary} |\n"
            for name, verb in VERBS.items()
            if verb.group == group
        )
    return text


SWITCHES_HEAD = """# Switches

    torchbuild plan --set USE_DISTRIBUTED=0

`--set NAME=0` turns a switch of PyTorch's build off, `--set NAME=1` on. The table has the switches that
this tool knows something about. You can set any other that the checkout reads; `torchbuild plan` warns if
it reads none of that name. `nox -s docs` writes this page from
[`presets.toml`](../torchbuild_tasks/data/presets.toml), [`needs.toml`](../torchbuild_tasks/data/needs.toml),
[`linked.toml`](../torchbuild_tasks/data/linked.toml)
and [`submodules.toml`](../torchbuild_tasks/data/submodules.toml).

| switch | what it controls | presets | only together with | submodules |
| --- | --- | --- | --- | --- |
"""


def _needs(rows: Catalog) -> Iterator[tuple[str, str]]:
    """Yield each switch with what it needs: other switches, a system, a library of the machine."""
    for need in rows.need:
        said = [" or ".join(need.any), f"on {need.os.capitalize()} only" if need.os else ""]
        said += [f"not beside {name}" for name in need.against]
        yield from ((name, " ".join(filter(None, said))) for name in need.names)
    for linked in rows.linked:
        for switch in linked.switches:
            name, _, value = switch.partition("=")
            yield name, f"{linked.name} on the machine" + (f", where it is {value}" if value else "")


def switches_page() -> str:
    """Return the page of the switches that any row knows, as Markdown."""
    rows = load_catalog()
    about: dict[str, dict[str, str]] = {}

    def add(name: str, column: str, text: str) -> None:
        """Add to a column of a switch what it does not say yet."""
        columns = about.setdefault(name, {})
        present = columns.get(column, "")
        if text not in present.split("; "):
            columns[column] = f"{present}; {text}" if present else text

    for switch in rows.switch:
        saved = f" ({switch.compiles:,} of {switch.of:,} compiles of {switch.torch})"
        add(switch.variable, "what", f"{switch.what}{saved if switch.compiles else ''}")
    for preset in rows.preset:
        for name, value in preset.variables.items():
            add(name, "presets", f"{preset.name}: {value}")
    for name, text in _needs(rows):
        add(name, "needs", text)
    for submodule in rows.submodule:
        for name in (*submodule.needs, *submodule.any):
            add(name, "submodules", submodule.path.removeprefix("third_party/"))
    order = ("what", "presets", "needs", "submodules")
    return SWITCHES_HEAD + "".join(
        f"| `{name}` | {' | '.join(about[name].get(column, '') for column in order)} |\n"
        for name in sorted(about)
    )


SCHEMA = "torchbuild.schema.json"
FLAGS_HEAD = """# Flags

The flags are the same in nox (after `--`), Invoke and `torchbuild`. Each also has [an environment
variable](config.md#variables). A flag marked *file* can have its default in [`torchbuild.toml`](config.md).
`nox -s docs` writes this page from [`options.py`](../torchbuild_tasks/options.py) and the verbs' own flags.

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
    """Write the pages, and the schema of torchbuild.toml."""
    schema = json.dumps(config.schema(), indent=2, ensure_ascii=False)
    (folder / SCHEMA).write_text(f"{schema}\n", "utf-8")
    (folder / "flags.md").write_text(flags_page(), "utf-8")
    (folder / "verbs.md").write_text(verbs_page(), "utf-8")
    (folder / "switches.md").write_text(switches_page(), "utf-8")
    (folder / "failures.md").write_text(failures_page(), "utf-8")


if __name__ == "__main__":
    write_pages(Path(__file__).resolve().parent.parent / "docs")
