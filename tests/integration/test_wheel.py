"""The wheel as a user gets it: installed in a clean venv and driven, templates inside."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.driver import environment, in_venv, make_venv

pytestmark = [pytest.mark.integration, pytest.mark.one_system]  # it holds no machine code

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(argv, check=True, env=environment())
    return next(folder.glob("*.whl"))


def test_it_holds_the_rows_and_the_templates(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    shells = {name.rpartition("/")[2] for name in names if "/env_templates/" in name}
    assert shells == {path.name for path in (ROOT / "env_templates").iterdir()}
    data = ROOT / "torchbuild_tasks/data"
    files = {path.relative_to(ROOT).as_posix() for path in data.rglob("*") if path.is_file()}
    assert {name for name in names if name.startswith("torchbuild_tasks/data/")} == {
        name for name in files if "__pycache__" not in name
    }
    assert "torchbuild_tasks/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_it_works_in_a_clean_venv(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    make_venv(venv, f"{wheel}[nox]")
    (tmp_path / "noxfile.py").write_text("import torchbuild_tasks\n\ntorchbuild_tasks.register()\n", "utf-8")
    (tmp_path / "tasks.py").write_text("from torchbuild_tasks import namespace\n", "utf-8")
    tree = tmp_path / "tree"
    (tree / "torch").mkdir(parents=True)
    for runner in (["torchbuild", "plan"], ["inv", "plan"], ["nox", "-s", "plan", "--"]):
        argv = [str(in_venv(venv, runner[0])), *runner[1:], "--source", str(tree)]
        done = subprocess.run(
            argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 3, done.stdout + done.stderr
        assert "version.txt" in done.stdout
        assert "Traceback" not in done.stderr
