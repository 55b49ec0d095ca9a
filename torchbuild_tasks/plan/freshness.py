"""The fingerprint of a build's inputs, and what a difference to the last one needs.

PyTorch's own build ignores a changed variable while CMakeCache.txt stands, in both eras;
so the inputs are compared here, and a reconfigure is really one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchbuild_tasks.catalog.match import admits, covers, parse_version, series, variable_row
from torchbuild_tasks.model import Change, Finding, Freshness, Need, Tree
from torchbuild_tasks.plan.machine_tools import (
    CMAKE_ARGS,
    MAKE_PROGRAM,
    ninja_of,
    reads_log,
    without_ninja,
)
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.requirements import parse_if_named
from torchbuild_tasks.text.paths import is_inside, names_same, path_key

if TYPE_CHECKING:
    from torchbuild_tasks.plan.decisions import Decisions  # which imports install, and that this module

ORDER: tuple[Need, ...] = ("nothing", "build", "reconfigure", "clean", "first")
ABSENT = "(not set)"
OWN_NINJA = "of the build's Python"


def fingerprint(decisions: Decisions) -> dict[str, str]:
    """Return every input by name, as text; the names are those of inputs.toml and `variable X`."""
    question, environment = decisions.question, decisions.python.environment
    tree, tool = question.facts.tree, decisions.compilers.tool
    cxx = decisions.compilers.cxx
    inputs = {
        "source": tree.root,
        "era": question.era,
        "python": f"{environment.python} {series(environment.version)}",
        "compiler": (cxx.value if cxx else "") + (f" {tool.version}" if tool else ""),
        "c compiler": decisions.compilers.cc.value if decisions.compilers.cc else "",
        "generator": decisions.generator.value,
        "build type": decisions.build_type.value,
        "cmake": cmake_version(decisions),
        "ninja": _ninja(decisions),
        "version": str(tree.version),
        "mode": decisions.mode.value,
    }
    if tree.commit:
        inputs["commit"] = tree.commit
    inputs |= {f"file {name}": digest for name, digest in tree.digests.items()}
    inputs |= {f"helper {helper.row.name}": helper.artifact.id for helper in decisions.helpers.chosen}
    if decisions.toolset.choice:
        inputs["toolset"] = decisions.toolset.choice.value
    if decisions.cuda.toolkit.root:
        inputs["cuda toolkit"] = (
            f"{decisions.cuda.toolkit.root} {decisions.cuda.toolkit.version or ''}".rstrip()
        )
    if decisions.linker.plan:
        inputs["linker"] = f"{decisions.linker.plan.name} {decisions.linker.plan.program}"
    inputs |= {
        f"patch {patch.id}": hashlib.sha256(patch.diff.encode()).hexdigest()[:16]
        for patch in decisions.patches
    }
    inputs |= {f"variable {name}": value for name, value in decisions.variables.items()}
    inputs = _without_ninja(question, inputs)
    if question.request.mixed and tree.previous:  # which wheel it is, and what with, is seen when it is found
        inputs |= {name: text for name, text in tree.previous.inputs.items() if name.startswith("wheel")}
    return inputs


def conceal(value: str) -> str:
    """Return what stands for a value that may not be written down, so that a change of it is still seen.

    16 bits of its hash: enough for that, too few to tell whether a guessed password is the right one.
    """
    return f"*** {hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()[:4]}"


def is_same(before: str | None, now: str | None) -> bool:
    """Say whether an input is as it was recorded, in clear or concealed."""
    return before == now or (None not in (before, now) and before == conceal(str(now)))


def cmake_version(decisions: Decisions) -> str:
    """Return the CMake that the build will find first: its Python's own, else the one on PATH.

    Of one that is yet to be installed only the wanted range is known; the one that configured the tree
    stands for it where it is in that range.
    """
    question, python = decisions.question, decisions.python
    cache = question.facts.tree.cache
    wanted = next((found for text in python.missing if (found := parse_if_named(text, "cmake"))), None)
    if wanted is not None:
        before = cache.cmake if cache else None
        known = before is not None and admits(str(wanted.specifier), before)
        return str(before) if known else f"{wanted.specifier} from PyPI".lstrip()
    own = python.target.packages.get("cmake") if python.target else None
    tool = question.facts.tool("cmake")
    text = str(own or (tool.version if tool else "") or "")
    version = parse_version(text.partition("-")[0])  # Visual Studio's is called 3.31.6-msvc6
    return version.base_version if version else text


def _ninja(decisions: Decisions) -> str:
    """Return the path of the Ninja that the build takes; the Python's own, which is found first, has none."""
    question, python = decisions.question, decisions.python
    if any(parse_if_named(text, "ninja") for text in (*python.missing, *python.better)):
        return OWN_NINJA
    ninja = ninja_of(question, python.target)
    return ninja.path or (OWN_NINJA if ninja.version else "")


def _without_ninja(question: Question, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return inputs without what names the Ninja of the tree: to go on with it is no change."""
    cache = question.facts.tree.cache
    found = dict(inputs)
    if cache is None or not cache.make_program:
        return found
    if names_same(found.get(f"variable {MAKE_PROGRAM}", ""), cache.make_program):
        del found[f"variable {MAKE_PROGRAM}"]
    args = found.pop(f"variable {CMAKE_ARGS}", "")
    if rest := without_ninja(args, cache.make_program):
        found[f"variable {CMAKE_ARGS}"] = rest
    return found


def as_configured(question: Question, before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """Return recorded inputs with the CMake and the Ninja that have really configured the tree.

    Those may have been installed after the plan that was recorded. CMake keeps the path of its Ninja, and
    any that reads the log of the tree goes on with it, whatever its path.
    """
    cache = question.facts.tree.cache
    found = {**_without_ninja(question, before), "ninja": now["ninja"]}
    if cache and cache.cmake:
        found["cmake"] = cache.cmake
    if cache and cache.make_program:
        lost = cache.make_gone or reads_log(question, cache.make_version) is False
        found["ninja"] = cache.make_program if lost else now["ninja"]
    return found


def compare(decisions: Decisions, inputs: Mapping[str, str]) -> Freshness:
    """Return what the existing build tree needs, and which inputs changed."""
    question, mode = decisions.question, decisions.mode.value
    tree = question.facts.tree
    if question.request.clean:
        return Freshness(needs="clean", because="--clean on the command line")
    if moved := _foreign_tree(question, inputs):
        return Freshness(needs="clean", because=moved)
    if tree.previous is None:
        if tree.cache is not None:
            because = "the build tree has no record of this tool that can be read, so it is configured again"
            return Freshness(needs="reconfigure", because=because)
        return Freshness(needs="first", because="nothing was built here yet")
    changes = _changes(question, as_configured(question, tree.previous.inputs, inputs), inputs)
    needs: Need = max((change.needs for change in changes), key=ORDER.index, default=ORDER[0])
    if ORDER.index(needs) >= ORDER.index("reconfigure"):
        return Freshness(needs=needs, because=_because(changes, needs), changes=changes)
    if lost := _lost_with_venv(decisions):
        return Freshness(needs="reconfigure", because=lost, changes=changes)
    if tree.cache is None and tree.previous.result == "ok":
        because = "the build tree has lost its CMakeCache.txt"
        return Freshness(needs="reconfigure", because=because, changes=changes)
    if tree.previous.result != "ok":
        because = _goes_on(tree)
        return Freshness(needs="build", because=because, changes=changes)
    if needs == "nothing" and mode == "wheel":
        return Freshness(needs="build", because="a wheel is asked for", changes=changes)
    return Freshness(needs=needs, because=_because(changes, needs), changes=changes)


def _lost_with_venv(decisions: Decisions) -> str:
    """Say that the Ninja that made the tree goes with a venv that is set aside; "" where it stays."""
    create, cache = decisions.python.environment.create, decisions.question.facts.tree.cache
    program = cache.make_program if cache else None
    if create is None or not program or not is_inside(program, create.argv[-1]):
        return ""
    return f"a new venv is made where {program} is, which made the build tree"


def _goes_on(tree: Tree) -> str:
    """Say how the last build ended, or that it has not."""
    assert tree.previous is not None
    if tree.running and tree.previous.result == "running":
        return f"process {tree.running.pid} builds here now; another build goes on from where that one ends"
    if tree.previous.result == "running":
        return "the last build was cut off while it was running (or with the machine); it goes on from there"
    return f"the last build ended as {tree.previous.result}; it goes on from there"


def check_running(question: Question) -> tuple[Finding, ...]:
    """Warn of a command that works on the checkout now: what is seen of it is on the move."""
    running = question.facts.tree.running
    if running is None:
        return ()
    fix = "Wait until it is over, or end it; another checkout or worktree can be built meanwhile."
    return (Finding.warn("running", running.said, fix),)


def check_clean(question: Question, freshness: Freshness) -> tuple[Finding, ...]:
    """Refuse to make a build tree anew that no build of this tool is recorded to have made."""
    request, tree = question.request, question.facts.tree
    laid = request.from_wheel and not request.mixed  # nothing is compiled there
    if freshness.needs != "clean" or tree.recorded is not False or tree.cache is None or laid:
        return ()
    text = f"{freshness.because}, so {question.build_dir} has to be made anew; no build by this tool is "
    text += "recorded here, and it removes only what one has made"
    program = ("rm", "-r") if question.facts.windows is None else ("rmdir", "/s", "/q")
    fix = f"Remove it yourself if nothing in it is yours: {question.line(*program, question.build_dir)}"
    return (Finding.error("clean", text, f"{fix}, and leave --clean out" if request.clean else fix),)


def _because(changes: tuple[Change, ...], needs: Need) -> str:
    names = [change.name for change in changes if change.needs == needs]
    if not names:
        return "no input changed since the last build"
    told = dict.fromkeys(change.because for change in changes if change.needs == needs and change.because)
    reasons = [each for each in told if not any(other.startswith(f"{each},") for other in told)]
    why = f" ({'; '.join(reasons)})" if reasons and needs == "clean" else ""
    return f"changed since the last build: {', '.join(names)}{why}"


def _foreign_tree(question: Question, inputs: Mapping[str, str]) -> str | None:
    """Say why the build tree belongs to another folder or another Python, if it does."""
    cache = question.facts.tree.cache
    if cache is None:
        return None
    if cache.home and not names_same(cache.home, inputs["source"]):
        return f"the build tree was made for {cache.home}, from where it was copied or moved"
    python = inputs["python"].rpartition(" ")[0]
    previous = question.facts.tree.previous
    if previous and previous.inputs.get("mode") == inputs["mode"] == "wheel":
        return None  # the input `python` says what that needs
    # One environment has its interpreter under several names: python, python3, python3.11.
    if cache.python and path_key(cache.python).rpartition("/")[0] != path_key(python).rpartition("/")[0]:
        return f"the build tree was made by another Python ({cache.python}, now {python})"
    return None


def _changes(question: Question, before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    mode = after["mode"] if before.get("mode") == after["mode"] else ""
    names = [name for name in {**before, **after} if not is_same(before.get(name), after.get(name))]
    return tuple(
        Change(
            name=name.removeprefix("variable "),
            before=before.get(name, ABSENT),
            after=after.get(name, ABSENT),
            needs=needs,
            because=because,
        )
        for name in sorted(names)
        for needs, because in [_need(question, name, mode)]
    )


def _need(question: Question, name: str, mode: str) -> tuple[Need, str]:
    """Return what a change of this input needs, and why; `mode` is that of both builds, if it is one."""
    if name.startswith("variable "):
        row = variable_row(question.catalog, name.removeprefix("variable "), question.era, question.version)
        return (row.needs if row else "nothing"), ""
    named = (row for row in question.catalog.input if covers(row.name, name))
    rows = (row for row in named if row.mode in ("", mode))
    return next(((row.needs, row.because) for row in rows), ("reconfigure", ""))
