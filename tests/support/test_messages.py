"""The list of messages recognises the calls that make one."""

from __future__ import annotations

import ast

import pytest

from tests.support.messages import error_classes, name_of, sites
from torchbuild_tasks.errors import UsageError


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise UsageError("There is no such flag.", next_step=advice)', ["UsageError"]),
        ('Finding.warn("x", f"{a} is old", fix)', ["Finding"]),
        ("Finding(id=id, status=status, text=text)", ["Finding"]),
        ('report.note(f"{n} files")', ["note"]),
        ("report.note(text)", []),  # worded elsewhere
        ('print("not of ours")', []),
    ],
)
def test_what_makes_a_message(source: str, found: list[str]) -> None:
    assert [name_of(call) for call in sites(ast.parse(source), error_classes())] == found
    assert UsageError.__name__ in error_classes()
