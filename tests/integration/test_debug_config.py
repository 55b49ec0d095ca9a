"""`debug-config`, `test` and `bench` as a user calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.capabilities import needs_symlinks
from tests.support.driver import Run, in_venv, torchbuild
from tests.support.sample import materialise
from torchbuild_tasks.features.develop.jsonc import read

pytestmark = pytest.mark.integration

LAUNCH = '// mine\n{\n  "configurations": [\n    { "name": "mine" }, // kept\n  ],\n}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return materialise(tmp_path / "minitorch")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's Python; with the system's Python, a build would first make a venv."""
    folder = tmp_path_factory.mktemp("python") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return in_venv(folder, "python")


def run(verb: str, tree: Path, *words: str | Path, **environ: str) -> Run:
    return torchbuild(verb, "--source", tree, *words, environ=environ)


def test_own_files_keep_every_line(tree: Path) -> None:
    (tree / ".vscode").mkdir()
    (tree / ".vscode/launch.json").write_text(LAUNCH, "utf-8")
    done = run("debug-config", tree)
    assert done.code == 0, done.err
    text = (tree / ".vscode/launch.json").read_text("utf-8")
    assert text.startswith(LAUNCH[: LAUNCH.index("  ],")])
    names = [each["name"] for each in read(text).value["configurations"]]
    assert names == ["mine", *(name for name in names if name.startswith("torchbuild: "))]
    assert len(names) == 4
    assert len(json.loads((tree / ".vscode/tasks.json").read_text("utf-8"))["tasks"]) == 2
    before = {path: path.stat().st_mtime_ns for path in (tree / ".vscode").iterdir()}
    assert run("debug-config", tree).code == 0
    assert {path: path.stat().st_mtime_ns for path in (tree / ".vscode").iterdir()} == before


def test_a_file_that_cannot_be_edited_is_left_and_the_entries_are_printed(tree: Path) -> None:
    (tree / ".vscode").mkdir()
    broken = tree / ".vscode/launch.json"
    broken.write_bytes(b'{"configurations": [}\xff')
    done = run("debug-config", tree)
    assert done.code == 2
    assert "left as it is" in done.out
    assert '"MIMode"' in done.out or '"cppvsdbg"' in done.out
    assert broken.read_bytes() == b'{"configurations": [}\xff'
    assert (tree / ".vscode/tasks.json").exists()


@needs_symlinks
@pytest.mark.parametrize("link", [".vscode", ".vscode/tasks.json"])
def test_what_a_link_leads_out_of_the_checkout_to_stays(tree: Path, tmp_path: Path, link: str) -> None:
    """A checkout can bring a link to the user's own tasks of VS Code."""
    (tmp_path / "User").mkdir()
    (tmp_path / "User/tasks.json").write_text("{}", "utf-8")
    (tree / link).parent.mkdir(exist_ok=True)
    (tree / link).symlink_to(tmp_path / "User" / Path(link).name if "/" in link else tmp_path / "User")
    done = run("debug-config", tree)
    assert done.code == 2
    assert "it leads to" in done.out
    assert [path.read_text("utf-8") for path in (tmp_path / "User").iterdir()] == ["{}"]


def test_a_dry_run_writes_nothing(tree: Path) -> None:
    (tree / "build").mkdir()
    (tree / "build/compile_commands.json").write_text("[]", "utf-8")
    assert run("debug-config", tree, "--dry-run").code == 0
    assert not (tree / ".vscode").exists()
    assert not os.path.lexists(tree / "compile_commands.json")


def test_a_switch_for_the_commands_is_advised_only_where_cmake_has_run_without(tree: Path) -> None:
    said = run("debug-config", tree, "--dry-run").out
    assert "run this again after a build" in said and "CMAKE_EXPORT" not in said
    (tree / "build").mkdir()
    (tree / "build/CMakeCache.txt").write_text("", "utf-8")
    assert "--set CMAKE_EXPORT_COMPILE_COMMANDS=ON" in run("debug-config", tree, "--dry-run").out


@needs_symlinks
def test_the_commands_lead_to_the_build_tree_and_the_users_own_stay(tree: Path) -> None:
    (tree / "build").mkdir()
    (tree / "build/compile_commands.json").write_text("[]", "utf-8")
    place = tree / "compile_commands.json"
    for _ in range(2):
        assert run("debug-config", tree).code == 0
        assert place.resolve() == (tree / "build/compile_commands.json").resolve()
    place.unlink()
    place.write_text("[1]", "utf-8")
    assert "is kept" in run("debug-config", tree).out
    assert place.read_text("utf-8") == "[1]"


# ---------------------------------------------------------------- test and bench

SHOW = (
    "import json, os, sys, torch\n"
    "print(json.dumps([sys.argv, os.getcwd(), torch.__file__]))\n"
    "sys.exit(int(sys.argv[-1]))\n"
)


@pytest.fixture
def torch(tmp_path: Path) -> str:
    """A torch that is not the source's, as a wheel's would be."""
    (tmp_path / "site/torch").mkdir(parents=True)
    (tmp_path / "site/torch/__init__.py").write_text("__version__ = '9.9'\n", "utf-8")
    return str(tmp_path / "site")


@pytest.mark.parametrize(
    ("verb", "file", "words"),
    [
        pytest.param("test", "test/run_test.py", (), marks=pytest.mark.slow),
        ("test", "test/test_it.py", ("--only", "test_it")),
        ("bench", "benchmarks/operator_benchmark/benchmark_all_test.py", ()),
        ("bench", "benchmarks/operator_benchmark/pt/add_test.py", ("--only", "add")),
    ],
)
def test_upstreams_own_get_the_words_and_give_the_code(
    tree: Path, torch: str, python: Path, verb: str, file: str, words: tuple[str, ...]
) -> None:
    """The source's torch/ is not what they import, even where PYTHONPATH has the checkout first."""
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    (tree / file).write_text(SHOW, "utf-8")
    path = os.pathsep.join((str(tree), torch))
    done = run(verb, tree, "--python", python, *words, "--", "-k", "a b", "--source", "7", PYTHONPATH=path)
    assert done.code == 7, done.err
    argv, folder, torch_file = json.loads(done.out)
    assert argv[1:] == ["-k", "a b", "--source", "7"]
    assert Path(folder) == tree / ("test" if verb == "test" else "benchmarks/operator_benchmark")
    assert Path(torch_file).is_relative_to(torch)
    assert "torch 9.9" in done.err
    as_json = run(verb, tree, "--python", python, *words, "--json", "--", "7", PYTHONPATH=path)
    assert (as_json.code, as_json.json) == (7, {"exit_code": 7})


def test_a_test_that_is_not_there_and_a_torch_that_is_not(tree: Path, tmp_path: Path, python: Path) -> None:
    missing = run("test", tree, "--only", "test_nothing")
    assert missing.code == 2
    assert "test_nothing.py" in missing.err
    (tree / "test/test_it.py").write_text("", "utf-8")
    assert "did you mean test_it.py?" in run("test", tree, "--only", "test_itt").err
    (tree / "test/run_test.py").write_text(SHOW, "utf-8")
    broken = tmp_path / "site/torch"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libc10.so: no such file')\n", "utf-8")
    unbuilt = run("test", tree, "--python", python, PYTHONPATH=str(tmp_path / "site"))
    assert unbuilt.code == 7
    assert "cannot import torch" in unbuilt.err
    assert "libc10.so" in unbuilt.err


def test_other_verbs_take_no_words_behind_two_dashes(tree: Path) -> None:
    done = run("plan", tree, "--", "-k")
    assert done.code == 2
    assert "takes no words after --" in done.err
