"""Progress reports: a live line on a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import errno
import io
import re
import sys
import threading
import time

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.fronts import reporter
from torchbuild_tasks.fronts.reporter import ConsoleReporter, bar_width, between

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3|4|9|10)[0-9][0-9;]*m")
NINJA = [
    f"[{done}/90] Building CXX object c10/CMakeFiles/c10.dir/core/F{done}.cpp.o" for done in range(1, 91)
]


def block(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class Screen(io.StringIO):
    """A terminal that keeps what was written on it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")


def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Put a screen where stderr was; called by the test itself, for pytest sets stderr after fixtures."""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def work(report: ConsoleReporter) -> None:
    with report:
        report.stage("compile")
        report.note("CMake runs again")
        report.command(("ninja", "-C", "a b"))
        for line in NINJA:
            report.block(block(line))


def test_without_a_terminal_there_are_plain_lines_and_few(capsys: pytest.CaptureFixture[str]) -> None:
    work(ConsoleReporter())
    said = capsys.readouterr()
    assert said.out == ""
    assert not ESCAPE.search(said.err)
    lines = said.err.splitlines()
    assert lines[:3] == ["== compile", "   CMake runs again", "   $ ninja -C 'a b'"]
    assert len(lines) <= 5
    assert "compile 1/90" in lines[3]
    assert "core/F1.cpp" in lines[3]


LINK = "[{}/90] Linking CXX shared library lib/libc10.so"


def test_a_new_phase_gets_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reporter, "PLAIN_LEAST", 0.0)
    with ConsoleReporter() as report:
        report.block(block(NINJA[0], LINK.format(2)))
        report.block(block(LINK.format(3), NINJA[4]))
        report.block(block(NINJA[5]))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:2] for line in lines] == [["link", "2/90,"], ["compile", "5/90,"]]


def test_phases_that_alternate_quickly_do_not_flood_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleReporter() as report:
        for done in range(1, 91):
            report.block(block(NINJA[done - 1] if done % 2 else LINK.format(done)))
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_the_time_left_is_not_shown_while_it_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleReporter() as report:
        report.block(block(NINJA[0]))
    shown = capsys.readouterr().err
    assert "elapsed" in shown and "left" not in shown


def test_a_reader_that_has_gone_does_not_end_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    work(ConsoleReporter(verbose=True))


def test_a_terminal_that_is_closed_does_not_end_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write to it is an error (EIO), also of the thread that redraws the line, and of the line's end."""

    class Closed(Screen):
        closed_by_user = False

        def write(self, text: str) -> int:
            if self.closed_by_user:
                raise OSError(errno.EIO, "Input/output error")
            return super().write(text)

        def flush(self) -> None:
            self.write("")

    screen = Closed()
    monkeypatch.setattr(sys, "stderr", screen)
    lost: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lost.append)
    with ConsoleReporter() as report:
        report.stage("compile")
        report.block(block(NINJA[0]))
        screen.closed_by_user = True
        report.block(block(*NINJA))
        report.note("a word next to the live line")
        report.transfer("a file", 1, 2)
        time.sleep(0.5)
    assert "\x1b[2K" in screen.getvalue() and not lost


def test_a_terminal_gets_a_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    work(ConsoleReporter())
    text = screen.getvalue()
    assert ESCAPE.search(text)
    assert COLOUR.search(text)
    assert "compile 90/90" in ESCAPE.sub("", text)


def test_no_color_takes_the_colours_and_leaves_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    work(ConsoleReporter())
    text = screen.getvalue()
    assert not COLOUR.search(text)
    assert "compile 90/90" in ESCAPE.sub("", text)


def test_ci_gets_plain_lines_even_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv("CI", "true")
    work(ConsoleReporter())
    assert not ESCAPE.search(screen.getvalue())
    assert len(screen.getvalue().splitlines()) <= 5


def test_the_live_line_is_gone_when_a_stage_begins_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with ConsoleReporter() as report:
        report.block(block(NINJA[0]))
        report.stage("verify")
        report.note("said")
    text = ESCAPE.sub("", screen.getvalue())
    assert text.endswith("== verify\n   said\n")


def test_a_stage_that_says_nothing_is_not_heard_of(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleReporter() as report:
        report.stage("fetch helpers")
        report.stage("compile")
        report.note("one")
        report.note("two")
        report.stage("verify")
        report.note("Verified before.", alone=True)
    assert capsys.readouterr().err.splitlines() == ["== compile", "   one", "   two", "   Verified before."]


def test_verbose_hears_of_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleReporter(verbose=True) as report:
        report.stage("fetch helpers")
        report.stage("compile")
    assert capsys.readouterr().err.splitlines() == ["== fetch helpers", "== compile"]


@pytest.mark.parametrize("how", ["stage", "begin"])
def test_a_terminal_shows_what_says_nothing_for_long(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(reporter, "SILENT_FOR", 0.01)
    with ConsoleReporter() as report:
        getattr(report, how)("verify")
        until = time.monotonic() + 10
        while "verify" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "verify" in screen.getvalue()
    assert "== verify" not in screen.getvalue()


def test_a_pipe_hears_nothing_of_a_verb_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    with ConsoleReporter() as report:
        report.begin("doctor")
        report.note("a note")
        report.end()
    assert capsys.readouterr().err == "   a note\n"


def test_a_build_within_something_larger_is_heard_of_by_who_wants_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for verbose, said in ((False, ""), (True, "== step 1: compile\n   note\n   $ ninja\n")):
        with ConsoleReporter(verbose=verbose) as report:
            inner = report.inner("step 1")
            inner.stage("compile")
            inner.note("note")
            inner.command(("ninja",))
            inner.block(b"")
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_live_line_is_one_line(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(columns))
    with ConsoleReporter() as report:
        report.stage("compile")
        report.block(block(f"[7/90] Building CXX object {'long/' * 40}F.cpp.o"))
    lines = ESCAPE.sub("", screen.getvalue()).replace("\r", "\n").splitlines()
    assert any("compile 7/90" in line for line in lines)
    assert max(map(len, lines)) <= columns


def test_a_note_next_to_a_live_line_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with ConsoleReporter() as report:
        report.block(block(NINJA[0]))
        report.note("[bold]not markup[/bold] :smile:")
    assert "[bold]not markup[/bold] :smile:" in ESCAPE.sub("", screen.getvalue())


def test_a_long_command_next_to_a_live_line_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    argv = ("pip", "install", *(f"requirement{number}" for number in range(40)))
    with ConsoleReporter() as report:
        report.block(block(NINJA[0]))
        report.command(argv)
    assert " ".join(argv) in ESCAPE.sub("", screen.getvalue())


def test_the_file_in_the_live_line_is_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    with ConsoleReporter() as report:
        report.block(block("[1/2] Building CXX object a/[red]x[/nope].cpp.o"))
    assert "[red]x" in ESCAPE.sub("", screen.getvalue())


@pytest.mark.parametrize("options", [{"quiet": True}, {"silent": True}, {"quiet": True, "verbose": True}])
def test_quiet_says_nothing_on_the_way(options: dict[str, bool], capsys: pytest.CaptureFixture[str]) -> None:
    work(ConsoleReporter(**options))
    assert capsys.readouterr() == ("", "")


def test_verbose_shows_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    work(ConsoleReporter(verbose=True))
    assert capsys.readouterr().err.splitlines()[3:] == NINJA


def test_verbose_masks_what_programs_print(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "Zq9xK3vT7n")
    report = ConsoleReporter(verbose=True)
    report.block(b"-- using Zq9xK3vT7n\n-- from https://me:Pq8wK2vT5n@host.invalid/x\n")
    said = capsys.readouterr().err
    assert "using REDACTED" in said
    assert "Zq9xK3vT7n" not in said
    assert "Pq8wK2vT5n" not in said


def test_without_a_terminal_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert ConsoleReporter().confirm("Remove these?") is False


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False), ("yolo\n", False)],
)
def test_on_a_terminal_only_yes_is_yes(answer: str, agreed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setattr(sys, "stdin", Screen(answer))
    assert ConsoleReporter().confirm("Remove these?") is agreed
    assert "Remove these? [y/N]" in screen.getvalue()


def test_ci_is_never_prompted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    monkeypatch.setenv("CI", "1")
    monkeypatch.setattr(sys, "stdin", Screen("y\n"))
    assert ConsoleReporter().confirm("Remove these?") is False


def test_the_time_left_is_that_of_the_history_while_it_knows_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reporter, "PLAIN_EVERY", 0.0)
    with ConsoleReporter() as report:
        report.stage("compile")
        report.left(754.0)
        report.block(block(NINJA[0]))
        report.stage("again")  # what was left of another stage says nothing here
        report.block(block(NINJA[0]))
    first, second = (line for line in capsys.readouterr().err.splitlines() if "elapsed" in line)
    assert "12:34 left" in first
    assert "12:34" not in second


@each_case(
    ("seconds", "spread", "text"),
    [(7200.0, 2.0, "1:00 h to 4:00 h"), (4500.0, 1.5, "50 min to 1:52 h"), (20.0, 2.0, "1 min to 1 min")],
)
def test_an_uncertain_time_is_two_bounds(seconds: float, spread: float, text: str) -> None:
    assert between(seconds, spread) == text


def test_a_known_time_is_shown_as_it_is() -> None:
    assert between(7205.0, 1.0) == between(7205.0, 1.05) == "2:00:05"


def test_a_bar_leaves_a_narrow_terminal_its_words() -> None:
    """One of 20 cells took all of a terminal of 20, and neither the step nor the time was seen."""
    assert [bar_width(screen) for screen in (20, 60, 80, 200)] == [5, 15, 20, 20]
