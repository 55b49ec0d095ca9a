from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.facts.tree import Project, look_at_pyproject

ROOT = "/src"


def project(root: Path, text: str | None, *, setup_py: bool = False) -> Project:
    files = {f"{ROOT}/version.txt": ""}
    if text is not None:
        files[f"{ROOT}/pyproject.toml"] = text
    if setup_py:
        files[f"{ROOT}/setup.py"] = ""
    return look_at_pyproject(machine(root, files=files), ROOT)


def system(backend: str, requires: str = "[]", more: str = "") -> str:
    return f'[build-system]\nbuild-backend = "{backend}"\nrequires = {requires}\n{more}'


def test_torch_up_to_2_13(tmp_path: Path) -> None:
    found = project(
        tmp_path, system("setuptools.build_meta:__legacy__", '["setuptools", "numpy"]'), setup_py=True
    )
    assert found == Project(
        era="setuptools",
        backend="setuptools.build_meta:__legacy__",
        requires=("setuptools", "numpy"),
        build_dir="/src/build",
    )


def test_a_backend_of_its_own_on_scikit_build_core(tmp_path: Path) -> None:
    text = system(
        "torch_backend", '["Scikit.Build_Core[pyproject]>=1.0", "ninja"]', 'backend-path = ["tools"]\n'
    )
    found = project(tmp_path, text + '[tool.scikit-build]\nbuild-dir = "build"\n', setup_py=True)
    assert (found.era, found.backend, found.build_dir) == ("scikit-build-core", "torch_backend", "/src/build")


def test_scikit_build_core_itself(tmp_path: Path) -> None:
    assert project(tmp_path, system("scikit_build_core.build")).era == "scikit-build-core"


@pytest.mark.parametrize(
    ("build_dir", "expected"),
    [
        ('"out/here"', "/src/out/here"),
        ('"../out"', "/out"),
        ('"/tmp/out"', "/tmp/out"),
        ('"build/{wheel_tag}"', None),
        ('""', None),
        ("3", None),
    ],
)
def test_only_a_plain_build_folder_is_known(tmp_path: Path, build_dir: str, expected: str | None) -> None:
    text = system("scikit_build_core.build", more=f"[tool.scikit-build]\nbuild-dir = {build_dir}\n")
    assert project(tmp_path, text).build_dir == expected


def test_scikit_build_core_without_a_setting_has_no_known_build_folder(tmp_path: Path) -> None:
    assert project(tmp_path, system("scikit_build_core.build")).build_dir is None


@pytest.mark.parametrize(
    ("text", "setup_py", "era"),
    [
        (None, True, "setuptools"),
        (None, False, None),
        ("[tool.black]\nline-length = 100\n", True, "setuptools"),
        ('[build-system]\nrequires = ["setuptools"]\n', True, "setuptools"),
        ("build-system = 3\n", False, None),
        (system("hatchling.build"), True, None),
        (system("own_backend", '["scikit-build-core"]'), True, None),
        (system("own_backend", '["scikit-build", "x"]', 'backend-path = ["."]'), True, None),
        (system("own_backend", '["scikit-build-core-extras"]', 'backend-path = ["."]'), True, None),
        ("[build-system]\nbuild-backend = 3\nrequires = [1, 'x']\n", False, None),
    ],
)
def test_the_era_is_read_and_never_guessed(
    tmp_path: Path, text: str | None, setup_py: bool, era: str | None
) -> None:
    found = project(tmp_path, text, setup_py=setup_py)
    assert found.era == era
    assert found.problem is None
    assert found.build_dir == ("/src/build" if era else None)


@pytest.mark.parametrize("text", ["[build-system\n", "a = " + "[" * 5000, "a = 1\na = 2\n"], ids=str.__len__)
def test_a_broken_file_is_a_problem_with_a_reason(tmp_path: Path, text: str) -> None:
    found = project(tmp_path, text, setup_py=True)
    assert (found.problem or "").startswith("pyproject.toml cannot be read: ")
    assert found.era is None


@pytest.mark.parametrize(
    ("build_dir", "expected"),
    [("out/here", "C:\\src\\out\\here"), ("../out", "C:\\out"), ("D:/out", "D:\\out"), ("/out", "C:\\out")],
)
def test_a_build_folder_on_windows(tmp_path: Path, build_dir: str, expected: str) -> None:
    text = system("scikit_build_core.build", more=f'[tool.scikit-build]\nbuild-dir = "{build_dir}"\n')
    door = windows_machine(tmp_path, files={"C:\\src\\pyproject.toml": text})
    assert look_at_pyproject(door, "C:\\src").build_dir == expected
