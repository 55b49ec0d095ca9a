"""Files with tokens: complete, private to one user, and refused with another content."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.capabilities import needs_enforced_permissions, needs_posix_permissions
from torchbuild_tasks.errors import ClusterError, UsageError
from torchbuild_tasks.features.cluster.ask import cluster_files, read_token, value, write_secret


@needs_posix_permissions
def test_a_secret_is_for_one_user_s_eyes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "client.token"
    for text in ("one\n", "two\n"):
        write_secret(path, text)
        assert path.read_text("utf-8") == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["client.token"]


@needs_enforced_permissions
def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o500)
    with pytest.raises(ClusterError, match="cannot be written"):
        write_secret(tmp_path / "shut" / "cluster" / "client.token", "x")


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "client.token").mkdir()
    with pytest.raises(ClusterError, match="cannot be written"):
        write_secret(tmp_path / "client.token", "x")
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == []


@pytest.mark.parametrize("text", ["t0k-en_", "t0k-en_\n", "  t0k-en_\r\n"])
def test_a_token_is_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text, "utf-8")
    assert read_token(tmp_path / "token") == "t0k-en_"


@pytest.mark.parametrize("data", [b"", b"\n", b"two words", b"two\nlines", b"\xff\xfe", b"x" * 5000])
def test_what_is_no_token(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "token").write_bytes(data)
    with pytest.raises(UsageError, match="holds no token"):
        read_token(tmp_path / "token")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_token(tmp_path / "token")


@pytest.mark.parametrize(
    ("text", "found"),
    [("[a]\nb = 'x'", "x"), ("[a]\nb = 7", ""), ("a = 7", ""), ("", ""), ("[[", ""), ("[a.b]\nc = 1", "")],
)
def test_one_value_of_a_file(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "conf").write_text(text, "utf-8")
    assert value(tmp_path / "conf", "a", "b") == found
    assert value(tmp_path / "none", "a", "b") == ""


def test_every_user_has_a_shelf_of_their_own(tmp_path: Path) -> None:
    made = cluster_files(str(tmp_path / "cache"))
    assert Path.home() in made.root.parents
    assert made.space == tmp_path / "cache" / "cluster"
    assert made.list_joined() == ()
    write_secret(made.client("big-10600"), "x")
    assert made.list_joined() == (made.client("big-10600"),)
