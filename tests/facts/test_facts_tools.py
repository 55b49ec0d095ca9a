from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tools import TOOLS, look_for_tools
from torchbuild_tasks.model import Tool


def by_name(tools: tuple[Tool, ...]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}


def test_finds_tools_by_all_their_names(tmp_path: Path) -> None:
    door = machine(
        tmp_path,
        programs={
            "/usr/bin/cmake": "cmake version 3.25.1\n",
            "/usr/bin/ninja-build": "1.10.2\n",
            "/usr/bin/sh": "",
            "/usr/bin/mold": None,
        },
    )
    tools = by_name(look_for_tools(door))
    assert tools["cmake"] == Tool(name="cmake", path="/usr/bin/cmake", version="3.25.1", found_via="PATH")
    assert (tools["ninja"].path, tools["ninja"].version) == ("/usr/bin/ninja-build", "1.10.2")
    assert (tools["mold"].path, tools["mold"].version) == ("/usr/bin/mold", None)
    assert tools["sh"].path == "/usr/bin/sh"
    assert not any(command.startswith("/usr/bin/sh") for command in door.asked)


def test_a_miss_lists_where_we_looked(tmp_path: Path) -> None:
    tools = look_for_tools(machine(tmp_path, environ={"PATH": "/a:/b"}))
    assert [tool.name for tool in tools] == [row.name for row in TOOLS]
    assert all(tool == Tool(name=tool.name, looked=("/a", "/b")) for tool in tools)


def test_names_are_unique() -> None:
    files = [file for row in TOOLS for file in row.files]
    assert len(files) == len(set(files))
    assert len({row.name for row in TOOLS}) == len(TOOLS)


@pytest.mark.integration
def test_the_real_machine_has_a_shell() -> None:
    tools = by_name(look_for_tools(Probe(environ={"PATH": "/usr/bin:/bin"})))
    assert tools["sh"].path in ("/usr/bin/sh", "/bin/sh")
