"""The commit, branch, tag or pull request that a name denotes in a repository."""

from __future__ import annotations

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source.choose import find, parse_listing

LISTING = """\
From https://example.org/pytorch.git
1111111111111111111111111111111111111111\trefs/heads/main
2222222222222222222222222222222222222222\trefs/heads/release/2.9
3333333333333333333333333333333333333333\trefs/tags/v2.9.0
4444444444444444444444444444444444444444\trefs/tags/v2.9.0^{}
5555555555555555555555555555555555555555\trefs/tags/v2.9.1
6666666666666666666666666666666666666666\trefs/tags/v2.10.0
7777777777777777777777777777777777777777\trefs/tags/v2.11.0-rc1
8888888888888888888888888888888888888888\trefs/pull/1/head
9999999999999999999999999999999999999999\trefs/tags/ciflow/trunk/1
"""
REFS = parse_listing(LISTING)
URL = "https://example.org/pytorch.git"


@each_case(
    ("word", "ref", "digit"),
    [
        ("latest", "refs/tags/v2.10.0", "6"),  # no candidate of a release, and 2.10 is after 2.9
        ("2.9", "refs/tags/v2.9.1", "5"),
        ("v2.9", "refs/tags/v2.9.1", "5"),
        ("2.9.0", "refs/tags/v2.9.0", "4"),  # the commit that the tag stands for
        ("v2.11.0-rc1", "refs/tags/v2.11.0-rc1", "7"),
        ("main", "refs/heads/main", "1"),
        ("release/2.9", "refs/heads/release/2.9", "2"),
        ("tags/v2.9.0", "refs/tags/v2.9.0", "4"),
        ("refs/heads/main", "refs/heads/main", "1"),
        ("a" * 40, "", "a"),
        ("5555555", "", "5"),
    ],
)
def test_words(word: str, ref: str, digit: str) -> None:
    found = find(word, REFS, URL)
    assert (found.ref, found.commit) == (ref, digit * 40)
    assert found.branch == ref.startswith("refs/heads/")


@each_case(
    ("word", "near"),
    [
        ("2.9.7", "nearest: v2.9.0, v2.9.1, v2.10.0, v2.11.0-rc1"),
        ("99.0", "nearest: v2.10.0, v2.11.0-rc1"),
        ("mian", "nearest: main"),
    ],
)
def test_what_is_not_there_names_the_nearest(word: str, near: str) -> None:
    with pytest.raises(SourceError) as raised:
        find(word, REFS, URL)
    assert raised.value.looked == (near,)


def test_a_short_commit_that_nothing_stands_at_cannot_be_requested() -> None:
    with pytest.raises(SourceError, match="40 digits"):
        find("abcdef0", REFS, URL)


def test_pull_requests_are_no_versions() -> None:
    assert not [ref for ref in REFS if "pull" in ref]
