"""What an environment lacks of what is asked for."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.build.installed import find_missing, read_requirements
from torchbuild_tasks.system import process

HAVE = {
    "numpy": {"version": "2.1.0", "asks": []},
    "SymPy": {"version": "1.13.1", "asks": ["mpmath<1.4,>=1.1.0", "pytest; extra == 'dev'"]},
    "triton": {"version": "3.0.0", "asks": ["torch"]},
    "torch": {"version": "2.0.0", "asks": ["triton==3.0.0; platform_system != 'Plan 9'"]},
    "Typing_Extensions": {"version": "4.12", "asks": []},
    "broken": {"version": None, "asks": []},
    "early": {"version": "1.0rc1", "asks": []},
}


def missing(*asks: str, answer: str = json.dumps(HAVE), version: str = "3.11.7") -> tuple[str, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "capture", lambda *_, **__: SimpleNamespace(stdout=answer.encode()))
        return find_missing("/v/bin/python", version, asks)


@each_case(
    "asked, lacks",
    [
        ("numpy", False),
        ("NumPy>=2", False),
        ("numpy<2", True),
        ("typing-extensions", False),  # which is recorded in another spelling
        ("absent", True),
        ("absent; python_version < '3.8'", False),
        ("absent; extra == 'opt'", False),
        ("numpy[all]", True),  # what an extra brings is not looked at
        ("sympy>=1.13", True),  # mpmath is not there
        ("triton", False),  # which asks for what asks for it
        ("broken", True),
        ("early>=1.0rc1", False),
        ("no requirement at all", False),
    ],
)
def test_a_requirement_is_met_with_all_that_it_asks_for(asked: str, lacks: bool) -> None:
    assert missing(asked) == ((asked,) if lacks else ())


def test_the_version_of_the_python_decides_and_ours_where_it_is_unknown() -> None:
    asked = ("absent; python_version < '3.8'",)
    assert missing(*asked, version="3.7.1") == asked
    assert missing(*asked, version="") == ()


def test_of_a_python_that_does_not_answer_nothing_is_taken_for_there() -> None:
    for answer in ("", "Traceback", "[]", '{"numpy": 1}'):
        assert missing("numpy", "absent", answer=answer) == ("numpy", "absent")


def test_the_requirements_of_a_wheel(tmp_path: Path) -> None:
    lines = (
        "Name: torch\nRequires-Dist: numpy\nRequires-Dist: x; extra == 'y'\n\nRequires-Dist: a description\n"
    )
    with zipfile.ZipFile(tmp_path / "torch-1-py3-none-any.whl", "w") as archive:
        archive.writestr("torch-1.dist-info/METADATA", lines)
    assert read_requirements(tmp_path / "torch-1-py3-none-any.whl") == ("numpy", "x; extra == 'y'")
