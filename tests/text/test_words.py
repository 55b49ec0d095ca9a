"""Corrections for mistyped words; commands quoted for a shell."""

from __future__ import annotations

import shlex

from tests.support.for_each import each_case
from torchbuild_tasks.text.words import (
    as_program,
    as_word,
    clock,
    did_you_mean,
    first_few,
    flag_words,
    in_short,
    in_turn,
    is_one_slip,
    nearest,
    remove_line,
    shell_line,
    unset_line,
)

HELPERS = ("mkl", "sccache", "zlib-ng", "none")


@each_case(
    ("word", "meant"),
    [("zlibng", "zlib-ng"), ("SCCACHE", "sccache"), ("scache", "sccache"), ("x", None), ("", None)],
)
def test_the_nearest_word(word: str, meant: str | None) -> None:
    assert nearest(word, HELPERS) == meant


@each_case(
    ("word", "known", "meant"),
    [
        ("torchtext", ("torchvision", "torch-scatter", "torchaudio"), None),
        ("torchvison", ("torchvision", "torchaudio"), "torchvision"),
        ("--good", ("--mode", "--cpu"), None),
        ("--presett", ("--preset",), "--preset"),
    ],
)
def test_a_word_that_only_begins_alike_is_not_near(word: str, known: tuple[str, ...], meant: str) -> None:
    assert nearest(word, known) == meant


def test_the_end_of_a_sentence_that_names_it() -> None:
    assert did_you_mean("zlibng", HELPERS) == "; did you mean zlib-ng?"
    assert did_you_mean("zlibng", ()) == did_you_mean("something", HELPERS) == ""


@each_case(
    ("argv", "posix", "windows"),
    [
        (("pip", "install", "torch"), "pip install torch", "pip install torch"),
        (("pip", "install", "ninja>=1.13"), "pip install 'ninja>=1.13'", 'pip install "ninja>=1.13"'),
        (("a b", "c"), "'a b' c", '"a b" c'),
        (("C:\\a b\\x.exe", "C:\\d e"), "'C:\\a b\\x.exe' 'C:\\d e'", 'C:\\"a b\\x.exe" "C:\\d e"'),
        (("D:\\a&b\\x.exe",), "'D:\\a&b\\x.exe'", 'D:\\"a&b\\x.exe"'),
    ],
)
def test_only_a_word_that_a_shell_would_read_otherwise_is_quoted(
    argv: tuple[str, ...], posix: str, windows: str
) -> None:
    assert shell_line(argv, windows=False) == posix
    assert shell_line(argv, windows=True) == windows


def test_what_both_shells_of_windows_take() -> None:
    assert remove_line("/a b", windows=False) == 'rm -r "/a b"'
    of_cmd, of_powershell = remove_line("C:\\a b", windows=True).split(" or ")
    assert of_cmd == 'rmdir /s /q "C:\\a b" (cmd)'
    assert of_powershell == 'Remove-Item -Recurse -Force -LiteralPath "C:\\a b" (PowerShell)'
    assert unset_line("X", windows=False) == "unset X"
    assert unset_line("X", windows=True) == "set X= (cmd) or Remove-Item Env:X (PowerShell)"
    assert in_turn("", "a", "b", windows=False) == "a && b"
    assert "&&" not in in_turn("a", "b", windows=True)


def test_flags_are_split_as_a_shell_does_also_where_a_quote_is_open() -> None:
    assert flag_words("-O2 '-DA=a b'") == ("-O2", "-DA=a b")
    assert flag_words("-O2 '-DA=a b") == ("-O2", "'-DA=a", "b")


def test_an_error_that_quotes_an_archive_is_cut() -> None:
    assert in_short(ValueError("no archive")) == "no archive"
    assert in_short(EOFError()) == "EOFError"
    assert len(in_short(ValueError("x" * 5000))) < 210


def test_of_a_long_list_the_first_are_named() -> None:
    assert first_few([]) == ""
    assert first_few(list("abcdef")) == "a, b, c, d, e, f"
    assert first_few(list("abcdefg")) == "a, b, c, d, e, f and 1 more"
    assert first_few(list("abcdef"), 4) == "a, b, c, d and 2 more"


@each_case(
    "path",
    [
        "/co",
        "/my co",
        "/a;rm -rf b",
        "/a&b",
        "/it's",
        '/say "x"',
        "/$HOME",
        "/`id`",
        "",
        "/(x)",
        "/100%",
        "/wow!",
    ],
)
def test_a_path_in_advice_is_one_word_of_the_shell(path: str) -> None:
    word = as_word(path)
    assert shlex.split(word) == [path]
    assert word.startswith("'") or not {"$", "`"} & set(path), "a shell reads these in double quotes, too"


def test_a_path_of_windows_stays_as_it_is() -> None:
    assert as_word(r"C:\Users\me\pt") == r"C:\Users\me\pt"
    assert as_word(r"C:\my pt") == r'"C:\my pt"'
    assert as_program(r"C:\my pt\x.exe") == r'C:\"my pt\x.exe"'
    assert as_program(r"C:\pt\x.exe") == r"C:\pt\x.exe"
    assert as_program("/my pt/x") == '"/my pt/x"'
    assert as_word(r"C:\So & so (x86) 100%\wow!") == r'"C:\So & so (x86) 100%\wow!"'


@each_case("word", ["abc", "abbcd", "abxd", "acbd", "ABCD", "abcde", "bcd", "abdc"])
def test_one_slip(word: str) -> None:
    assert is_one_slip(word, "abcd") and is_one_slip("abcd", word)


@each_case("word", ["abcd", "ab", "axxd", "abcdef", "dabc", ""])
def test_none_or_more_than_one_slip(word: str) -> None:
    assert not is_one_slip(word, "abcd") and not is_one_slip("abcd", word)


@each_case(
    ("seconds", "text"),
    [(0, "0:00"), (61.9, "1:01"), (3599, "59:59"), (3600, "1:00:00"), (90061, "25:01:01")],
)
def test_times(seconds: float, text: str) -> None:
    assert clock(seconds) == text
