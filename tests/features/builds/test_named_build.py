"""A named build is where its table says, else next to the main checkout; its last build is its manifest's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from torchbuild_tasks.facts.trust import digest
from torchbuild_tasks.features.builds.named_build import (
    Note,
    config_of,
    last_build,
    note_of,
    place_of,
    read_note,
    resolve,
    write_note,
)
from torchbuild_tasks.model.record import MANIFEST_FILE
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.settings import check_settings
from torchbuild_tasks.system import trust

NOTE = Note(name="debug", config="/no/such/torchbuild.toml", main="/src", ref="v2.9.1")


@pytest.mark.parametrize(
    ("table", "folder", "worktree"),
    [
        ({}, "pytorch-debug", True),
        ({"folder": "elsewhere"}, "elsewhere", True),
        ({"source": "mine"}, "mine", False),
    ],
)
def test_a_build_is_where_its_table_says(
    tmp_path: Path, table: dict[str, str], folder: str, worktree: bool
) -> None:
    settings = check_settings(str(tmp_path / "torchbuild.toml"), {"builds": {"debug": table}}, {})
    place = place_of(settings, settings.builds["debug"], tmp_path / "pytorch")
    assert place.folder == Path(os.path.realpath(tmp_path / folder))
    assert place.worktree is worktree


@pytest.mark.parametrize(
    ("name", "builds", "folder"),
    [
        (None, ("debug",), None),
        ("none", ("debug",), None),
        ("none", ("none",), "pytorch-none"),
        ("debug", ("debug",), "pytorch-debug"),
    ],
)
def test_a_request_is_about_the_build_that_it_names(
    tmp_path: Path, name: str | None, builds: tuple[str, ...], folder: str | None
) -> None:
    tables: dict[str, dict[str, dict[str, str]]] = {"builds": {each: {} for each in builds}}
    settings = check_settings(str(tmp_path / "torchbuild.toml"), tables, {})
    named = resolve(BuildRequest(name=name, source=str(tmp_path / "pytorch")), None, settings)
    assert (named.place.folder.name if named.place else None) == folder


def test_a_note_is_read_as_it_was_written_and_a_broken_one_is_none(tmp_path: Path) -> None:
    assert read_note(tmp_path) is None
    write_note(tmp_path, NOTE)
    assert read_note(tmp_path) == NOTE
    next(tmp_path.rglob("build.json")).write_text("{", "utf-8")
    assert read_note(tmp_path) is None


def test_the_settings_file_of_the_worktree_counts_where_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "torchbuild.toml"
    note = Note(name="debug", config=str(file), main="/src", ref="HEAD")
    assert config_of(BuildRequest(), note) is None  # it is gone
    file.touch()
    assert config_of(BuildRequest(), note) == str(file)
    assert config_of(BuildRequest(config="other.toml"), note) == "other.toml"


def test_a_note_counts_in_a_worktree_of_the_checkout_that_it_names(tmp_path: Path) -> None:
    """A checkout may bring one that names yours: then `clean` would be about that."""
    main, folder = tmp_path / "main", tmp_path / "main-debug"
    (git := main / ".git/worktrees/x").mkdir(parents=True)
    folder.mkdir()
    note = Note(name="debug", config="/no/such/torchbuild.toml", main=str(main), ref="HEAD")
    write_note(folder, note)
    asked = BuildRequest(source=str(folder))
    assert note_of(asked) is None  # no worktree
    (folder / ".git").write_text(f"gitdir: {git}\n", "utf-8")
    (git / "gitdir").write_text("/another/.git\n", "utf-8")
    assert note_of(asked) is None  # the checkout does not know of it
    (git / "gitdir").write_text(f"{folder / '.git'}\n", "utf-8")
    assert note_of(asked) == note
    write_note(folder, Note(name="debug", config="/no/such/torchbuild.toml", main=str(tmp_path), ref="HEAD"))
    assert note_of(asked) is None  # of another one


def test_the_newest_manifest_is_the_last_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(trust.VARIABLE, str(tmp_path.with_name("state")))
    assert last_build(tmp_path) is None
    for at, (folder, result) in enumerate((("build", "failed"), ("build-2", "ok"))):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / MANIFEST_FILE
        choices = [{"name": "torch", "value": "2.9.1"}, {"name": "python", "value": "/p"}]
        file.write_text(
            json.dumps({"result": result, "started": "then", "finished": None, "choices": choices}), "utf-8"
        )
        os.utime(file, (at, at))
    last = last_build(tmp_path)
    assert last is not None
    assert (last.result, last.finished, last.torch, last.python) == ("ok", "then", "2.9.1", "")
    place = os.path.realpath(tmp_path / "build-2" / MANIFEST_FILE)
    trust.write_proof("manifests", place, digest(place))
    last = last_build(tmp_path)
    assert last is not None
    assert last.python == "/p"
