"""Words that name a torch, and the errors for those that name none."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.support.for_each import each_case
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.plan.torch_ref import read_word, releases

NEWEST = max(load_catalog().torch, key=lambda row: Version(row.version))


@each_case(
    ("word", "kind", "ref", "series"),
    [
        ("2.9", "series", "v2.9.1", "2.9"),
        ("v2.9", "series", "v2.9.1", "2.9"),
        ("2.9.0", "release", "v2.9.0", "2.9"),
        ("v2.9.1", "release", "v2.9.1", "2.9"),
        ("1.13.1", "release", "v1.13.1", "1.13"),
        ("latest", "release", f"v{NEWEST.latest}", NEWEST.version),
        ("Latest", "release", f"v{NEWEST.latest}", NEWEST.version),
        ("main", "branch", "main", NEWEST.version),
        (
            "49444c3e546bf240bed24a101e747422d1f8a0ee",
            "commit",
            "49444c3e546bf240bed24a101e747422d1f8a0ee",
            None,
        ),
        ("1234567", "commit", "1234567", None),
        ("2.8.0a0+git49444c3", "commit", "49444c3", "2.8"),
        ("release/2.9", "ref", "release/2.9", "2.9"),
        ("tags/v1.9.1", "ref", "tags/v1.9.1", "1.9"),
        ("viable/strict", "ref", "viable/strict", NEWEST.version),
        (" 2.9.1 ", "release", "v2.9.1", "2.9"),
    ],
)
def test_a_word_names_a_ref_and_the_row_it_is_planned_by(
    word: str, kind: str, ref: str, series: str | None
) -> None:
    meant = read_word(word, load_catalog())
    assert (meant.word, meant.kind, meant.ref) == (word, kind, ref)
    assert meant.row.version == (series or NEWEST.version)


@each_case(
    ("word", "near"),
    [
        ("2.9.7", "2.9.1 and 2.10.0"),
        ("2.99", NEWEST.latest),
        ("0.4", "1.0.0"),
        ("1.9.7", "1.9.1 and 1.10.0"),
        ("2.9.1+cu128", "2.9.1"),
        ("2.9.0a0", "2.9.0 and main"),
        ("2.9.1.1", "2.9.1 and 2.10.0"),
        ("2", "2.0.0"),
        ("lates", "latest"),
        ("Main.", "main"),
    ],
)
def test_a_word_that_names_none_is_answered_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_word(word, load_catalog())
    assert caught.value.what.endswith(f"the nearest: {near}")
    assert "`versions`" in caught.value.next_step


@each_case("word", ["", "a b", "-x/y", "a/../b", "x/", "/", "a/b.", "HEAD~1/x", "123456"])
def test_what_git_would_not_take_for_a_name_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="no such torch is known"):
        read_word(word, load_catalog())


def test_the_error_says_where_the_word_stands() -> None:
    with pytest.raises(UsageError, match="torch in /x/torchbuild.toml '2.99'"):
        read_word("2.99", load_catalog(), "torch in /x/torchbuild.toml")


def test_every_release_names_itself() -> None:
    known = releases(load_catalog())
    assert list(known) == sorted(set(known))
    for version in known:
        meant = read_word(str(version), load_catalog())
        assert (meant.ref, meant.version) == (f"v{version}", str(version))
        assert meant.row.version == f"{version.major}.{version.minor}"
