"""The line that leads imports to the checkout, as the site module of every Python reads it."""

from __future__ import annotations

import locale

import pytest

from torchbuild_tasks.features.wheel_overlay.act import path_line


@pytest.mark.parametrize(
    ("encoding", "line"),
    [
        ("utf-8", "C:\\Users\\Jörg\n".encode()),
        ("cp1252", b"C:\\Users\\J\xf6rg\n"),
        ("ascii", "C:\\Users\\Jörg\n".encode()),
    ],
)
def test_a_path_is_written_in_the_encoding_of_the_locale(
    encoding: str, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows before Python 3.13 reads a .pth in its code page; UTF-8 is left where that lacks a letter."""
    monkeypatch.setattr(locale, "getencoding", lambda: encoding)
    assert path_line("C:\\Users\\Jörg") == line
