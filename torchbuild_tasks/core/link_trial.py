"""What a linker is tried on before a build: a library and a program, in a second or two.

Debug information, an exception that crosses the library's border, a vtable and a thread-local across it:
what linkers get wrong when they do not fit the compiler, its runtime or the flags (`-flto` for one).
"""

from __future__ import annotations

from typing import Final

from torchbuild_tasks.core.decisions import Decisions
from torchbuild_tasks.core.words import flag_words
from torchbuild_tasks.model import Freshness, LinkerPlan, LinkTrial
from torchbuild_tasks.values import replace

LIBRARY: Final = "libtorchbuild_trial.so"
PROGRAM: Final = "trial"
HEADER: Final = """\
#pragma once
#include <string>
struct Shape {
  virtual ~Shape();
  virtual int corners() const;
};
extern thread_local int calls;
int half(int number);
"""
LIBRARY_SOURCE: Final = """\
#include "trial.h"
#include <stdexcept>
Shape::~Shape() {}
int Shape::corners() const { return 0; }
thread_local int calls = 0;
int half(int number) {
  ++calls;
  if (number % 2) throw std::invalid_argument("odd: " + std::to_string(number));
  return number / 2;
}
"""
PROGRAM_SOURCE: Final = """\
#include "trial.h"
#include <stdexcept>
struct Square : Shape {
  int corners() const override { return half(8); }
};
int main() {
  Square square;
  const Shape& shape = square;
  try {
    half(3);
  } catch (const std::invalid_argument& error) {
    return shape.corners() == 4 && calls == 2 && error.what() == std::string("odd: 3") ? 0 : 2;
  }
  return 1;
}
"""


def plan_linker(decisions: Decisions, freshness: Freshness) -> LinkerPlan | None:
    """The linker to use; with its trial where the last build has not proved it, unless --no-preflight."""
    question, compilers, flags = decisions.question, decisions.compilers, decisions.variables
    plan, previous = decisions.linker.plan, question.facts.tree.previous
    if plan is None or compilers.cxx is None:
        return None
    proved = previous is not None and previous.result == "ok" and freshness.needs in ("nothing", "build")
    if proved or question.given("no_preflight"):
        return plan
    compiler = flag_words(flags.get("CXXFLAGS") or flags.get("CFLAGS", ""))
    linker = flag_words(flags.get("LDFLAGS", ""))
    words = (*compilers.command, *compiler, f"-std=c++{question.row.cxx}", "-g", "-fPIC", *linker)
    mark = next((row.mark for row in question.catalog.linker if row.name == plan.name), "")
    trial = LinkTrial(
        sources={"trial.h": HEADER, "library.cpp": LIBRARY_SOURCE, "program.cpp": PROGRAM_SOURCE},
        commands=(
            (*words, "-shared", "-o", LIBRARY, "library.cpp"),
            (*words, "-o", PROGRAM, "program.cpp", f"./{LIBRARY}"),
        ),
        run=(f"./{PROGRAM}",),
        library=LIBRARY,
        mark=mark,
    )
    return replace(plan, trial=trial)
