from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import machine, windows_machine
from tests.facts.windows_11 import CMAKE, VS_2022
from tests.support.capabilities import needs_sh
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tools import TOOLS, is_by_any_python, look_for_tools
from torchbuild_tasks.model import Tool, VisualStudio, Windows


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


def test_an_lld_that_is_there_with_its_number_alone(tmp_path: Path) -> None:
    lld = {f"/usr/bin/ld.lld-{number}": f"Debian LLD {number}.0.6\n" for number in (9, 14)}
    found = by_name(look_for_tools(machine(tmp_path, programs=lld)))["ld.lld"]
    assert (found.path, found.version) == ("/usr/bin/ld.lld-14", "14.0.6")
    both = machine(tmp_path, programs={**lld, "/usr/bin/ld.lld": "LLD 13.0.1\n"})
    assert by_name(look_for_tools(both))["ld.lld"].path == "/usr/bin/ld.lld"


def test_a_miss_lists_where_we_looked(tmp_path: Path) -> None:
    tools = look_for_tools(machine(tmp_path, environ={"PATH": "/a:/b"}))
    assert [tool.name for tool in tools] == [row.name for row in TOOLS if row.on != "windows"]
    assert all(tool == Tool(name=tool.name, looked=("/a", "/b")) for tool in tools)


def test_names_are_unique() -> None:
    files = [file for row in TOOLS for file in row.files]
    assert len(files) == len(set(files))
    assert len({row.name for row in TOOLS}) == len(TOOLS)


@needs_sh
@pytest.mark.integration
def test_the_real_machine_has_a_shell() -> None:
    tools = by_name(look_for_tools(Probe(environ={"PATH": "/usr/bin:/bin"})))
    assert tools["sh"].path in ("/usr/bin/sh", "/bin/sh")


def test_windows_is_searched_for_its_own_tools(tmp_path: Path) -> None:
    tools = by_name(look_for_tools(windows_machine(tmp_path)))
    assert {"cmake", "ninja", "git", "lld-link", "ccache", "sccache", "uv", "7z"} == set(tools)
    assert "7z" not in by_name(look_for_tools(machine(tmp_path)))


def test_what_installers_leave_off_path_is_found_where_they_put_it(tmp_path: Path) -> None:
    seven = "C:\\Program Files\\7-Zip\\7z.exe"
    banner = "\r\n7-Zip 24.08 (x64) : Copyright (c) 1999-2024 Igor Pavlov : 2024-08-11\r\n"
    windows = Windows(visual_studios=(VisualStudio(path=VS_2022, found_via="vswhere"),))
    door = windows_machine(
        tmp_path, programs={seven: banner, f"{VS_2022}\\{CMAKE}\\Ninja\\ninja.exe": "1.12.1\r\n"}
    )
    tools = by_name(look_for_tools(door, windows))
    assert tools["7z"] == Tool(name="7z", path=seven, version="24.08", found_via="Program Files")
    assert seven in door.asked  # with nothing after it: it knows no --version
    assert (tools["ninja"].version, tools["ninja"].found_via) == ("1.12.1", "Visual Studio")
    assert f"{VS_2022}\\{CMAKE}\\CMake\\bin" in tools["cmake"].looked


def test_path_comes_before_visual_studio(tmp_path: Path) -> None:
    programs = {"C:\\bin\\cmake.exe": "cmake version 4.1.0", f"{VS_2022}\\{CMAKE}\\CMake\\bin\\cmake.exe": ""}
    windows = Windows(visual_studios=(VisualStudio(path=VS_2022, found_via="vswhere"),))
    tools = by_name(look_for_tools(windows_machine(tmp_path, programs=programs), windows))
    assert (tools["cmake"].version, tools["cmake"].found_via) == ("4.1.0", "PATH")


@pytest.mark.parametrize(
    ("head", "loose"),
    [
        ("#!/usr/bin/env python3\n", True),
        ("#!python.exe\r\n", True),
        ("#!/usr/bin/python3\n", False),
        ("#!/opt/env/bin/python3.12\n", False),
        ("#!/usr/bin/env bash\n", False),
    ],
)
def test_a_script_that_any_python_starts(tmp_path: Path, head: str, loose: bool) -> None:
    path = tmp_path / "cmake"
    path.write_bytes(head.encode())
    assert is_by_any_python(Probe(), str(path)) is loose
    path.write_bytes(b"MZ\0\0#!not this\n" + head.encode() + b"PK\x03\x04rest")  # a launcher of Windows
    assert is_by_any_python(Probe(), str(path)) is loose
