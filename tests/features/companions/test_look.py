"""What is seen in the folder that --with names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from torchbuild_tasks.features.companions.look import look_at_companions
from torchbuild_tasks.model import CompanionSource

WHOLE = {"/src/vision/setup.py": "", "/src/vision/torchvision/__init__.py": ""}


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        ({**WHOLE, "/src/vision/version.txt": "0.23.0a0\n"}, {"version": "0.23.0a0"}),
        (WHOLE, {"version": None}),
        ({"/elsewhere": ""}, {"problem": "no such folder"}),
        ({"/src/vision": ""}, {"problem": "no such folder"}),
        ({"/src/vision/README": ""}, {"problem": "it holds no setup.py and no pyproject.toml"}),
        ({"/src/vision/setup.py": ""}, {"problem": "it holds no package torchvision"}),
    ],
)
def test_a_folder(tmp_path: Path, files: dict[str, str], seen: dict[str, str | None]) -> None:
    (looked,) = look_at_companions([("torchvision", "/src/vision")], machine(tmp_path, files=files))
    version, problem = seen.get("version"), seen.get("problem")
    wanted = CompanionSource(name="torchvision", path="/src/vision", version=version, problem=problem)
    assert looked == wanted
