"""What is seen in the folder that --with names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from torchbuild_tasks.features.companions.look import look_at_companions
from torchbuild_tasks.model import CompanionSource

WHOLE = {"/src/vision/setup.py": "", "/src/vision/torchvision/__init__.py": ""}

NONE = "it holds no package torchvision"
IN_PYTHON = 'setup(packages=find_packages(where="py"), package_dir={"": "py"})'
FIND = '[tool.setuptools.packages.find]\nwhere = ["py"]\n'


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        ({**WHOLE, "/src/vision/version.txt": "0.23.0a0\n"}, {"version": "0.23.0a0"}),
        (WHOLE, {"version": None}),
        ({"/elsewhere": ""}, {"problem": "no such folder"}),
        ({"/src/vision": ""}, {"problem": "it is a file: unpack an archive first"}),
        ({"/src/vision/README": ""}, {"problem": "it holds no setup.py and no pyproject.toml"}),
        (
            {"/src/vision/vision-0.21.0/setup.py": "", "/src/vision/README": ""},
            {"problem": "it holds no setup.py and no pyproject.toml; its folder vision-0.21.0 does"},
        ),
        ({"/src/vision/setup.py": ""}, {"problem": f"{NONE} (looked for torchvision, src/torchvision)"}),
        ({"/src/vision/setup.py": "", "/src/vision/src/torchvision/__init__.py": ""}, {"version": None}),
        ({"/src/vision/setup.py": IN_PYTHON, "/src/vision/py/torchvision/__init__.py": ""}, {}),
        ({"/src/vision/pyproject.toml": FIND, "/src/vision/py/torchvision/__init__.py": ""}, {}),
        (
            {"/src/vision/setup.py": IN_PYTHON, "/src/vision/other/torchvision/__init__.py": ""},
            {"problem": f"{NONE} (looked for torchvision, py/torchvision, src/torchvision)"},
        ),
    ],
)
def test_a_folder(tmp_path: Path, files: dict[str, str], seen: dict[str, str | None]) -> None:
    (looked,) = look_at_companions([("torchvision", "/src/vision")], machine(tmp_path, files=files))
    version, problem = seen.get("version"), seen.get("problem")
    wanted = CompanionSource(name="torchvision", path="/src/vision", version=version, problem=problem)
    assert looked == wanted


@pytest.mark.parametrize(
    ("setup", "forces"),
    [
        ('FORCE = os.getenv("MAMBA_FORCE_BUILD", "FALSE") == "TRUE"', {"MAMBA_FORCE_BUILD": "TRUE"}),
        ("x = os.environ.get( 'MY_FORCE_BUILD' ) == '1'", {"MY_FORCE_BUILD": "1"}),
        ('flags += [\n  "--threads",\n  "4",\n]', {"NVCC_APPEND_FLAGS": "--threads=1"}),
        ('flags += ["--threads", threads]', {}),
        ('ABI = os.getenv("MAMBA_FORCE_CXX11_ABI", "FALSE") == "TRUE"', {}),
    ],
)
def test_what_keeps_a_build_from_a_wheel_for_another_torch_and_to_its_jobs(
    tmp_path: Path, setup: str, forces: dict[str, str]
) -> None:
    probe = machine(tmp_path, files={"/src/ext/setup.py": f"import os\n{setup}\n"})
    (looked,) = look_at_companions([("ext", "/src/ext")], probe, any_package=("ext",))
    assert looked.forces == forces


@pytest.mark.parametrize(
    ("project", "needs"),
    [
        ('license = "MIT"', ("setuptools", "wheel", "ninja", "packaging", "setuptools>=77.0")),
        ('license = {text = "MIT"}', ()),
        ('[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"', ("hatchling",)),
    ],
)
def test_what_reads_a_licence_that_is_a_string(tmp_path: Path, project: str, needs: tuple[str, ...]) -> None:
    files = {"/src/ext/pyproject.toml": f"[project]\nname = 'ext'\n{project}\n"}
    (looked,) = look_at_companions(
        [("ext", "/src/ext")], machine(tmp_path, files=files), any_package=("ext",)
    )
    assert looked.builds_with == needs
    assert looked.text_licence == (project == 'license = "MIT"')


@pytest.mark.parametrize("named", ['"asks.txt"', '["asks.txt"]'])
def test_what_setuptools_reads_from_files(tmp_path: Path, named: str) -> None:
    text = f"[tool.setuptools.dynamic]\ndependencies = {{file = {named}}}\nversion = {{file = 'VERSION'}}\n"
    files = {"/src/ext/pyproject.toml": text, "/src/ext/asks.txt": "torch==2.8.0  # this one\n"}
    probe = machine(tmp_path, files={**files, "/src/ext/VERSION": "1.5\n"})
    (looked,) = look_at_companions([("ext", "/src/ext")], probe, any_package=("ext",))
    assert (looked.asks, looked.version) == (("torch==2.8.0",), "1.5")
