"""Choose the linker of a build, and write the small program on which it is tried before.

What the user's variables and the finished tree say about linking comes first; else it is the fastest by
linkers.toml of those that are installed and that the compiler can be asked to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.catalog.match import admits
from torchbuild_tasks.catalog.rows import LinkerRow
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import Choice, Finding, LinkerPlan, LinkTrial, Need, Source, Status
from torchbuild_tasks.plan.compiler import MSVC_LIKE, Compilers
from torchbuild_tasks.plan.packages import install_line, installer, package_row
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off
from torchbuild_tasks.text.paths import file_name
from torchbuild_tasks.text.words import did_you_mean, flag_words
from torchbuild_tasks.values import replace

AUTO: Final = "auto"
DEFAULT: Final = "default"
OFFERED: Final = "lld"
# With one of these the user decides about linking; CMake takes the first three instead of LDFLAGS.
OWN: Final = (
    "CMAKE_EXE_LINKER_FLAGS",
    "CMAKE_SHARED_LINKER_FLAGS",
    "CMAKE_MODULE_LINKER_FLAGS",
    "CMAKE_LINKER",
    "CMAKE_LINKER_TYPE",
    "USE_GOLD_LINKER",
    "USE_PRIORITIZED_TEXT_FOR_LD",  # a script of GNU ld's, with which lld links what crashes (PR 176404)
)

# What linkers get wrong where they do not fit the compiler, its runtime or the flags (`-flto` for one): debug
# information, and an exception, a vtable and a thread-local that cross a library's border.
# Neither file has <string>: that is nine tenths of what a compile takes, and every configured build makes it.
TRIAL_LIBRARY: Final = "libtorchbuild_trial.so"
TRIAL_PROGRAM: Final = "trial"
_HEADER: Final = """\
#pragma once
struct Shape {
  virtual ~Shape();
  virtual int corners() const;
};
extern thread_local int calls;
int half(int number);
"""
_LIBRARY_SOURCE: Final = """\
#include "trial.h"
#include <exception>
struct Odd : std::exception {
  const char* what() const noexcept override { return "odd"; }
};
Shape::~Shape() {}
int Shape::corners() const { return 0; }
thread_local int calls = 0;
int half(int number) {
  ++calls;
  if (number % 2) throw Odd();
  return number / 2;
}
"""
_PROGRAM_SOURCE: Final = """\
#include "trial.h"
#include <exception>
#include <cstring>
struct Square : Shape {
  int corners() const override { return half(8); }
};
int main() {
  Square square;
  const Shape& shape = square;
  try {
    half(3);
  } catch (const std::exception& error) {
    return shape.corners() == 4 && calls == 2 && std::strcmp(error.what(), "odd") == 0 ? 0 : 2;
  }
  return 1;
}
"""


class ChosenLinker(msgspec.Struct, frozen=True, kw_only=True):
    """The decision: `choice` for printing, `plan` what to try (None: the system's default).

    `choices` are the build variables that follow, `problems` why one that was asked for is not available.
    """

    choice: Choice
    plan: LinkerPlan | None = None
    choices: tuple[Choice, ...] = ()
    problems: tuple[Finding, ...] = ()
    offer: bool = False


def choose_linker(question: Question, compilers: Compilers) -> ChosenLinker:
    """Decide the linker.

    Raises:
        UsageError: --linker is neither a name nor a path.
    """
    asked, source, because = question.given("linker") or (AUTO, "default", "")
    name = str(asked)
    _check_word(question, name)
    if name == DEFAULT:
        return ChosenLinker(choice=_choice(DEFAULT, because, source))
    if question.facts.host.os == "windows":
        return _on_windows(question, compilers, name, because, source)
    if name == AUTO:
        return _automatic(question, compilers)
    return _choose_named(question, compilers, name, because, source)


def check_linker(question: Question, chosen: ChosenLinker) -> tuple[Finding, ...]:
    """Report what was asked for and is not available, and a faster linker that could be installed."""
    row = next((row for row in _rows(question) if row.name == OFFERED), None)
    if not chosen.offer or row is None or question.facts.tree.sample:
        return chosen.problems
    text = f"{OFFERED} would link libtorch_cpu.so in {row.library:g} of the time that GNU ld takes"
    return (*chosen.problems, Finding.unknown("linker", text, _install(question, row)))


def refuse_linker(catalog: Catalog, linker: LinkerPlan, reason: str) -> Catalog:
    """Return the rows with what is known now: this linker does not link, so it is not chosen by itself."""
    known = tuple(replace(row, refused=reason) if row.tool == linker.tool else row for row in catalog.linker)
    if not any(row.refused == reason for row in known):
        own = LinkerRow(name=linker.name, os="linux", tool=linker.tool, source="", refused=reason)
        known = (*known, own)
    return Catalog(**{**vars(catalog), "linker": known})


def _check_word(question: Question, name: str) -> None:
    known = (AUTO, DEFAULT, *dict.fromkeys(row.name for row in question.catalog.linker))
    if name not in known and not is_path(name):
        raise UsageError(
            f"--linker cannot be {name!r}{did_you_mean(name, known)}",
            next_step=f"Choose one of: {', '.join(known)}, or give a path.",
        )


def is_path(name: str) -> bool:
    """Say whether a value of --linker is the path of one, and no name."""
    return "/" in name or "\\" in name


def _rows(question: Question) -> tuple[LinkerRow, ...]:
    return tuple(row for row in question.catalog.linker if row.os == question.facts.host.os)


def _automatic(question: Question, compilers: Compilers) -> ChosenLinker:
    """Return what LDFLAGS name, else what the finished tree has, else the fastest of those that are here."""
    if why := own_linking(question):
        return ChosenLinker(choice=_choice("as it is set", f"{why}, which is left as it is"))
    for row in _rows(question):
        if f"-fuse-ld={row.name}" in link_words(question):
            flags = decide(question, "LDFLAGS")
            assert flags is not None
            return _choose_named(question, compilers, row.name, flags.because, flags.source)
    kept = kept_linker(question)
    if kept == DEFAULT:
        because = (
            "the tree was linked with it, and with another one CMake would run and link everything again; "
            "see --linker"
        )
        return ChosenLinker(choice=_choice(DEFAULT, because))
    program = kept.partition(" ")[2]
    row = _row_of_path(question, program)
    if program and not row.refused:
        return _choice_with_flag(
            question, compilers, row, program, _choice(row.name, "the tree was linked with it")
        )
    able = [row for row in _rows(question) if not row.asked and not row.refused]
    here = [(row, tool) for row in able if (tool := question.facts.tool(row.tool))]
    why_not = [f"{row.name}: {row.refused}" for row in _rows(question) if row.refused]
    if not here or compilers.cxx is None:
        because = "; ".join(why_not) or f"neither {' nor '.join(row.name for row in able)} is here"
        return ChosenLinker(choice=_choice(DEFAULT, because), offer=compilers.cxx is not None)
    row, tool = min(here, key=lambda each: each[0].library)
    because = "; ".join([str(tool.path), _figures(row), *why_not])
    return _choice_with_flag(
        question, compilers, row, str(tool.path), _choice(f"{row.name} {tool.version}", because)
    )


def _choose_named(
    question: Question, compilers: Compilers, name: str, because: str, source: Source
) -> ChosenLinker:
    """Return the one that is named; it is an error when it is not here."""
    if is_path(name):
        row = _row_of_path(question, name)
        return _choice_with_flag(
            question, compilers, row, name, _choice(name, because, source), demanded=True
        )
    row = next(row for row in _rows(question) if row.name == name)
    tool = question.facts.tool(row.tool)
    if tool is None:
        text = f"{name} is asked for ({because}) and is not here: no {row.tool} on PATH"
        finding = Finding.error("linker", text, _install(question, row))
        return ChosenLinker(choice=_choice(name, because, source), problems=(finding,))
    decided = _choice(f"{name} {tool.version}", f"{because}; {tool.path}; {_figures(row)}", source)
    chosen = _choice_with_flag(question, compilers, row, str(tool.path), decided, demanded=True)
    return replace(
        chosen, problems=(*_check_replaced(question, row, because, source), *check_own_flags(question))
    )


def _check_replaced(question: Question, row: LinkerRow, because: str, source: Source) -> Iterator[Finding]:
    """Report another linker in LDFLAGS, which --linker replaces there."""
    flags = decide(question, "LDFLAGS")
    named = next((word for word in reversed(link_words(question)) if word.startswith("-fuse-ld=")), "")
    if flags is None or not named or named == f"-fuse-ld={row.name}":
        return
    status: Status = "error" if source == flags.source else "warn"
    text = f"the linker is {row.name} ({because}), and LDFLAGS has {named} ({flags.because})"
    text += ": they contradict each other" if status == "error" else ", which is replaced"
    yield Finding(id="linker", status=status, text=text, fix="Drop one of them.")


def _row_of_path(question: Question, path: str) -> LinkerRow:
    """Return the row of a linker's path: by the facts, else by its name, else one without figures."""
    stem = file_name(path)
    rows = _rows(question)
    found = [row for row in rows if (tool := question.facts.tool(row.tool)) and tool.path == path]
    named = [row for row in rows if row.tool == path or row.name in stem]
    if found or named:
        return (found or named)[0]
    return LinkerRow(name=stem, os=question.facts.host.os, tool=path, source="")


def _choice_with_flag(
    question: Question,
    compilers: Compilers,
    row: LinkerRow,
    program: str,
    choice: Choice,
    *,
    demanded: bool = False,
) -> ChosenLinker:
    """Return the linker with the flag that calls it, behind the flags that are there."""
    folder = "" if _is_callable_by_name(question, row, program, compilers) else linker_folder(question)
    flag = f"-B{folder}" if folder else f"-fuse-ld={row.name}"
    before = decide(question, "LDFLAGS")
    # Cut out as text: what stays keeps its quotes.
    pattern = rf"(?:^|\s)(?:-fuse-ld=\S+|-B{re.escape(linker_folder(question))})(?=\s|$)"
    rest = re.sub(pattern, "", before.value).strip() if before else ""
    because = f"the linker is {row.name}" + (f"; the rest: {before.because}" if before and rest else "")
    flags = Choice(name="LDFLAGS", value=f"{rest} {flag}".strip(), because=because, source=choice.source)
    plan = LinkerPlan(name=row.name, tool=row.tool, program=program, folder=folder, demanded=demanded)
    return ChosenLinker(choice=choice, plan=plan, choices=(flags,))


def _is_callable_by_name(question: Question, row: LinkerRow, program: str, compilers: Compilers) -> bool:
    """Say whether the compiler knows this linker's name, and finds this very program by it."""
    cxx, tool = compilers.tool, question.facts.tool(row.tool)
    if cxx is None or tool is None or tool.path != program or program.rpartition("/")[2] != row.command:
        return False
    return bool(admits(row.clang if cxx.name == "clang++" else row.gcc, cxx.version))


def _figures(row: LinkerRow) -> str:
    if not row.library:
        return "it was not measured to be faster"
    if row.library == 1:
        return "what the others are measured against"
    return f"links libtorch_cpu.so in {row.library:g} of GNU ld's time, with debug information {row.debug:g}"


def _on_windows(
    question: Question, compilers: Compilers, name: str, because: str, source: Source
) -> ChosenLinker:
    """Keep link.exe on Windows, where CMake calls the linker itself, unless another one is named."""
    if name == AUTO:
        why = "link.exe, which PyTorch's own builds take"
        if compilers.tool and compilers.tool.name not in MSVC_LIKE:  # MinGW's g++, clang++
            why = f"the one that {compilers.tool.name} calls"
        return ChosenLinker(choice=_choice(DEFAULT, why))
    row = next((row for row in _rows(question) if row.name == name), None)
    tool = question.facts.tool(row.tool) if row else None
    program = name if is_path(name) else str(tool.path) if tool else ""
    if not program:
        text = f"{name} is asked for ({because}) and is not here"
        fix = "Install LLVM, which has lld-link.exe, or give its path. There is no other one on Windows."
        finding = Finding.error("linker", text, fix)
        return ChosenLinker(choice=_choice(name, because, source), problems=(finding,))
    text = f"{program} instead of link.exe is not tried before the build: it was not measured"
    variable = Choice(
        name="CMAKE_LINKER", value=program.replace("\\", "/"), because=f"the linker: {because}", source=source
    )
    finding = Finding.unknown("linker", text)
    return ChosenLinker(choice=_choice(program, because, source), choices=(variable,), problems=(finding,))


def _install(question: Question, row: LinkerRow) -> str:
    """Return the command of this distribution's package manager."""
    facts, catalog = question.facts, question.catalog
    line = install_line(facts, catalog, row.package)
    if package_row(catalog, row.package)[0] is None:  # it has one name everywhere
        line = installer(facts, catalog).format(package=row.package)
    return line or f"Install the package {row.package} of this distribution."


def _choice(value: str, because: str, source: Source = "default") -> Choice:
    return Choice(name="linker", value=value, because=because, source=source)


# ---------------- what the user's variables and the tree say about linking


def link_words(question: Question) -> tuple[str, ...]:
    """Return the words of LDFLAGS."""
    flags = decide(question, "LDFLAGS")
    return flag_words(flags.value) if flags else ()


def linker_folder(question: Question) -> str:
    """Return the folder in which a linker is called ld, for compilers that do not know its name."""
    return question.join(".torchbuild", "linker")


def own_linking(question: Question) -> str:
    """Say why linking is left as the user has it; "" when it is ours to decide."""
    for name in OWN:
        asked = decide(question, name)
        if asked and asked.value and not is_off(asked.value):
            return f"{name} is set"
    known = {f"-fuse-ld={row.name}" for row in question.catalog.linker}
    ours = f"-B{linker_folder(question)}"
    for word in link_words(question):
        if word.startswith(("-fuse-ld=", "--ld-path=", "-B")) and word not in known and word != ours:
            return f"LDFLAGS has {word}"
    return ""


def check_own_flags(question: Question) -> tuple[Finding, ...]:
    """Report variables that CMake takes instead of LDFLAGS, so that what is asked for would not reach it."""
    names = [name for name in OWN[:3] if (asked := decide(question, name)) and asked.value]
    if not names:
        return ()
    text = f"{' and '.join(names)} is set, which CMake takes instead of LDFLAGS: --linker does not reach it"
    return (Finding.warn("linker", text, "Put -fuse-ld= into it, or drop it."),)


def kept_linker(question: Question) -> str:
    """Return the linker of a finished tree; "" where there is none to keep."""
    previous = question.facts.tree.previous
    if previous is None or previous.result != "ok" or question.request.clean:
        return ""
    return previous.inputs.get("linker", DEFAULT)


# ---------------- the trial of the chosen linker, before a build


def plan_linker(
    question: Question,
    chosen: ChosenLinker,
    compilers: Compilers,
    variables: Mapping[str, str],
    needs: Need,
) -> LinkerPlan | None:
    """Return the linker to use, with its trial unless the last build has proved it (or --no-preflight)."""
    plan, previous = chosen.plan, question.facts.tree.previous
    if plan is None or compilers.cxx is None:
        return None
    proved = previous is not None and previous.result == "ok" and needs in ("nothing", "build")
    if proved or question.given("no_preflight"):
        return plan
    compiler = flag_words(variables.get("CXXFLAGS") or variables.get("CFLAGS", ""))
    linker = flag_words(variables.get("LDFLAGS", ""))
    words = (*compilers.command, *compiler, f"-std=c++{question.row.cxx}", "-g", "-fPIC", *linker)
    mark = next((row.mark for row in question.catalog.linker if row.name == plan.name), "")
    trial = LinkTrial(
        sources={"trial.h": _HEADER, "library.cpp": _LIBRARY_SOURCE, "program.cpp": _PROGRAM_SOURCE},
        commands=(
            (*words, "-shared", "-o", TRIAL_LIBRARY, "library.cpp"),
            (*words, "-o", TRIAL_PROGRAM, "program.cpp", f"./{TRIAL_LIBRARY}"),
        ),
        run=(f"./{TRIAL_PROGRAM}",),
        library=TRIAL_LIBRARY,
        mark=mark,
    )
    return replace(plan, trial=trial)
