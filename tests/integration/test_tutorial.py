"""The commands of the tutorial of a first build, as a reader types them, on a copy of the sample."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.capabilities import needs_linux_compiler
from tests.support.driver import TORCHBUILD, environment
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs_linux_compiler]

PAGE = Path(__file__).parents[2] / "docs/tutorials/first-cpu-build.md"


def commands() -> list[str]:
    """The lines of the page's blocks from the checkout on, without those that need what is not here."""
    text = PAGE.read_text("utf-8").partition("## 3.")[2]
    text = re.sub(r"<!-- needs: .*? -->\n\n(?:    .*\n)+", "", text)
    return re.findall(r"^    (.+)$", text, re.MULTILINE)


@pytest.mark.timeout(600)
def test_each_command_of_the_first_build_works(tmp_path: Path) -> None:
    tree = materialise(tmp_path / "pytorch", era="scikit-build-core")
    environ = {**environment(), "HOME": str(tmp_path)}
    printed: dict[str, str] = {}
    for command in commands():
        line = re.sub(r"^torchbuild\b", shlex.join(map(str, TORCHBUILD)), command)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=PAGE.parents[2],
            env=environ,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed.setdefault(command, done.stdout + done.stderr)
    builds = [command for command in printed if command.startswith("torchbuild build")]
    assert "Built torch" in printed[builds[0]]
    assert not (tree / "build").exists()  # the last one is clean
