"""Check names and values of build variables against this checkout: whether they are read and valid."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from torchbuild_tasks.catalog.match import admits, applies, covers, parse_version, variable_row
from torchbuild_tasks.catalog.rows import VariableRow
from torchbuild_tasks.model import Choice, Finding, Status, Switch
from torchbuild_tasks.options import BuildRequest, flag_name, variable_name
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.text.words import close_to, flag_words, is_one_slip, nearest

PARALLEL_LEVEL: Final = "CMAKE_BUILD_PARALLEL_LEVEL"
# A flag, and the variables with the same meaning.
FLAG_VARIABLES: Final = {
    "arch": ("TORCH_CUDA_ARCH_LIST",),
    "jobs": ("MAX_JOBS", PARALLEL_LEVEL),
    "toolset": ("CMAKE_GENERATOR_TOOLSET_VERSION",),
}
# The variables that name the toolkit; on Windows the installer sets CUDA_PATH, and PyTorch
# reads CUDA_HOME first in both systems (torch/utils/cpp_extension.py).
CUDA_ROOTS: Final = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
TRUE_WORDS = frozenset(("1", "ON", "YES", "TRUE", "Y"))
FALSE_WORDS = frozenset(("0", "OFF", "NO", "FALSE", "N"))
# Of the environment: scikit-build-core's own, and the one that conda's compilers set when they are activated.
HANDED = ("CMAKE_ARGS", "SKBUILD_CMAKE_ARGS")
_DEFINED = re.compile(r"-D\s*(\w+)(?::\w+)?=(.*)", re.DOTALL)
# What the build refuses in its environment alone: an install has its own --prefix.
_OF_ENVIRONMENT = ("CMAKE_INSTALL_PREFIX",)
_CMAKE = "CMAKE_"
_PATH = re.compile(r"[/~]|[A-Za-z]:[\\/]")  # names of folders may have any character
_PLACE = re.compile(r"<[^>]+>")
_LANGUAGES = (
    "C",
    "CXX",
    "CUDA",
    "HIP",
    "Fortran",
    "ASM",
    "ASM_MASM",
    "ASM_NASM",
    "OBJC",
    "OBJCXX",
    "ISPC",
    "RC",
)
_CONFIGURATIONS = ("DEBUG", "RELEASE", "RELWITHDEBINFO", "MINSIZEREL", "COVERAGE")
# setup.py hands on what begins with BUILD_, USE_ or CMAKE_, and reads no CMAKE_ARGS
# (tools/setup_helpers/cmake.py of 1.2.0, 1.10.0, 2.0.0, 2.4.0 and 2.6.0; not in 1.1.0).
_BY_PREFIX = ">=1.2a0"
_OLD_TORCH = "<1.5"  # hotpatch_var() of tools/setup_helpers/env.py, 1.0.1 to 1.4.0
OWN = "TORCHBUILD_"
_OWN_NAMES = (
    *(variable_name(field.name).removeprefix(OWN) for field in dataclasses.fields(BuildRequest)),
    *("CACHE", "NAME", "STALL", "TRUST", "RESULT", "TREE", "STATE"),  # the last ones are for what we start
)
# Whose value may be one word in quotes: CMake takes those of a compiler off (CMakeDetermineCompiler.cmake).
_QUOTED = ("CC", "CXX", "CUDAHOSTCXX", "CMAKE_CUDA_COMPILER", "CUDACXX", *HANDED)
_OLD = ("NO_", "WITH_")  # NO_CUDA=1 became USE_CUDA=0 in 1.1 (pytorch#5295 has the old style)


def is_read(question: Question, name: str) -> bool:
    """Say whether anything reads a variable: the checkout, or a program that the build calls.

    A name that both front ends hand on by its beginning (USE_*) is read if CMake's files have it.
    """
    row = variable_row(question.catalog, name, question.era, question.version)
    reads = question.facts.tree.reads
    if (reads and name in reads.direct) or (name.startswith(_OLD) and admits(_OLD_TORCH, question.version)):
        return True
    if row is not None and "*" not in row.name:
        return True
    if any(name == each.name for each in question.catalog.variable):  # of another era
        return False
    ours = name in question.assignments or name in question.settings.variables
    readers = (each for each in question.catalog.reader if not (ours and each.environment))
    if any(covers(pattern, name) for each in readers for pattern in each.names):
        return True
    if row is None or any(each.old == name for each in question.catalog.renamed if not reads):
        return False
    if not question.knows(name):
        return False
    if reads is None:  # facts of an older version: a name counts as read unless it is nearly a known one
        options = [option for each in question.catalog.option for option in each.names]
        return name in options or close_to(name, options) is None
    return True


def unread(question: Question, name: str) -> tuple[str, str] | None:
    """Return the warning for a name that nothing reads, and a proposal ("" where none is near)."""
    if is_read(question, name):
        slip = _near_cmake(question, name)
        return (f"CMake has no variable {name}", f"Did you mean {slip}?") if slip else None
    torch = f"a {question.era} build of torch {question.facts.tree.version}"
    if known := _current_name(question, name):
        return f"{name} is an old name that nothing reads in {torch}", known
    dated = next((row for row in question.catalog.dated if name in row.names), None)
    if dated and not applies(dated.torch, question.version):
        why = f": {dated.why}" if dated.why else ""
        return (
            f"{name} is read by nothing in {torch}, only by torch {dated.torch.replace('a0', '')}{why}",
            "Drop it.",
        )
    near = close_to(name, _list_names(question))
    if any(row.name == name for row in question.catalog.variable):
        return f"{name} is read by nothing in {torch}; others do read it", ""
    text = f"{name} is read by nothing in {torch}"
    if reads := question.facts.tree.reads:
        if name in (*reads.names, *(switch.name for switch in reads.switches)):
            return (
                f"{name} is in the CMake files of this checkout, and nothing in {torch} hands it on to CMake",
                _by_hand(question, name),
            )
        text += ": neither its setup nor its CMake files take that name from the environment"
    return text, f"Did you mean {near}?" if near else ""


def check_own(question: Question) -> Iterator[Finding]:
    """Report variables of torchbuild's own in the environment that are misspelt."""
    for name in question.facts.own:
        own = name.removeprefix(OWN)
        if near := close_to(own, _OWN_NAMES) if own not in _OWN_NAMES else None:
            text = f"{name} is read by nothing, torchbuild has no variable of that name"
            yield Finding.warn("variable", text, f"Did you mean {OWN}{near}?")


def _by_hand(question: Question, name: str) -> str:
    """Say how CMake is given a variable that no build hands on; "" where nothing does."""
    value = question.decided[name].value if name in question.decided else ""
    if question.era == "scikit-build-core":
        return f"scikit-build-core does: {question.line('--set', f'SKBUILD_CMAKE_ARGS=-D{name}={value}')}"
    if not applies(_BY_PREFIX, question.version):
        return ""
    line = f'set({name} {value} CACHE STRING "" FORCE)'
    return f"Write {line} into a file, and name that: --set CMAKE_PROJECT_INCLUDE=/PATH/OF/THAT/FILE"


def _near_cmake(question: Question, name: str) -> str:
    """Return CMake's own variable of which a name is misspelt by one letter; "" for any other name."""
    reads = question.facts.tree.reads
    row = variable_row(question.catalog, name, question.era, question.version)
    own = (reads is not None and name in (*reads.names, *reads.direct)) or (row and "*" not in row.name)
    if not name.startswith(_CMAKE) or own:
        return ""
    listed = [each for row in question.catalog.cmake for each in row.names]
    known = [each for pattern in listed for each in _fill_in(pattern)]
    if name in known or any(re.fullmatch(_PLACE.sub(".+", each), name) for each in known if "<" in each):
        return ""
    return next((each for each in known if "<" not in each and is_one_slip(name, each)), "")


def _fill_in(pattern: str) -> tuple[str, ...]:
    """Return the names of a pattern of cmake.toml for every language and build type."""
    names = [pattern]
    for place, words in (("<LANG>", _LANGUAGES), ("<CONFIG>", _CONFIGURATIONS)):
        names = [each.replace(place, word) for each in names for word in (words if place in each else ("",))]
    return tuple(names)


def _current_name(question: Question, name: str) -> str:
    """Propose the current name for an old one: NO_CUDA=1 is USE_CUDA=0, and so is WITH_CUDA=0."""
    for row in question.catalog.renamed:
        if row.old == name:
            return f"Did you mean {row.new}?"
    for prefix in _OLD:
        new = f"USE_{name.removeprefix(prefix)}"
        if name.startswith(prefix) and new in _list_names(question):
            choice = question.decided.get(name)
            off = (prefix == "NO_") != (choice is not None and choice.value.upper() in FALSE_WORDS)
            said = question.decided.get(new)
            if said and (said.value.upper() in FALSE_WORDS) == off:
                return f"Drop {name}: {new}={said.value} says the same."
            if way := flag_instead(question, new, "0" if off else "1"):
                return f"Drop it, or say {way}."
            return f"Did you mean --set {new}={'0' if off else '1'}?"
    return ""


def _list_names(question: Question) -> tuple[str, ...]:
    """Return the names to propose for a misspelt one; a checkout's own where it was read."""
    reads = question.facts.tree.reads
    own = (*reads.names, *(switch.name for switch in reads.switches)) if reads else ()
    listed = [name for row in question.catalog.option for name in row.names]
    rows = [
        row.name
        for row in question.catalog.variable
        if "*" not in row.name and not row.refused and _applies(question, row)
    ]
    return (*rows, *(own or listed))


def _applies(question: Question, row: VariableRow) -> bool:
    return variable_row(question.catalog, row.name, question.era, question.version) is row


# ---------------- values


def check_values(question: Question) -> Iterator[Finding]:
    """Report invalid values: a switch that is neither on nor off, a word that is not in the list."""
    for choice in (*question.decided.values(), *_list_counting(question)):
        if choice.source not in ("flag", "environment", "torchbuild.toml"):
            continue
        row = variable_row(question.catalog, choice.name, question.era, question.version)
        if not choice.value.strip() and not (row and row.refused) and _is_switch(question, choice.name, row):
            text = f"{choice.name} is empty ({choice.because}), which the build reads as off"
            fix = f"Say so: {choice.name}=0. Or drop it, and its default counts."
            yield Finding.warn("variable", text, fix)
        if why := _wrong(question, choice):
            text = f"{choice.name}={choice.value} ({choice.because}) cannot be: {why}"
            sure = choice.source != "environment" or _stops(question, choice.name)
            status: Status = "error" if sure else "warn"
            fix = f"Correct it, for example {choice.name}={_valid_value(question, choice)}, or drop it."
            yield Finding(id="variable", status=status, text=text, fix=fix)


def _list_handed(question: Question) -> Iterator[tuple[str, Choice]]:
    """Yield the -D words of what scikit-build-core hands to CMake, each with the variable that has it."""
    for name in HANDED:
        given = question.decided.get(name)
        if given is None:
            continue
        words = given.value.split(";") if name.startswith("SKBUILD_") else flag_words(given.value)
        split = (f"-D{word}" if before == "-D" else word for before, word in pairwise(("", *words)))
        for found in filter(None, map(_DEFINED.match, split)):
            because = f"-D{found[1]} in {name}: {given.because}"
            yield name, Choice(name=found[1], value=found[2], because=because, source=given.source)


def _list_counting(question: Question) -> tuple[Choice, ...]:
    """Return those that count; setup.py reads neither variable."""
    if question.era != "scikit-build-core":
        return ()
    return tuple(choice for _, choice in _list_handed(question))


def check_handed(question: Question, variables: Mapping[str, str]) -> Iterator[Finding]:
    """Report -D words that scikit-build-core hands to CMake itself: they count before what the plan sets.

    `variables` also has, by the names that CMake gives them, what the plan decides apart.
    """
    for name, said in _list_handed(question):
        word, value, planned = said.name, said.value, variables.get(said.name)
        if question.era != "scikit-build-core":
            if planned is None or not _same(planned, value):
                yield from _not_handed(question, name, word, value)
            continue
        if planned is not None and _same(planned, value):
            continue
        row = variable_row(question.catalog, word, question.era, question.version)
        refused = row.refused if row and word not in _OF_ENVIRONMENT else ""
        if planned is None and not refused:
            yield from _check_spelling(question, name, word)
            continue
        decided = question.decided.get(word)
        own = f" ({decided.because if decided else 'the plan'})"
        why = f"which counts before {word}={planned}{own}" if planned is not None else f"and {refused}"
        flag = "flag" in (said.source if refused else "", decided.source if decided else "")
        status: Status = "error" if word == "USE_CUDA" or flag else "warn"
        way = flag_instead(question, word, value) or f"--set {word}={value}"
        fix = f"Take -D{word} out of {name}, or say the same: {way}"
        if row and refused:
            fix = (
                f"Take -D{word} out of {name}. {row.instead.replace('{value}', question.line(value))}".strip()
            )
        yield Finding(id="cmake-args", status=status, text=f"{name} has -D{word}={value}, {why}", fix=fix)


def _check_spelling(question: Question, name: str, word: str) -> Iterator[Finding]:
    """Report a -D word that is nearly one that CMake's files of this checkout have."""
    reads = question.facts.tree.reads
    known = reads is None or word in (*reads.names, *(switch.name for switch in reads.switches))
    found = None if known else unread(question, word)
    if found and found[1].startswith("Did you mean"):
        yield Finding.warn("cmake-args", f"-D{word} in {name}: {found[0]}", found[1])


def flag_instead(question: Question, name: str, value: str) -> str:
    """Return the flag that says a value, where one is given for it: a --set beside it is refused; else ""."""
    if name == "USE_CUDA" and (question.request.cpu or question.request.cuda):
        return "--cpu" if value.upper() in FALSE_WORDS else "--cuda"
    said = {**FLAG_VARIABLES, "build_type": ("CMAKE_BUILD_TYPE",)}
    field = next((field for field, names in said.items() if name in names), None)
    given = question.given(field) if field else None
    return question.line(flag_name(field), value) if field and given and given[1] == "flag" else ""


def _not_handed(question: Question, name: str, word: str, value: str) -> Iterator[Finding]:
    """Report a switch of torch in a variable that setup.py does not read; conda's other words are fine."""
    if word.startswith(("USE_", "BUILD_", "TORCH_")):
        text = f"{name} has -D{word}={value}, and nothing reads {name} in a {question.era} build"
        fix = f"Say it as --set {word}={value}."
        if flag_instead(question, word, value):
            fix = f"Take it out of {name}."
        yield Finding.warn("cmake-args", text, fix)


def _same(one: str, other: str) -> bool:
    for words in (TRUE_WORDS, FALSE_WORDS):
        if one.upper() in words:
            return other.upper() in words
    return other in (one, file_name(one))  # a program, which is found on PATH


def check_overruled(question: Question, build_type: str) -> Iterator[Finding]:
    """Report words of flags, of this build type or all, that torch's build overrides or fails with."""
    handed = _list_counting(question)
    for row in question.catalog.overruled:
        host = question.facts.host
        here = row.arch in ("", host.arch) and row.os in ("", host.os)
        if not here or not applies(row.torch, question.version):
            continue
        for name in row.names:
            of_it = "_FLAGS_" not in name or name.casefold().endswith(f"_{build_type.casefold()}")
            choices = (question.decided.get(name), *(each for each in handed if each.name == name))
            for choice in filter(None, choices if of_it else ()):
                words = choice.value.split()
                lost = [word for word in words if any(covers(each, word) for each in row.words)]
                if lost:
                    place = choice.because.partition(":")[0] if choice in handed else name
                    text = f"{' '.join(lost)} in {place}: {row.because}"
                    yield Finding.warn("variable", text, row.fix)


def _wrong(question: Question, choice: Choice) -> str:
    """Say what a value must be; "" for a valid one, an empty one and where nothing is known."""
    name, value = choice.name, choice.value.strip()
    row = variable_row(question.catalog, name, question.era, question.version)
    reads = question.facts.tree.reads
    listed = reads.values.get(name, ()) if reads else ()
    if not value or (odd := _odd_letters(choice.value) or _kept_quotes(name, value, row)):
        return odd if value else ""
    is_word = row is not None and (row.kind not in ("", "flags") or bool(row.values))
    # As cmd.exe sets it by `set USE_CUDA=1 && ...`.
    if value != choice.value and (listed or is_word or _is_switch(question, name, row)):
        return "it begins or ends with a blank"
    if listed and value not in listed:  # CMake compares these as they are written
        near = close_to(value, listed)
        return f"this checkout knows {', '.join(listed)}" + (f"; did you mean {near}?" if near else "")
    more = {"linux": row.linux, "windows": row.windows} if row else {}
    known = (*row.values, *more.get(question.facts.host.os, ())) if row else ()
    exact = value in known if row and row.stops else value.upper() in map(str.upper, known)
    if known and not exact:
        near = close_to(value, known)
        return f"it is one of {', '.join(known)}" + (f"; did you mean {near}?" if near else "")
    if row and row.kind == "number" and not (value.isdecimal() and int(value) > 0):
        return "it is a whole number above 0"
    if row and row.kind == "count" and not value.isdecimal():
        return "it is a whole number"
    if row and row.kind == "version" and parse_version(value) is None:
        return (
            "it is no version (PEP 440) such as 2.9.0 or 2.9.0+mine, and a build ends with that, at its end"
        )
    if _is_switch(question, name, row) and not is_switch_word(value):
        return "it is a switch: 1 or 0 (ON, OFF, YES, NO, TRUE, FALSE)"
    return ""


def _kept_quotes(name: str, value: str, row: VariableRow | None) -> str:
    """Say that a value has the quotes that it was typed in; "" for none, and where they hold a word together.

    cmd's `set X="..."` keeps them, and so does docker's --env-file.
    """
    inner = value[1:-1]
    if value[:1] not in ("'", '"') or value[-1:] != value[:1] or value[:1] in inner or not inner.strip():
        return ""
    if name in _QUOTED or (row and row.kind == "flags" and not re.search(r"\s[-/]\w", inner)):
        return ""
    return f'the quotes are a part of it, as those of set {name}="..." are in cmd'


def _odd_letters(value: str) -> str:
    """Say which letter of a value no build can have meant; "" for none."""
    if "\n" in value or "\r" in value:
        return "it has a line break, at which a file of the build's commands breaks"
    if value.isascii() or _PATH.match(value):
        return ""
    from torchbuild_tasks.text.letters import say_odd_letters  # hardly a plan has such a value

    return say_odd_letters(value)


def _valid_value(question: Question, choice: Choice) -> str:
    """Return a valid value of a variable: the nearest to an invalid one, else the first that is listed."""
    if "\n" in choice.value or "\r" in choice.value:
        return " ".join(choice.value.split())
    if _kept_quotes(choice.name, choice.value.strip(), None):
        return choice.value.strip()[1:-1]
    if _odd_letters(choice.value):
        from torchbuild_tasks.text.letters import plain_value

        return plain_value(choice.value)
    row = variable_row(question.catalog, choice.name, question.era, question.version)
    reads = question.facts.tree.reads
    known = (reads.values.get(choice.name, ()) if reads else ()) or (row.values if row else ())
    if choice.name == "BLAS":
        here = tuple(library.name for library in question.facts.blas or () if library.name in known)
        known = here or known
    kind = row.kind if row and row.kind else "switch"
    plain = {"count": "0", "version": str(question.version or "2.9.0")}.get(kind, "1")
    return nearest(choice.value, known) or next(iter(known), plain)


def _stops(question: Question, name: str) -> bool:
    """Say whether a build ends at an invalid value, as the code that reads versions does."""
    row = variable_row(question.catalog, name, question.era, question.version)
    return row is not None and (row.stops or row.kind == "version")


def _is_switch(question: Question, name: str, row: VariableRow | None) -> bool:
    reads = question.facts.tree.reads
    if (row and row.kind == "switch") or name == "USE_CUDA":
        return True
    if row and row.kind and row.name == name:
        return False
    if reads is None:
        return any(name in option.names for option in question.catalog.option)
    return name in reads.flags or any(name == each.name and _is_on_or_off(each) for each in reads.switches)


def _is_on_or_off(switch: Switch) -> bool:
    """Say whether an option() is one: CMake keeps any text in it, and some have a name for default."""
    return is_switch_word(switch.default) or "$" in switch.default


def is_switch_word(value: str) -> bool:
    """Say whether CMake and setup.py know a value as on or off; a number is on but for 0."""
    return value.upper() in TRUE_WORDS | FALSE_WORDS or value.isdecimal()
