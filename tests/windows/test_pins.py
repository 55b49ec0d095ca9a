"""What the bench installs is pinned to the byte, and is all that the package says it needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.one_system

HERE = Path(__file__).parent
PIN = re.compile(r"(?P<name>[\w.-]+)==(?P<version>[\w.]+) --hash=sha256:[0-9a-f]{64}")


def lines(file: str) -> list[str]:
    """The lines that say something."""
    text = (HERE / file).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned() -> dict[str, str]:
    """Each package of the Windows Python and its version."""
    found = [PIN.fullmatch(line) for line in lines("requirements.txt")]
    return {canonicalize_name(pin["name"]): pin["version"] for pin in found if pin}


def declared() -> list[str]:
    """What pyproject.toml says that the package, its backend, its tests and the bench itself need."""
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))
    own = project["project"]
    wanted = [
        *own["dependencies"],
        *own["optional-dependencies"]["nox"],
        *project["build-system"]["requires"],
    ]
    wanted += [*project["dependency-groups"]["test"], *lines("requirements.in")]
    return [one for one in wanted if is_for_windows(Requirement(one))]


def is_for_windows(requirement: Requirement) -> bool:
    """Say whether a requirement's marker, if it has one, holds on Windows."""
    return requirement.marker is None or requirement.marker.evaluate({"sys_platform": "win32"})


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-host.txt"])
def test_every_line_is_a_version_and_a_hash(file: str) -> None:
    assert lines(file)
    assert [line for line in lines(file) if not PIN.fullmatch(line)] == []


@pytest.mark.parametrize("wanted", declared())
def test_what_is_needed_is_pinned(wanted: str) -> None:
    requirement = Requirement(wanted)
    version = pinned()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version), f"{version}; python -m tests.windows.bench pin"
