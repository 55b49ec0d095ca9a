"""The trial of the linker: its program, and when it runs."""

from __future__ import annotations

from typing import Any

from tests.support.machines import built, linux_facts, plan_of, tool
from torchbuild_tasks.model import LinkTrial, Tool
from torchbuild_tasks.plan.linker import TRIAL_LIBRARY
from torchbuild_tasks.values import replace

LLD = tool("ld.lld", "14.0.6")


def machine(*tools: Tool, **environ: str) -> LinkTrial | None:
    facts = linux_facts(environ=environ)
    facts = replace(facts, tools=(*facts.tools, *tools))
    linker = plan_of(facts).linker
    return linker.trial if linker else None


def test_it_has_the_words_of_the_build() -> None:
    trial = machine(LLD, CXXFLAGS="-flto", LDFLAGS="-Wl,-z,now", CXX="ccache g++ -m64")
    assert trial is not None
    library, program = trial.commands
    assert library[:2] == ("g++", "-m64")
    assert {"-flto", "-g", "-fPIC", "-shared", "-Wl,-z,now", "-fuse-ld=lld"} <= set(library)
    assert program[-1] == f"./{TRIAL_LIBRARY}"
    assert (trial.mark, set(trial.sources)) == ("LLD", {"trial.h", "library.cpp", "program.cpp"})


def test_the_default_linker_is_not_tried() -> None:
    assert machine() is None


def test_only_where_something_about_it_changed() -> None:
    facts = replace(linux_facts(), tools=(*linux_facts().tools, LLD))
    facts = built(facts)

    def trial(**flags: Any) -> LinkTrial | None:
        linker = plan_of(facts, **flags).linker
        assert linker is not None
        return linker.trial

    assert trial() is None
    assert trial(set=("USE_MKLDNN=0",)) is not None
    assert trial(clean=True) is not None
    assert trial(clean=True, no_preflight=True) is None
