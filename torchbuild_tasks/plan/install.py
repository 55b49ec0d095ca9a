"""Decide how a build gets to an importable torch: by the Python front end where its part can have changed.

What it read at the last complete install is remembered, so neither a build that failed nor
one that the front end never saw makes this forget anything.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from torchbuild_tasks.catalog.match import applies, configure_row, variable_row
from torchbuild_tasks.catalog.rows import FrontEndRow
from torchbuild_tasks.model import Choice, Command, Finding, Freshness, Python, Way
from torchbuild_tasks.plan.freshness import as_configured, is_same
from torchbuild_tasks.plan.machine_tools import MAKE_PROGRAM
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.paths import is_inside
from torchbuild_tasks.values import replace

if TYPE_CHECKING:  # decisions takes its variables from here
    from torchbuild_tasks.plan.decisions import Decisions

LIBTORCHLESS: Final = "BUILD_LIBTORCHLESS"  # a switch of PyTorch's own
NINJA_SEES: Final = ("patch *",)
_TREE_IS_DUE: Final = ("first", "reconfigure", "clean")


def front_end_rows(question: Question, role: str) -> tuple[FrontEndRow, ...]:
    """Return the rows of this role that apply to the checkout."""
    return tuple(
        row
        for row in question.catalog.front_end
        if row.role == role and row.era in ("", question.era) and applies(row.torch, question.version)
    )


def choose_way(decisions: Decisions, freshness: Freshness, inputs: Mapping[str, str]) -> Way:
    """Decide between the front end, and Ninja with CMake's install alone."""
    question = decisions.question
    target = question.request.target or ""
    reason = next(_for_front_end(decisions, freshness, inputs), "")
    because = reason or "setup.py or pip would read and write nothing new"
    configure = _configure(decisions, freshness) if reason else None
    argv = (decisions.variables.get(MAKE_PROGRAM) or "ninja", "-C", question.build_dir)
    ninja = Command(argv=argv, cwd=question.facts.tree.root, because=because)
    if target:
        what = "this and what it is made of; nothing is installed or verified"
        unsure = f", and whether there is a {target} CMake's run shows" if configure else ""
        ninja = replace(ninja, argv=(*argv, target), because=f"--target: {what}{unsure}")
    return Way(
        name="front end" if reason else "install",
        because=because,
        ninja=ninja if target or not reason else None,
        configure=configure,
        target=target,
    )


def _configure(decisions: Decisions, freshness: Freshness) -> Command | None:
    """Return how the build tree of one target is made, where it is to be made and that can be done."""
    question = decisions.question
    if not question.request.target or freshness.needs not in _TREE_IS_DUE:
        return None
    if question.era == "scikit-build-core" and question.facts.tree.installed is not None:
        return None  # it empties the folder that the installed torch is read from
    return configure_command(question, decisions.python.environment.python)


def configure_command(question: Question, python: str) -> Command | None:
    """Return how CMake alone is run, before one target is built; None where that cannot be done."""
    row = configure_row(question.catalog, question.era, question.version)
    if row is None:
        return None
    argv = tuple(word.replace("{python}", python) for word in row.argv)
    return Command(argv=argv, cwd=question.facts.tree.root, because=row.because)


def mixed_variables(question: Question) -> tuple[Choice, ...]:
    """Return what has CMake take the libraries below torch_python as they lie there, of a wheel."""
    if not question.request.mixed or question.request.target != "torch_python":
        return ()
    because = "torch_python is linked with the wheel's libraries, and nothing else is compiled"
    values = {LIBTORCHLESS: "1", "LIBTORCH_LIB_PATH": question.join("torch", "lib")}
    return tuple(Choice(name=name, value=value, because=because) for name, value in values.items())


def _for_front_end(decisions: Decisions, freshness: Freshness, inputs: Mapping[str, str]) -> Iterator[str]:
    """Say why the front end is needed, the weightiest reason first."""
    question, environment = decisions.question, decisions.python.environment
    tree, python = question.facts.tree, decisions.python.target
    if freshness.needs in _TREE_IS_DUE:
        yield freshness.because
    if decisions.mode.value != "develop":
        yield "a wheel is asked for"
    if decisions.generator.value != "Ninja":
        yield f"the generator is {decisions.generator.value}, not Ninja"
    if python is None or environment.create or environment.remove:
        yield "its Python is made or changed first"
    elif python.torch_from != tree.root:
        yield f"torch is imported from {python.torch_from or 'nowhere yet'}, not from this checkout"
    if tree.installed is None:
        yield "no editable install by this tool is recorded here"
    else:
        yield from _find_changes(question, as_configured(question, tree.installed, inputs), inputs)
    prefix = (tree.cache.prefix if tree.cache else None) or "an unknown folder"
    # Outside of both is where a wheel is made.
    if not any(is_inside(prefix, each) for each in (tree.root, question.build_dir)):
        newer = "; scikit-build-core 1.1 can do without"
        old = question.era == "scikit-build-core" and not keeps_tree(python)
        yield f"CMake installs into {prefix}, from where a wheel is made" + (newer if old else "")


def _find_changes(question: Question, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    names = sorted({**before, **after})
    changed = [
        name
        for name in names
        if not is_same(before.get(name), after.get(name)) and feeds_front_end(question, name, after)
    ]
    if changed:
        listed = ", ".join(name.split(" ", 1)[-1] for name in changed[:3])
        yield f"changed since the last install: {listed}" + (" ..." if len(changed) > 3 else "")


def feeds_front_end(question: Question, name: str, inputs: Mapping[str, str]) -> bool:
    """Say whether the result of the front end depends on this input."""
    if name.startswith("variable "):
        row = variable_row(question.catalog, name.removeprefix("variable "), question.era, question.version)
        return row is not None and row.needs != "nothing"
    if name.startswith("file "):
        path = name.removeprefix("file ")
        return any(fnmatch.fnmatchcase(path, row.path) for row in front_end_rows(question, "reads"))
    if name == "commit":  # it is a part of the version, unless that is given
        return "variable PYTORCH_BUILD_VERSION" not in inputs
    return not any(fnmatch.fnmatchcase(name, pattern) for pattern in NINJA_SEES)


# ---------------- the editable install


def keeps_tree(python: Python | None) -> bool:
    """Say whether scikit-build-core can install into a tree that stays, and leave imports alone.

    From 1.1 on: before, a tree that stays meant a rebuild at every import (scikit-build-core#1576).
    One that is not there yet is installed as the newest.
    """
    version = python.packages.get("scikit-build-core") if python else None
    return version is None or Version(version) >= Version("1.1")


def editable_variables(question: Question, python: Python | None, mode: str) -> tuple[Choice, ...]:
    """Return variables that keep the editable install of scikit-build-core out of a wheel.

    By default it zips all libraries into a wheel that pip unpacks at once: 290 of 308 seconds
    of a DEBUG install (pytorch#196619, where these settings are named).
    """
    if question.era != "scikit-build-core" or mode != "develop" or not keeps_tree(python):
        return ()
    folder = f"{question.build_dir}{question.separator}editable"
    folder = folder.replace("{", "{{").replace("}", "}}")  # it is a template
    settings = (
        ("REBUILD_DIR", folder, "the editable install reads from here, without a wheel in between"),
        ("REBUILD", "false", "an import of torch builds nothing"),
    )
    chosen = [Choice(name=f"SKBUILD_EDITABLE_{name}", value=v, because=why) for name, v, why in settings]
    because = "stripping takes time and removes the symbols that a debugger needs"
    return (*chosen, Choice(name="SKBUILD_INSTALL_STRIP", value="false", because=because))


# ---------------- --target and --watch


def check_loop(decisions: Decisions, freshness: Freshness) -> tuple[Finding, ...]:
    """Check that --target and --watch can be done at all."""
    question, mode = decisions.question, decisions.mode.value
    if question.request.watch and mode != "develop":
        text = f"--watch keeps an editable install up to date; --mode {mode} makes something else."
        return (Finding.error("watch", text, "Use --watch or --mode, not both."),)
    target = question.request.target
    problem = _no_target(decisions, freshness, target) if target else ""
    if not problem:
        return ()
    text = f"--target {target}: {problem}."
    fix = "Use `build` without --target."
    if question.request.clean:
        fix = "Leave out --clean; where the tree has to be made anew, --yes agrees to that. " + fix
    return (Finding.error("target", text, fix),)


def _no_target(decisions: Decisions, freshness: Freshness, target: str) -> str:
    generator = decisions.generator.value
    if decisions.mode.value != "develop":
        return f"--mode {decisions.mode.value} packs all of torch"
    if decisions.question.request.clean:
        return "--clean removes what one target is made from"
    if generator != "Ninja":
        return f"one target is built by Ninja, and the generator is {generator}"
    if target in ("all", "install"):
        return f"{target} is what `build` makes anyway, and `build` looks at more"
    if target.startswith("-"):
        return "a name is expected, and that is an option"
    if freshness.needs in _TREE_IS_DUE and _configure(decisions, freshness) is None:
        return f"the build tree has to be made first: {freshness.because}"
    return ""
