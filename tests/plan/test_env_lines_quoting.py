"""Known hard values for each shell; tests/integration asks the shells themselves."""

from __future__ import annotations

import pytest

from torchbuild_tasks.plan.env_lines import quote_bat, quote_fish, quote_ps1, quote_sh


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", "''"),
        ("-O2 -g", "'-O2 -g'"),
        ("it's", r"'it'\''s'"),
        ('$HOME `id` \\ " !', "'$HOME `id` \\ \" !'"),
        ("a\nb\t", "'a\nb\t'"),
        ("~/x", "'~/x'"),
    ],
)
def test_sh(value: str, quoted: str) -> None:
    assert quote_sh(value) == quoted


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("", "''"),
        ("it's", r"'it\'s'"),
        ("C:\\n\\", r"'C:\\n\\'"),
        ("$HOME (id) ~ *", "'$HOME (id) ~ *'"),
    ],
)
def test_fish(value: str, quoted: str) -> None:
    assert quote_fish(value) == quoted


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("it's", "'it''s'"),
        ("\u2018curly\u2019 \u201a\u201b", "'\u2018\u2018curly\u2019\u2019 \u201a\u201a\u201b\u201b'"),
        ('$env:X `n "', "'$env:X `n \"'"),
        ("a\nb", "('a' + [char]0x0A + 'b')"),
        ("\r\n", "('' + [char]0x0D + [char]0x0A)"),
        ("a\u2028", "('a' + [char]0x2028)"),
        ("\U0001f600", "'\U0001f600'"),
    ],
)
def test_ps1(value: str, quoted: str) -> None:
    assert quote_ps1(value) == quoted


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("100%", "100%%"),
        ("%PATH%", "%%PATH%%"),
        ("a & b | c < d > e ^ f ! ( )", "a & b | c < d > e ^ f ! ( )"),
        ('-DA="b c"', '-DA="b c"'),
        # The first quote of the value closes the one that `set "` opened.
        ('x"a&b"c&d', 'x"a^&b"c&d'),
        (' " > x', ' " ^> x'),
    ],
)
def test_bat(value: str, quoted: str) -> None:
    assert quote_bat(value) == quoted
