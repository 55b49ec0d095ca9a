"""Trust is of a place and of its files as they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.capabilities import needs
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.facts.trust import digest, is_trusted, own_templates, place_of
from torchbuild_tasks.features.trust import act
from torchbuild_tasks.system import trust


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = (tmp_path / "checkout").resolve()
    (root / "x").mkdir(parents=True)
    (root / "env_templates").mkdir()
    (root / "tk" / "bin").mkdir(parents=True)
    (root / "torchbuild.toml").write_text(
        'python = "x/python"\ncuda-toolkit = "tk"\nnotify = "sh x/n"\n', "utf-8"
    )
    for name in ("x/python", "x/n", "x/other", "env_templates/env_set.sh.in", "tk/bin/nvcc"):
        (root / name).write_text("1", "utf-8")
    return root


def test_trust_holds_until_it_is_revoked(folder: Path) -> None:
    assert not is_trusted(str(folder))
    said = act.trust_place(str(folder / "torchbuild.toml"))
    assert said.place == str(folder) == place_of(str(folder / "torchbuild.toml"))
    assert is_trusted(str(folder))
    assert [(one.place, one.holds) for one in act.listed()] == [(str(folder), True)]
    assert act.revoke(str(folder)) == (str(folder), True)
    assert act.revoke(str(folder)) == (str(folder), False)
    assert not is_trusted(str(folder))


@pytest.mark.parametrize(
    "name", ["torchbuild.toml", "x/python", "x/n", "env_templates/env_set.sh.in", "tk/bin/nvcc"]
)
def test_a_change_of_any_file_concerned_takes_it_back(folder: Path, name: str) -> None:
    act.trust_place(str(folder))
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("\n# more")
    assert not is_trusted(str(folder))
    assert [one.holds for one in act.listed()] == [False]


def test_so_does_one_of_a_file_that_would_take_hours_to_hash(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive may bring a file of terabytes that holds nothing."""
    huge = folder / "x/python"
    with huge.open("wb") as file:
        file.truncate(100)
    monkeypatch.setattr("torchbuild_tasks.facts.trust._LARGEST", 99)
    monkeypatch.setattr("torchbuild_tasks.facts.trust.hash_file", lambda path: str(path == huge))
    act.trust_place(str(folder))
    assert is_trusted(str(folder))
    os.utime(huge, (1, 1))
    assert not is_trusted(str(folder))


def test_so_do_a_new_template_and_a_new_program(folder: Path) -> None:
    changes: tuple[Callable[[], object], ...] = (
        lambda: (folder / "env_templates/env_set.fish.in").write_text("1", "utf-8"),
        lambda: (folder / "tk/bin/ptxas").write_text("1", "utf-8"),
        lambda: (folder / "x/python").unlink(),
    )
    for change in changes:
        act.trust_place(str(folder))
        change()
        assert not is_trusted(str(folder))


def test_another_file_does_not_count(folder: Path) -> None:
    before = digest(str(folder))
    (folder / "x/other").write_text("2", "utf-8")
    assert digest(str(folder)) == before


def test_a_copy_is_not_trusted(folder: Path) -> None:
    act.trust_place(str(folder))
    moved = folder.rename(folder.with_name("moved"))
    assert not is_trusted(str(moved))


def test_what_lies_in_the_checkout_does_not_vouch_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act.trust_place(str(folder))
    state = folder / "state"
    trust.state_folder({}).rename(state)
    monkeypatch.setenv(trust.VARIABLE, str(state))
    assert not is_trusted(str(folder))
    with pytest.raises(UsageError, match="in the folder that you want to trust"):
        act.trust_place(str(folder))


def test_a_machine_that_only_builds_trusts_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trust.TRUSTED, str(folder.parent))
    assert is_trusted(str(folder))
    monkeypatch.setenv(trust.TRUSTED, str(folder)[:-1])
    assert not is_trusted(str(folder))


def test_templates_that_are_ours_need_no_trust(folder: Path) -> None:
    assert own_templates(folder, {"env_set.sh.in": "1"}) == ()
    assert own_templates(folder, {"env_set.sh.in": "2"}) == ("env_set.sh.in",)


def test_there_must_be_something_to_trust(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to trust"):
        act.trust_place(str(tmp_path))
    with pytest.raises(UsageError, match="does not exist"):
        act.trust_place(str(tmp_path / "none"))


def test_a_venv_that_was_moved_with_its_checkout_is_adopted(tmp_path: Path) -> None:
    """The checkout was copied: its venv counts again when the user says so."""
    venv = tmp_path / ".torchbuild" / "venv-3.12"
    venv.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n", "utf-8")
    said = act.trust_place(str(tmp_path.resolve()))
    assert said.venvs == (str(venv.resolve()),)
    with pytest.raises(UsageError, match="nothing to trust"):  # it is ours now
        act.trust_place(str(tmp_path))


def test_what_cannot_be_remembered_is_an_error_of_one_kind(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files and of a venv alike."""
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv(trust.VARIABLE, str(tmp_path / "file" / "state"))
    venv = tmp_path / "other" / ".torchbuild" / "venv-3.12"
    venv.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n", "utf-8")
    for place in (folder, tmp_path / "other"):
        with pytest.raises(UsageError, match="cannot be written to"):
            act.trust_place(str(place))


@needs(sys.platform != "win32", "a umask")
def test_no_other_user_can_write_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another user of the machine could trust a file in our name, where our umask lets others write."""
    monkeypatch.setenv(trust.VARIABLE, str(tmp_path / "a" / "state"))
    before = os.umask(0)
    try:
        trust.write_proof("files", "/x", "proof")
    finally:
        os.umask(before)
    state = tmp_path / "a" / "state"
    rights = {path: path.stat().st_mode & 0o777 for path in (state, *state.rglob("*"))}
    assert [path for path, mode in rights.items() if mode & 0o077] == []
    assert trust.read_proof(state, "files", "/x") == "proof"
