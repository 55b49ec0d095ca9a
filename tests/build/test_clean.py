"""Which editable install a clean takes away: the one of this checkout, and no other."""

from __future__ import annotations

import pytest

from tests.support.machines import base_python, linux_facts, python
from torchbuild_tasks.build.clean import uninstall_command


@pytest.mark.parametrize("folder", ["/src/pytorch", "/src/pytorch/"])
def test_the_editable_install_of_this_checkout(folder: str) -> None:
    facts = linux_facts(pythons=(base_python(), python(torch_from=folder)))
    command = uninstall_command(facts)
    assert command is not None
    assert command.argv == ("/venv/bin/python", "-m", "pip", "uninstall", "--yes", "torch")
    assert "/venv" in command.because


@pytest.mark.parametrize("folder", [None, "/src/pytorch2", "/src", "/home/me/pytorch"])
def test_any_other_torch_stays(folder: str | None) -> None:
    assert uninstall_command(linux_facts(pythons=(python(torch_from=folder),))) is None
