"""Microsoft's own compiler on Windows: found by vswhere, loaded by the env file, and what it builds runs.

tests/support/visual_studio.py stands in for it where it is not: under wine, with a compiler that is not cl.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.capabilities import needs, needs_powershell, visual_studio
from tests.support.driver import environment, torchbuild
from tests.support.sample import materialise

pytestmark = [pytest.mark.integration, needs(visual_studio() is not None, "Visual Studio with MSVC")]

HELLO: Final = """\
#include <cstdio>
#include <windows.h>
int main() { std::printf("made by %d for %u bits\\n", _MSC_VER / 100, unsigned(sizeof(void *) * 8)); }
"""
COMPILE: Final = "cl /nologo /EHsc hello.cpp"


class Built(NamedTuple):
    """The sample, built and verified with the real cl.exe."""

    tree: Path
    record: Any


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, target: Path) -> Built:
    folder = tmp_path_factory.mktemp("msvc")
    tree = materialise(folder / "minitorch")
    words = ("--source", tree, "--python", target, "--yes", "--set", "USE_CUDA=0")
    done = torchbuild("build", *words, timeout=1_500, environ={"TORCHBUILD_CACHE": str(folder / "cache")})
    assert done.code == 0, (done.out + done.err)[-6_000:]
    assert "0 failed" in done.out
    return Built(tree, json.loads((tree / "build/torchbuild-record.json").read_text("utf-8")))


def test_vswhere_names_it_and_the_plan_takes_it(built: Built) -> None:
    studios = built.record["facts"]["windows"]["visual_studios"]
    assert str(visual_studio()).casefold() in [studio["path"].casefold() for studio in studios]
    choices = {choice["name"]: choice["value"] for choice in built.record["choices"]}
    assert choices["CXX"] == "cl"
    last = built.record["env"][-1]
    assert last["op"] == "load"
    assert Path(last["value"]).name == "vcvarsall.bat"
    assert last["arguments"] == ["x64", f"-vcvars_ver={choices['toolset']}"]


def test_cmake_compiled_with_that_toolset(built: Built) -> None:
    choices = {choice["name"]: choice["value"] for choice in built.record["choices"]}
    cache = (built.tree / "build/CMakeCache.txt").read_text("utf-8", errors="replace")
    (compiler,) = [line for line in cache.splitlines() if line.startswith("CMAKE_CXX_COMPILER:")]
    assert compiler.casefold().endswith("/cl.exe")
    assert f"/MSVC/{choices['toolset']}".casefold() in compiler.casefold()


def test_what_it_built_is_what_was_promised(built: Built) -> None:
    checks = built.record["verify"]["checks"]
    assert {check["outcome"] for check in checks} == {"passed", "not possible"}
    assert Path(built.record["verify"]["torch"]["file"]).is_relative_to(built.tree)


POWERSHELLS: Final = [pytest.param(name, marks=needs_powershell(name)) for name in ("pwsh", "powershell")]


@pytest.mark.parametrize("shell", ["bat", *POWERSHELLS])
def test_the_env_file_gives_a_shell_the_compiler(built: Built, tmp_path: Path, shell: str) -> None:
    """Sourced by a person, twice, then used: cl compiles a program, and the program runs."""
    kind = "bat" if shell == "bat" else "ps1"
    written = torchbuild("env", "--source", built.tree, "--env-shell", kind)
    assert written.code == 0, written.out + written.err
    file = built.tree / f"env_set.{kind}"
    (tmp_path / "hello.cpp").write_text(HELLO, encoding="utf-8")
    if kind == "bat":
        script = tmp_path / "try.bat"
        call = f'call "{file}" || exit /b 1'
        lines = ("@echo off", call, "echo %PATH%", call, "echo %PATH%", COMPILE, r".\hello.exe")
        argv: str | list[str] = f'cmd.exe /d /v:off /c "call "{script}""'
    else:
        script = tmp_path / "try.ps1"
        source = f". '{str(file).replace(chr(39), chr(39) * 2)}'"
        lines = (source, "$env:PATH", source, "$env:PATH", COMPILE, r".\hello.exe", "exit $LASTEXITCODE")
        words = ("-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File", str(script))
        argv = [shell, *words]
    encoding = "utf-8-sig" if kind == "ps1" else "utf-8"  # 5.1 takes a file without the mark for ANSI
    script.write_text("\n".join((*lines, "")), encoding=encoding, newline="\r\n")
    done = subprocess.run(
        argv, cwd=tmp_path, env=environment(), capture_output=True, timeout=300, check=False
    )
    out = done.stdout.decode(errors="replace")
    assert done.returncode == 0, out + done.stderr.decode(errors="replace")
    first, second, *rest = out.splitlines()
    assert sorted(first.split(";")) == sorted(second.split(";"))
    assert rest[-1] == "made by 19 for 64 bits"
