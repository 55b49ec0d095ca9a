"""Name the causes of an error: rows that know a line of its block, filled in for this machine and build.

`read_log` judges a whole log, `explain` what a short command said; `Machine` fills the names in the sentences
of rows ({python}, {package:ninja}, {1}).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from torchbuild_tasks.catalog import GIB, Catalog, FailureRow
from torchbuild_tasks.catalog.failures import FailureBook, Hit
from torchbuild_tasks.catalog.match import admits, parse_version
from torchbuild_tasks.features.diagnosis import patterns
from torchbuild_tasks.features.diagnosis.scan import ErrorBlock, Line, LogScanner
from torchbuild_tasks.model import BuildPlan, Diagnosis, Facts, Reading
from torchbuild_tasks.plan.jobs import usable_memory
from torchbuild_tasks.plan.packages import install_line
from torchbuild_tasks.plan.submodules import can_fetch, fetched_word, folder_beside

_GROUP: Final = re.compile(r"\{(\d)\}")
# A name may hold a group itself: {package:g++-{1}}.
_NAME: Final = re.compile(r"\{((?:[^{}]|\{\d\})+)\}")
_INSTALLED: Final = re.compile(r"(g\+\+|clang\+\+|toolset)(<=?)([\d.]+)")
# A word that no shell takes for more than itself.
_PLAIN: Final = re.compile(r"[\w.+:/\\@%=,-]+")


class Machine:
    """The names that rows may use, with their values here; a name that is not known has none.

    Args:
        facts: the machine and the tree.
        plan: what this build was to do, or what one here would do.
        catalog: the rows of packages.
        built: whether the log is of that very build; else its jobs and architectures are not known.
    """

    def __init__(self, facts: Facts, plan: BuildPlan, catalog: Catalog, *, built: bool) -> None:
        self._facts, self._catalog = facts, catalog
        self._values = {**_values(facts, plan, catalog), **(_of_the_build(facts, plan) if built else {})}

    def value(self, name: str) -> str:
        """Return what a name stands for on this machine; empty when that is not known."""
        if name.startswith("package:"):
            return self._install(name.removeprefix("package:"))
        if installed := _INSTALLED.fullmatch(name):
            return self._newest(*installed.groups())
        return self._values.get(name, "")

    def fill(self, sentences: Sequence[str], groups: Sequence[str]) -> str:
        """Return the first of these sentences whose names are all known, filled in; "" for none."""
        return next(filter(None, (self._filled(each, groups, _as_it_is) for each in sentences)), "")

    def fill_command(self, commands: Sequence[str], groups: Sequence[str]) -> str:
        """Return the same for commands: a path with a blank is quoted, a log's words must be plain."""
        plain = [group if _PLAIN.fullmatch(group) else "" for group in groups]
        return next(filter(None, (self._filled(each, plain, _word) for each in commands)), "")

    def _filled(self, sentence: str, groups: Sequence[str], write: Callable[[str], str]) -> str:
        """Fill the names in, in one pass: what a log says is never read as a name."""
        values: dict[str, str] = {}
        for name in _NAME.findall(sentence):
            if name.isdecimal():
                values[name] = _group(name, groups)
            else:
                inner = _GROUP.sub(lambda match: _group(match[1], groups), name)
                values[name] = write(self.value(inner))
        return _NAME.sub(lambda match: values[match[1]], sentence) if all(values.values()) else ""

    def _install(self, package: str) -> str:
        """Return the command that installs a package; without a package manager, a sentence that names it."""
        return install_line(self._facts, self._catalog, package) or f"install {package}"

    def _newest(self, name: str, below: str, limit: str) -> str:
        """Return the path of the newest installed compiler up to this version, or a toolset's number."""
        if name == "toolset":
            toolsets = self._facts.windows.toolsets if self._facts.windows else ()
            named = [(each.version, each.version) for each in toolsets if each.cl]
        else:
            compilers = [tool for tool in self._facts.compilers if tool.name == name]
            named = [(tool.version or "", tool.path or "") for tool in compilers]
        precision = limit.count(".") + 1
        most = parse_version(limit)
        found = [(version, value) for text, value in named if value and (version := parse_version(text))]
        fitting = [
            (version, value)
            for version, value in found
            if most and (version < most or (below == "<=" and version.release[:precision] == most.release))
        ]
        return max(fitting)[1] if fitting else ""


def _as_it_is(value: str) -> str:
    return value


def _word(value: str) -> str:
    """Return a value as one word of sh, cmd and PowerShell alike; "" where it cannot be one."""
    if _PLAIN.fullmatch(value) or not value:
        return value
    return "" if any(each in value for each in '"$`') else f'"{value}"'


def _group(number: str, groups: Sequence[str]) -> str:
    return groups[int(number) - 1] if int(number) <= len(groups) else ""


def _values(facts: Facts, plan: BuildPlan, catalog: Catalog) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    here = facts.tree.problem is None
    values = {
        "source": plan.source if here else ".",
        "build": plan.build_dir if here else "build",
        "python": plan.environment.python if here and plan.environment.python else "python",
        "toolset": choices.get("toolset", ""),
        "libc": facts.host.libc or "",
    }
    if choices.get("jobs", "").isdecimal():
        values["jobs"] = str(max(1, int(choices["jobs"]) // 2))
    values |= _of_the_tree(facts, catalog) if here else {}
    values |= {f"built {name.removeprefix('variable ')}": value for name, value in _inputs(facts).items()}
    if facts.cuda is not None:
        usable = [each for each in facts.cuda.toolkits if each.nvcc and not each.problem]
        values["cuda toolkit"] = choices.get("CUDA toolkit", "") or next((each.path for each in usable), "")
        values["gpus"] = ";".join(sorted({gpu.capability for gpu in facts.cuda.gpus if gpu.capability}))
        values["driver cuda"] = (facts.cuda.driver.cuda or "") if facts.cuda.driver else ""
    return values


def _of_the_tree(facts: Facts, catalog: Catalog) -> Mapping[str, str]:
    """Return what depends on what this folder is: `checkout` only where git can fetch its submodules."""
    tree, version = facts.tree, parse_version(facts.tree.version)
    best = [row.best for row in catalog.cuda_torch if row.best and version and admits(row.torch, version)]
    values = {"torch cuda": best[-1]} if best else {}
    if can_fetch(tree, tree.linkless):
        return {**values, "checkout": tree.root}
    return {**values, "release": fetched_word(tree, catalog), "beside": folder_beside(tree)}


def _inputs(facts: Facts) -> Mapping[str, str]:
    """Return the inputs of the last good build: a symptom at run time goes back to a choice of then."""
    previous = facts.tree.previous
    return previous.inputs if previous is not None and previous.result == "ok" else {}


def _of_the_build(facts: Facts, plan: BuildPlan) -> Mapping[str, str]:
    choices = {choice.name: choice.value for choice in plan.choices}
    room = usable_memory(facts.memory)
    return {
        "planned jobs": choices.get("jobs", ""),
        "free memory": f"{room[0] / GIB:.1f} GiB" if room else "",
        "archs": choices.get("TORCH_CUDA_ARCH_LIST", ""),
    }


PAGE: Final = "https://github.com/torchbuild/torchbuild-tasks/blob/main/docs/failures.md"
MOST: Final = 4  # causes that are named
_RANKS: Final = ("root", "cause", "consequence")


class _Met(msgspec.Struct, frozen=True):
    """A row that was met in the block, and the line that it knows; `whole` where it took several lines."""

    hit: Hit
    line: Line
    whole: bool = False


def read_log(scanner: LogScanner, book: FailureBook, machine: Machine) -> Reading:
    """Judge the log that this scanner has read: clean, a known cause, or an error that no row knows."""
    block = scanner.found
    notes = tuple(_diagnosis(Hit(row, _groups(book, row, line)), machine) for row, line in scanner.warned)
    if block is None:
        return Reading(status="clean", notes=notes)
    met = _ranked(block, [*_met(block, book), *_met_in_status(block, scanner.status_line, book)])
    error = met[0].line if met and block.weak else block.error
    known = tuple(_diagnosis(each.hit, machine) for each in met[:MOST])
    return Reading(
        status="diagnosed" if known else "unknown",
        error_line=error.raw,
        error_block=block.text,
        line_number=error.number,
        diagnoses=known,
        notes=tuple(note for note in notes if note.id not in {each.id for each in known}),
    )


def explain(text: str, book: FailureBook, machine: Machine) -> Diagnosis | None:
    """Return the cause of a short command's failure, by its whole output; None when no row knows it."""
    met = [
        _Met(hit, Line(number, line, line))
        for number, line in enumerate(text.splitlines(), 1)
        for hit in book.look_up(line)
        if not patterns.is_harmless(line)
    ]
    ranked = sorted(met, key=lambda each: _RANKS.index(each.hit.row.rank))
    return _diagnosis(ranked[0].hit, machine) if ranked else None


def _met(block: ErrorBlock, book: FailureBook) -> Iterator[_Met]:
    """Yield the rows that know a line of the block, and those that know it only as a paragraph."""
    said = [line for line in block.lines if line is block.error or _is_telling(line.text.strip())]
    for line in said:
        for hit in book.look_up(line.text.strip()):
            yield _Met(hit, line)
    if block.kind in ("cmake", "python", "words"):
        for hit in book.look_up(" ".join(line.text.strip() for line in said)):
            yield _Met(hit, block.error, whole=True)


def _met_in_status(block: ErrorBlock, status_line: str, book: FailureBook) -> Iterator[_Met]:
    """Yield the rows for CMake's status line before it stopped, where one takes it for an error."""
    if block.kind == "cmake" and status_line:
        for hit in book.look_up(status_line):
            yield _Met(hit, block.error, whole=True)


def _is_telling(text: str) -> bool:
    """Say whether a line of a block tells something: commands, warnings and quoted source do not."""
    return not (patterns.is_command(text) or patterns.is_harmless(text))


def _ranked(block: ErrorBlock, met: list[_Met]) -> list[_Met]:
    """Return each row once, roots first; a consequence only where nothing else is known."""
    first: dict[str, _Met] = {}
    for each in met:
        first.setdefault(each.hit.row.id, each)
    causes = [each for each in first.values() if each.hit.row.rank != "consequence"]
    if not causes:
        near = block.weak or block.kind == "cmake"
        return [each for each in first.values() if near or each.line is block.error]
    return sorted(causes, key=lambda each: (_RANKS.index(each.hit.row.rank), _nearness(each, block)))


def _nearness(met: _Met, block: ErrorBlock) -> int:
    """Rank a line: that of the error tells more than another, and that more than the whole paragraph."""
    return 2 if met.whole else int(met.line is not block.error)


def _groups(book: FailureBook, row: FailureRow, line: str) -> tuple[str, ...]:
    return next((hit.groups for hit in book.look_up(line) if hit.row is row), ())


def _diagnosis(hit: Hit, machine: Machine) -> Diagnosis:
    row = hit.row
    return Diagnosis(
        id=row.id,
        cause=machine.fill((row.cause,), hit.groups) or row.cause,
        fix=machine.fill(row.fix, hit.groups),
        command=machine.fill_command(row.command, hit.groups),
        see=f"{PAGE}#{row.id}",
    )
