"""What is checked out, with a real git, nested submodules and a user's own settings for diffs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs_git, needs_posix_paths
from tests.support.sample import materialise
from torchbuild_tasks.build.answers import keep_answers
from torchbuild_tasks.errors import SourceError
from torchbuild_tasks.facts import answers
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.features.manifest.state import list_installed, look_at_repositories
from torchbuild_tasks.model.record import Repository

pytestmark = [
    pytest.mark.integration,
    needs_git,
]
SUB, INNER = "third_party/tinyfmt", "third_party/tinyfmt/third_party/tinyassert"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return materialise(tmp_path / "minitorch", git=True)


def look(root: Path) -> dict[str, Repository]:
    return {each.path: each for each in look_at_repositories(root, frozenset({"env_set.sh"}))}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_every_commit_is_reported_also_of_nested_submodules(root: Path) -> None:
    seen = look(root)
    assert list(seen) == ["", SUB, INNER]
    for path, repository in seen.items():
        assert repository.commit == git(root / path, "rev-parse", "HEAD")
        assert (repository.diff, repository.diff_sha256, repository.untracked) == ("", "", ())


def test_a_diff_of_torch_or_a_submodule_applies_elsewhere(root: Path, tmp_path: Path) -> None:
    """Whatever the user has set for diffs, and for bytes that are not text."""
    for name, value in (("diff.noprefix", "true"), ("color.diff", "always"), ("diff.external", "false")):
        git(root, "config", name, value)
    (root / "version.txt").write_bytes(b"2.14.0a0\r\n\xff\n")
    (root / INNER / "CMakeLists.txt").write_text("# changed\n", "utf-8")
    git(root, "rm", "-q", "README.md")
    seen = look(root)
    assert seen[SUB].diff == ""
    other = materialise(tmp_path / "other", git=True)
    for path in ("", INNER):
        diff = seen[path].diff.encode("utf-8", "surrogateescape")
        assert hashlib.sha256(diff).hexdigest() == seen[path].diff_sha256
        (tmp_path / "a.diff").write_bytes(diff)
        git(other / path, "apply", "--whitespace=nowarn", str(tmp_path / "a.diff"))
    assert (other / "version.txt").read_bytes() == (root / "version.txt").read_bytes()
    assert not (other / "README.md").exists()
    assert (other / INNER / "CMakeLists.txt").read_text("utf-8") == "# changed\n"


def test_untracked_files_are_listed_with_their_hash_but_not_ours_or_ignored_ones(root: Path) -> None:
    (root / "aten/new.h").write_bytes(b"x\n")
    (root / "env_set.sh").write_bytes(b"ours")
    (root / "build").mkdir()
    (root / "build/a.o").write_bytes(b"ignored")
    (seen,) = look(root)[""].untracked
    assert (seen.path, seen.size, seen.sha256) == ("aten/new.h", 2, hashlib.sha256(b"x\n").hexdigest())


def test_a_submodule_that_is_not_there_says_so(root: Path) -> None:
    git(root, "submodule", "deinit", "-f", SUB)
    seen = look(root)
    assert list(seen) == ["", SUB]
    assert seen[SUB].commit is None
    assert seen[SUB].problem == "not checked out"


def test_a_folder_without_git_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        look_at_repositories(tmp_path, frozenset())


@needs_posix_paths
def test_packages_are_listed_again_when_one_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site/mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n\nName: text\n", "utf-8")
    (info / "RECORD").write_text("mine.py,,\n", "utf-8")
    run, asked = Probe.run, []

    def counted(self: Probe, *words: Any, **options: Any) -> Any:
        asked.append(words)
        return run(self, *words, **options)

    monkeypatch.setattr(Probe, "run", counted)
    monkeypatch.setattr(answers, "_SETTLED", -60.0)  # as if all of this had been there for a minute

    def listed(folder: Path = tmp_path / "state") -> dict[str, str | None]:
        known = answers.Answers(folder)
        environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
        found = list_installed(Probe(environ=environ, answers=known), sys.executable)
        keep_answers(known)
        return {each.name: each.record for each in found}

    first = listed()
    assert first["mine"] == hashlib.sha256(b"mine.py,,\n").hexdigest() and "pytest" in first
    assert listed() == first and len(asked) == 1
    (info / "RECORD").write_text("mine.py,,\nother.py,,\n", "utf-8")
    assert listed()["mine"] != first["mine"] and len(asked) == 2
    info.rename(info.with_name("other-2.0.dist-info"))
    (info.with_name("other-2.0.dist-info") / "METADATA").write_text("Name: other\nVersion: 2.0\n", "utf-8")
    assert "other" in listed() and "mine" not in listed()
    assert listed(tmp_path / "site/mine.py") == listed(), "it is asked anew where nothing can be kept"
