"""What checkouts ask their builders to install, in the way of each era."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tree import build_requirements

PROBE = Probe(environ={})


def test_a_dependency_group_counts_before_requirements_txt(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n", "utf-8")
    groups = {
        "build": ["setuptools>=77,<82", "ninja"],
        "dev": [{"include-group": "build"}, "ninja", "sympy>=1.13.3", {"other": "thing"}, 3],
    }
    asked = build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups})
    assert asked == ("setuptools>=77,<82", "ninja", "sympy>=1.13.3")


def test_requirements_txt_with_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "# Python dependencies\n-r requirements-build.txt\n--index-url https://example.org\n\n"
        "build[uv]  # for wheels\nlintrunner ; platform_machine != 's390x'\nsix --hash=sha256:00\n",
        "utf-8",
    )
    (tmp_path / "requirements-build.txt").write_text("setuptools>=70.1.0\n-r requirements.txt\n", "utf-8")
    assert build_requirements(PROBE, str(tmp_path), {}) == (
        *("setuptools>=70.1.0", "build[uv]", "lintrunner ; platform_machine != 's390x'", "six"),
    )


@pytest.mark.parametrize("groups", [None, [], {"docs": ["sphinx"]}])
def test_a_checkout_without_either_asks_for_nothing(tmp_path: Path, groups: object) -> None:
    assert build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups}) == ()


def test_a_group_that_includes_itself_ends(tmp_path: Path) -> None:
    groups = {"dev": ["numpy", {"include-group": "dev"}]}
    assert build_requirements(PROBE, str(tmp_path), {"dependency-groups": groups}) == ("numpy",)
