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
        ({"/src/vision": ""}, {"problem": "no such folder"}),
        ({"/src/vision/README": ""}, {"problem": "it holds no setup.py and no pyproject.toml"}),
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
