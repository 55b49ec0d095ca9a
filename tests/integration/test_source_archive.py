"""A release without git: each folder comes at the commit of its row, and what no row has is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.capabilities import needs_git
from tests.support.git_servers import git
from tests.support.sources import RecordingReporter
from torchbuild_tasks.catalog.source import PinRow
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.features.source import archive
from torchbuild_tasks.features.source.get import Task
from torchbuild_tasks.model.source import Lacking
from torchbuild_tasks.options import BuildRequest

pytestmark = [pytest.mark.integration, needs_git]
INNER = "third_party/a/third_party/b"


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PinRow, ...]:
    """One repository with two commits; the rows name the first one, which no branch ends at."""
    source = tmp_path / "source"
    source.mkdir()
    git(source, "init", "--quiet")
    for text in ("old", "new"):
        (source / "file").write_text(text, "utf-8")
        git(source, "add", ".")
        git(source, "commit", "--quiet", "--message", text)
    commit, url = git(source, "rev-parse", "HEAD~"), source.as_uri()
    rows = tuple(
        PinRow(torch="2.6.0", path=path, url=url, commit=commit, source="")
        for path in ("third_party/a", INNER)
    )
    monkeypatch.setattr(archive, "load_catalog", lambda: SimpleNamespace(pin=rows))
    return rows


def task(folder: Path, wanted: tuple[str, ...]) -> tuple[Task, Path]:
    """An unpacked release in which these folders hold nothing, the outer ones first."""
    root = folder / "torch"
    (root / "third_party" / "a").mkdir(parents=True)
    (root / "version.txt").write_text("2.6.0a0\n", "utf-8")

    def lacking(root: Path) -> Lacking:
        gone = [path for path in wanted if not (root / path / "file").exists()]
        outer = [path for path in gone if not any(path.startswith(f"{other}/") for other in gone)]
        return Lacking(missing=dict.fromkeys(outer, "every build"), fix="source get 2.6.0")

    request = BuildRequest(source=str(root))
    made = Task(
        request=request,
        facts=SimpleNamespace(windows=None),  # type: ignore[arg-type]
        report=RecordingReporter(),
        store=folder / "store",
        url="",
        config=(),
        needs=lambda root: lambda path: True,
        lacking=lacking,
    )
    return made, root


def test_each_comes_at_its_commit_also_one_inside_another(tmp_path: Path, rows: tuple[PinRow, ...]) -> None:
    made, root = task(tmp_path, ("third_party/a", INNER))
    assert archive.fill_submodules(made, root) == root
    for path in ("third_party/a", INNER):
        assert (root / path / "file").read_text("utf-8") == "old"
        assert not (root / path / ".git").exists()
    assert sorted(each.name for each in (root / "third_party").iterdir()) == ["a"]


def test_what_no_row_has_is_refused_before_anything_is_fetched(
    tmp_path: Path, rows: tuple[PinRow, ...]
) -> None:
    made, root = task(tmp_path, ("third_party/a", "third_party/c"))
    with pytest.raises(SourceError) as raised:
        archive.fill_submodules(made, root)
    assert raised.value.looked == ("third_party/c",) and raised.value.next_step == "source get 2.6.0"
    assert not (root / "third_party/a/file").exists()


def test_a_torch_that_lacks_nothing_is_left_and_a_folder_that_is_none_is_refused(
    tmp_path: Path, rows: tuple[PinRow, ...]
) -> None:
    made, root = task(tmp_path, ())
    assert archive.fill_submodules(made, root) == root
    (root / "version.txt").unlink()
    with pytest.raises(SourceError, match="is not a git checkout"):
        archive.fill_submodules(made, root)
