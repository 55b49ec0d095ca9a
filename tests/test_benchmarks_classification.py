"""The benchmark that holds the rows against a real history finds what it is to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.classification import Commit, allows_upstream, classify, read_build


def test_an_input_that_no_row_sees_is_reported() -> None:
    commits = [
        Commit("a" * 40, ("torch/functional.py",), frozenset()),
        Commit("b" * 40, ("c10/a.cpp", "test/test_torch.py"), frozenset()),
        Commit("c" * 40, ("docs/notes.md",), frozenset(("docs/notes.md",))),
        Commit("d" * 40, ("torch/optim/sgd.py",), frozenset()),
    ]
    result = classify(iter(commits), built={"torch/optim/sgd.py"})
    assert (result.commits, result.free, result.free_upstream, result.inputs) == (4, 3, 3, 3)
    assert result.wrong == ["cccccccccc docs/notes.md", "dddddddddd torch/optim/sgd.py"]


def test_a_builds_own_files_are_no_inputs(tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/src\n")
    (tmp_path / "build.ninja").write_text("build x: CC /src/c10/a.cpp | /src/torch/version.py /src/build/b\n")
    (tmp_path / ".ninja_deps").write_bytes(b"# ninjadeps\n\x04\0\0\0/src/torch/../c10/a.h\0")
    assert read_build(tmp_path) == {"c10/a.cpp", "c10/a.h"}


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("torch/x.py", True), ("torch/csrc/x.py", False), ("docs/a.md", True), ("setup.py", False)],
)
def test_upstreams_ci_allows_python_and_docs(path: str, allowed: bool) -> None:
    assert allows_upstream(path) is allowed
