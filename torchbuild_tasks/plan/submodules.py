"""Decide which submodules a build needs and why, which are missing, and the command that fetches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.version import Version

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits, applies, parse_version, torch_row
from torchbuild_tasks.catalog.source import PinRow, SubmoduleRow
from torchbuild_tasks.model import Finding, Tree
from torchbuild_tasks.model.source import Lacking
from torchbuild_tasks.plan.packages import how_to_install
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.torch_ref import MAIN, releases
from torchbuild_tasks.plan.variables import is_off
from torchbuild_tasks.text.words import as_word, first_few

LOOKS_AT_ALL = ">=1.9,<2.14"  # the releases whose setup.py looks into every folder of .gitmodules
_ALL = "USE_SYSTEM_LIBS"
_SHOWN = 12
_BY_SETUP = "setup.py looks there, whatever is switched off"
_BY_GIT = "named by .gitmodules, and nothing says that this build does without"


class Needs:
    """The submodules that a build with these decided variables needs."""

    def __init__(self, question: Question, variables: Mapping[str, str]) -> None:
        """Take the question and the values that its layers and choices have given."""
        self._question, self._variables = question, variables
        # Main says 2.6.0a0 for months before it is 2.6, and has its submodules.
        self._version = Version((question.version or Version(question.row.version)).base_version)

    def why(self, path: str) -> str:
        """Return why a build needs this folder of third_party; "" where it does without."""
        if self.is_checked(path):
            return _BY_SETUP
        row = self._row(path)
        return self._why_by_row(row) if row else _BY_GIT

    def lacking(self) -> Lacking:
        """Return the empty folders, without those inside another of them."""
        tree = self._question.facts.tree
        known = [path for path in tree.absent if not tree.sample and self._exists(path)]
        empty = sorted({*tree.empty, *known})
        outer = [path for path in empty if not any(path.startswith(f"{other}/") for other in empty)]
        missing = {path: why for path in outer if (why := self.why(path))}
        unneeded = tuple(path for path in outer if path not in missing)
        fix = way_out(self._question, missing) if missing else ""
        return Lacking(missing=missing, unneeded=unneeded, fix=fix)

    def _row(self, path: str) -> SubmoduleRow | None:
        return next(
            (row for row in self._question.catalog.submodule if f"{path}/".startswith(f"{row.path}/")), None
        )

    def _exists(self, path: str) -> bool:
        """Say whether this release has a folder that only a row names."""
        row = self._row(path)
        return row is not None and (applies(row.torch, self._version) or self.is_checked(path))

    def is_checked(self, path: str) -> bool:
        """Say whether setup.py looks into it itself; with USE_SYSTEM_LIBS, of any value, it does not."""
        if self._question.era != "setuptools" or self._variables.get(_ALL):
            return False
        checked = self._question.facts.tree.checked
        if checked is not None:
            return path in checked
        row = next((row for row in self._question.catalog.submodule if row.path == path), None)
        if row and row.checked and admits(row.checked, self._version):
            return True
        return (
            path.count("/") == 1
            and path in self._question.facts.tree.empty
            and bool(admits(LOOKS_AT_ALL, self._version))
        )

    def _why_by_row(self, row: SubmoduleRow) -> str:
        system = (*row.system, _ALL) if row.system else ()
        elsewhere = row.unused or row.os not in ("", self._question.facts.host.os)
        if elsewhere or any(self._is_on(name, "0") for name in system):
            return ""
        if not all(self._is_on(name, default) for name, default in row.needs.items()):
            return ""
        needed = [*row.needs.items()]
        if row.any:
            needed += [item for item in row.any.items() if self._is_on(*item)][:1]
            if len(needed) == len(row.needs):
                return ""
        return self._settings_text([name for name, _ in needed]) or f"every build of torch {self._series()}"

    def _is_on(self, name: str, default: str) -> bool:
        """Say whether a variable is on; the default is 1, 0, or the system or architecture where it is 1."""
        value = self._variables.get(name)
        if value is not None:
            return value != "" and not is_off(value)
        if not self._question.has_switch(name):
            return False
        host = self._question.facts.host
        return default in ("1", host.os, host.arch)

    def _settings_text(self, names: Sequence[str]) -> str:
        values = [f"{name}={self._variables[name]}" for name in names if name in self._variables]
        silent = " and ".join(name for name in names if name not in self._variables)
        return " and ".join([*values, *([f"{silent}, on by default"] if silent else [])])

    def _series(self) -> str:
        return ".".join(map(str, self._version.release[:2]))


def check_submodules(question: Question, variables: Mapping[str, str]) -> tuple[Finding, ...]:
    """Report the empty folders of third_party: an error where the build needs one."""
    needs = Needs(question, variables)
    if torn := [path for path in question.facts.tree.torn if needs.is_checked(path)]:
        text = (
            f"{first_few(torn, _SHOWN)}: there is no CMakeLists.txt, Makefile, setup.py or LICENSE in it, so "
        )
        text += "it is not complete, and setup.py stops"
        remove = ("rm", "-r") if question.facts.host.os != "windows" else ("rmdir", "/s")
        away = question.line(*remove, *(question.join(path) for path in torn))
        return (Finding.error("submodules", text, f"Remove it ({away}), then {way_out(question, torn)}"),)
    lacking = needs.lacking()
    if lacking.missing:
        text = missing_text(lacking.missing)
        return (Finding.error("submodules", text, lacking.fix),)
    if not lacking.unneeded:
        return ()
    named = first_few(lacking.unneeded, _SHOWN)
    text = f"{len(lacking.unneeded)} empty third_party folders are not needed by what is planned: {named}"
    return (Finding.ok("submodules", text),)


def missing_text(missing: Mapping[str, str]) -> str:
    """Name the empty folders, grouped by what needs them."""
    reasons: dict[str, list[str]] = {}
    for path, why in missing.items():
        reasons.setdefault(why, []).append(path)
    reasons_text = "; ".join(f"{first_few(paths, _SHOWN)} ({why})" for why, paths in reasons.items())
    what = "1 folder of a submodule is" if len(missing) == 1 else f"{len(missing)} folders of submodules are"
    return f"{what} empty or not there: {reasons_text}"


# ---------------- what fetches them


def can_fetch(tree: Tree, missing: Iterable[str]) -> bool:
    """Say whether git can fetch these into this folder: its index has them as submodules."""
    return tree.git and not set(missing) & set(tree.linkless)


def find_pins(catalog: Catalog, version: str | None) -> dict[str, PinRow]:
    """Return the rows of the submodules of a release, by path."""
    base = parse_version(version)
    return {row.path: row for row in catalog.pin if base and Version(base.base_version) == Version(row.torch)}


def fetched_word(tree: Tree, catalog: Catalog) -> str:
    """Return the word of `source get` for the torch that this folder is."""
    known = releases(catalog)
    version = parse_version(tree.version)
    base = Version(version.base_version) if version else None
    if base in known:
        return str(base)
    row, exact = torch_row(catalog, version)
    if exact:
        return row.latest
    return f"v{base}" if base and base < max(known) else MAIN  # older than the table: by its tag


def sibling_folder(tree: Tree) -> str:
    """Return a folder next to this one for a checkout of the same torch."""
    return tree.root.rstrip("/\\") + "-git"


def way_out(question: Question, missing: Iterable[str]) -> str:
    """Return what to do about missing submodules: a command that works for what this folder is."""
    tree = question.facts.tree
    # Facts name every program that was looked for, so one that is not there stands in them without a path.
    lost = any(tool.name == "git" and not tool.path for tool in question.facts.tools)
    first = f"{how_to_install(question.facts, question.catalog, 'git')}; then " if lost else ""
    # Which ones are needed is decided by the same flags there.
    update = f"torchbuild source update --source {as_word(tree.root)}{question.device_and_switches}"
    if tree.sample and not can_fetch(tree, missing):  # no release of PyTorch has what the sample has there
        return "Copy the sample anew, with its third_party folder, from where it came from"
    if can_fetch(tree, missing):
        return f"{first}{update}"
    pins = find_pins(question.catalog, tree.version)
    if not tree.git and all(path in pins for path in missing):
        release = next(iter(pins.values())).torch
        return f"{first}get each at the commit that torch {release} has: {update}"
    word = fetched_word(tree, question.catalog)
    place = as_word(sibling_folder(tree))
    why = "knows no submodules here" if tree.git else "cannot be asked, for this is not a git checkout"
    release = f"https://github.com/pytorch/pytorch/releases/download/v{word}/pytorch-v{word}.tar.gz"
    archive = (
        ""
        if not word[0].isdecimal()
        else f". Or unpack the release's own archive, which holds them: {release}"
    )
    return (
        f"{first}get a checkout that has them (git {why}): torchbuild source get {word} --source {place}; "
        f"then build that one: --source {place}{archive}"
    )
