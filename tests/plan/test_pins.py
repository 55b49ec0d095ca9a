"""torchbuild.lock: reading and writing."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.plan.pins import HEAD, Pin, read_pins, write_pins

ONE = Pin(id="mkl-2020.2.254", sha256="ab" * 32, size=12, url="https://example.org/mkl_2020.2.254.7z")
TWO = Pin(id="magma-2.5.4-cuda124-release", sha256="01" * 32, size=0, url="file:///C:/x")
TEXT = HEAD + (
    '\n[[helper]]\nid = "magma-2.5.4-cuda124-release"\n'
    f'sha256 = "{"01" * 32}"\nsize = 0\nurl = "file:///C:/x"\n'
    '\n[[helper]]\nid = "mkl-2020.2.254"\n'
    f'sha256 = "{"ab" * 32}"\nsize = 12\nurl = "https://example.org/mkl_2020.2.254.7z"\n'
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
pins = st.builds(
    Pin,
    id=texts,
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    size=st.integers(0, 2**62),
    url=texts,
)


def test_the_text_is_sorted_commented_and_the_same_for_the_same_pins() -> None:
    assert write_pins({ONE.id: ONE, TWO.id: TWO}) == write_pins({TWO.id: TWO, ONE.id: ONE}) == TEXT
    assert all(line.startswith("#") for line in HEAD.splitlines())


def test_an_empty_file_pins_nothing() -> None:
    assert read_pins("") == read_pins(HEAD) == {}


def test_line_ends_of_windows_are_read() -> None:
    assert read_pins(TEXT.replace("\n", "\r\n")) == {ONE.id: ONE, TWO.id: TWO}


@given(st.lists(pins, max_size=5))
def test_what_is_written_is_read_back(listed: list[Pin]) -> None:
    before = {pin.id: pin for pin in listed}
    text = write_pins(before)
    assert read_pins(text) == before
    assert set(tomllib.loads(text)) <= {"helper"}


@each_case(
    ("old", "new", "said"),
    [
        ('id = "mkl-2020.2.254"', 'id = "mkl', r"line 12"),
        (f'sha256 = "{"ab" * 32}"', 'sha256 = "ab"', r"sha256 is not 64 .*line 11"),
        (f'sha256 = "{"ab" * 32}"', f'sha256 = "{"AB" * 32}"', r"sha256 is not 64 .*line 11"),
        ("size = 12", "size = true", r"size is missing or of the wrong type.*line 11"),
        ("size = 12", "size = -1", r"size is negative.*line 11"),
        ("size = 12", "", r"size is missing.*line 11"),
        ("size = 0\n", 'size = 0\nsha1 = "x"\n', r"unknown key sha1.*line 5"),
        ('id = "mkl-2020.2.254"', 'id = "magma-2.5.4-cuda124-release"', r"there twice.*line 11"),
        ('[[helper]]\nid = "mkl', '[[helpers]]\nid = "mkl', r"more than \[\[helper\]\] entries: helpers"),
        ("# Written", "<<<<<<< HEAD\n# Written", r"line 1"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(UsageError, match=said) as refused:
        read_pins(TEXT.replace(old, new, 1))
    assert "torchbuild.lock" in refused.value.what
    assert refused.value.next_step


@pytest.mark.parametrize("text", ["helper = 3", "helper = [1]", 'helper = {a = "b"}', "[helper]\nid = 1"])
def test_other_toml_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_pins(text)
