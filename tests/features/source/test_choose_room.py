"""The room that a checkout takes, before anything is fetched."""

from __future__ import annotations

import pytest

from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source.choose import check_room, least_room, long_path

URL = "https://github.com/pytorch/pytorch.git"


def test_history_and_the_mirror_store_take_more() -> None:
    shallow = least_room(URL, full=False, mirrored=False)
    full = least_room(URL, full=True, mirrored=False)
    mirrored = least_room(URL, full=False, mirrored=True)
    assert shallow and full and mirrored
    assert shallow < mirrored < full


def test_of_another_repository_nothing_is_claimed() -> None:
    assert least_room("https://example.org/other.git", full=False, mirrored=False) is None
    assert check_room(None, 5, "/x") == ""


def test_too_little_is_refused_and_unknown_is_not() -> None:
    with pytest.raises(SourceError, match="Nothing was fetched"):
        check_room(1000 << 20, 999 << 20, "/x")
    assert "1000 MiB are needed" in check_room(1000 << 20, 1000 << 20, "/x")
    assert "not known" in check_room(1000 << 20, None, "/x")


def test_a_long_folder_is_named_with_the_length_that_its_paths_get() -> None:
    assert long_path("C:\\pt") == ""
    assert "C:\\pt" in long_path("C:\\" + "x" * 90)
