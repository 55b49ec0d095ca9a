from __future__ import annotations

import locale

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.system.process import STATUSES, Captured, ending, tail


@each_case(
    ("captured", "words"),
    [
        (Captured(rc=0), "the interpreter ended with exit status 0"),
        (Captured(rc=255), "the interpreter ended with exit status 255"),
        (Captured(rc=-4), "the interpreter died by signal 4 (Illegal instruction)"),
        (Captured(rc=-11), "the interpreter died by signal 11 (Segmentation fault)"),
        (Captured(rc=-9999), "the interpreter died by signal 9999 (unknown)"),
        (Captured(rc=0xC0000005), "the interpreter ended with exit status 0xc0000005 (access violation)"),
        (Captured(rc=0xC0000135), "the interpreter ended with exit status 0xc0000135 (a DLL was not found)"),
        (Captured(rc=0xC0001234), "the interpreter ended with exit status 0xc0001234"),
        (Captured(rc=256), "the interpreter ended with exit status 0x00000100"),
        (Captured(rc=124, timed_out=True), "the time was up"),
        (Captured(rc=1, stderr=b"Timeout (0:03:00)!\n"), "the interpreter gave no answer for too long"),
    ],
)
def test_the_end_in_words(captured: Captured, words: str) -> None:
    assert ending(captured) == words


@each_case("status", STATUSES)
def test_a_status_is_one_that_no_program_returns_by_chance(status: int) -> None:
    assert 0x80000000 <= status <= 0xFFFFFFFF
    assert STATUSES[status]


# ---------------------------------------------------------------- the last words


def test_the_tail_is_short() -> None:
    said = tail(b"line " + b"x" * 9999 + b"\n" * 3 + b"last\n" * 99)
    assert said == "\n  last" * 8


def test_a_long_line_is_cut() -> None:
    assert len(tail(b"x" * 9999)) < 400


@pytest.mark.parametrize(
    "title",
    [
        "Fatal Python error: Segmentation fault",
        "Windows fatal exception: access violation",
        "Timeout (0:03:00)!",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_of_a_crash_the_innermost_frames_are_kept(title: str, end: str) -> None:
    stack = "".join(f"  File line {number}{end}" for number in range(50))
    said = tail(f"a warning{end}{title}{end}{stack}".encode())
    assert said.startswith(f"\n  {title}\n    File line 0\n")
    assert "line 7" not in said


def test_of_an_interpreter_that_cannot_start_the_exception_is_shown() -> None:
    stack = "\n".join(f'  File "<frozen site>", line {number}, in main' for number in range(20))
    title = "Fatal Python error: init_import_site: Failed to import the site module"
    said = tail(
        f"{title}\nTraceback (most recent call last):\n{stack}\nUnicodeDecodeError: 'ascii'\n".encode()
    )
    lines = said.split("\n  ")[1:]
    assert (lines[0], lines[-1], len(lines)) == (title, "UnicodeDecodeError: 'ascii'", 8)


def test_a_message_in_the_machines_own_code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    message = "Das angegebene Modul wurde nicht gefunden: März.dll"
    assert tail(message.encode()) == f"\n  {message}"
    monkeypatch.setattr(locale, "getencoding", lambda: "cp1252")
    assert tail(message.encode("cp1252")) == f"\n  {message}"


def test_bytes_that_are_no_text() -> None:
    assert tail(b"half \xe2\x82 a letter").startswith("\n  half ")
