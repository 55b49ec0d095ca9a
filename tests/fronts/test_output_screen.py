"""What is printed on the screens that there are: 60, 80 and 120 columns, in colours or not, into a pipe."""

from __future__ import annotations

import io
import re
import sys

import pytest

from tests.support.machines import built, linux_facts, plan_of
from torchbuild_tasks.errors import BuildFailed
from torchbuild_tasks.fronts import output
from torchbuild_tasks.model import Diagnosis
from torchbuild_tasks.text.page import cells
from torchbuild_tasks.text.show import doctor_text, plan_text

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
PLAN = plan_text(plan_of(built(set=("USE_MKLDNN=1",)), set=("USE_MKLDNN=0",)))
DOCTOR = doctor_text(plan_of(linux_facts(compilers=())), linux_facts())
TOLD = Diagnosis(
    id="oom", cause="Memory ran out.", fix="Less at once.", command="torchbuild build", see="x#oom"
)
FAILED = BuildFailed(
    "The build failed: ninja ended with exit code 1.",
    looked=(
        "FAILED: a.o",
        "/usr/bin/ccache /usr/bin/g++ -c a.cpp",
        *(f"a.cpp:{n}: error" for n in range(30)),
    ),
    diagnoses=(TOLD, TOLD),
    next_step="The whole log: build.log, line 7\nOnce it is fixed, the same command goes on.",
)


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(output, "_takes_sequences", lambda stream: True)


def shown(monkeypatch: pytest.MonkeyPatch, text: str, screen: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stdout", screen)
    output.show(text)
    return screen.getvalue()


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("text", [PLAN, DOCTOR], ids=["plan", "doctor"])
def test_lines_fit_unless_a_word_does_not(text: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = COLOUR.sub("", shown(monkeypatch, text, Screen())).splitlines()
    for line in lines:
        longest = max(map(cells, line.split() or [""]))
        assert cells(line) <= columns or longest > columns - 40, line


def test_a_terminal_has_colours_for_what_is_wrong_what_differs_and_what_is_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = shown(monkeypatch, PLAN, Screen())
    assert "\x1b[1;36m* USE_MKLDNN" in said
    assert "\x1b[2m  preset" in said
    assert "\x1b[1;31merror" in shown(monkeypatch, DOCTOR, Screen())


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"CI": "true"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "\x1b" not in shown(monkeypatch, PLAN, Screen())


def test_a_pipe_gets_complete_lines_without_colours_unless_they_are_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Pipe(Screen):
        def isatty(self) -> bool:
            return False

    monkeypatch.setenv("COLUMNS", "60")
    said = shown(monkeypatch, PLAN, Pipe())
    assert "\x1b" not in said
    assert len(said.splitlines()) == len(PLAN.splitlines())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in shown(monkeypatch, PLAN, Pipe())


def test_a_failed_build_is_fifteen_lines_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    output.err(output.error_text(FAILED))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) <= 15 + 1  # an empty one before it
    said = "\n".join(lines)
    assert "ccache" not in said
    parts = (
        "error: The build failed",
        "a.cpp:0: error",
        "Cause: Memory ran out.",
        "$ torchbuild build",
        "line 7",
    )
    assert sorted(parts, key=said.index) == list(parts)
    assert said.count("Memory ran out") == 1
