"""The whole line under Windows: helpers, Visual Studio, env_set.bat, cmake, ninja, a verified torch.

A stand-in takes the place of Visual Studio and of the download hosts; everything else is
real: cmd.exe, CPython, CMake, Ninja, a compiler, py7zr's archives, HTTP on loopback.
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support import visual_studio
from tests.support.capabilities import needs_clang, needs_cmd
from tests.support.driver import environment
from tests.support.sample import ERAS, Era, in_one_era, materialise

pytestmark = [pytest.mark.integration, needs_cmd, needs_clang]

REPO = Path(__file__).resolve().parents[2]
BUCKET = "https://s3.amazonaws.com/"
ARCHIVE = "mkl_2020.2.254.7z"
HEADER = "#define __INTEL_MKL__ 2020\n"

# mkl of the classic archive, for a torch that would take wheels of several hundred megabytes.
ROW = f"""\
with-helper = ["none", "mkl-classic"]
allow-http = true

[[helper]]
name = "mkl-classic"
version = "2020.2.254"
os = "windows"
needed = "build"
urls = ["{BUCKET}ossci-windows/{ARCHIVE}"]
unpack = "7z"
holds = ["include/mkl.h"]
source = "the end-to-end test"
prepend = {{ CMAKE_INCLUDE_PATH = "{{folder}}/include", LIB = "{{folder}}/lib" }}
"""


class Station(msgspec.Struct, frozen=True, kw_only=True):
    """A workstation: its environment, its checkout, and the requests to its download host."""

    environ: dict[str, str]
    tree: Path
    asked: list[str]
    era: Era

    def run(self, *argv: str, **changes: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program of this Python from the repository, whose noxfile has the session."""
        return subprocess.run(
            [sys.executable, "-m", *argv],
            cwd=REPO,
            env={**self.environ, **changes},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=540,
            check=False,
        )

    @property
    def record(self) -> Any:
        return json.loads((self.tree / "build/torchbuild-manifest.json").read_text("utf-8"))


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode(errors="replace")


class Host(http.server.SimpleHTTPRequestHandler):
    """Serve a folder and record the requests."""

    def __init__(self, *args: Any, asked: list[str], **words: Any) -> None:
        self.asked = asked
        super().__init__(*args, **words)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()


def make_archive(folder: Path) -> None:
    """The layout that install_mkl.bat unpacks: include and lib at the top."""
    import py7zr

    source = folder / "mkl"
    for name, text in (("include/mkl.h", HEADER), ("include/omp.h", ""), ("lib/mkl_core.lib", "!<arch>\n")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, "utf-8")
    (folder / "ossci-windows").mkdir()
    with py7zr.SevenZipFile(folder / "ossci-windows" / ARCHIVE, "w") as archive:
        for part in ("include", "lib"):
            archive.writeall(source / part, part)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """Start a host on loopback; return its address and the list of requests."""
    folder, asked = tmp_path_factory.mktemp("host"), list[str]()
    make_archive(folder)
    handler = partial(Host, directory=str(folder), asked=asked)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{BUCKET}=http://127.0.0.1:{server.server_port}/", asked
        server.shutdown()


@pytest.fixture(scope="module", params=ERAS)
def station(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    mirror: tuple[str, list[str]],
    sccache: str,
) -> Station:
    """A machine with sccache and with Visual Studio in a folder with blanks and parentheses."""
    cmake, ninja = pytest.importorskip("cmake"), pytest.importorskip("ninja")
    era: Era = request.param
    folder = tmp_path_factory.mktemp(era[:2])
    programs = folder / "Program Files (x86)"
    compiler = shutil.which("clang")
    assert compiler is not None
    visual_studio.install(programs, Path(compiler))
    tree = materialise(folder / "minitorch", era=era, version="2.3.0" if era == "setuptools" else None)
    # One era has a cache: in wine its server may end itself (tests/windows/watch.py). The next compile starts
    # another, which there keeps Ninja's pipe open, and the build waits for ever.
    cache = "auto" if era == "scikit-build-core" else "none"
    (tree / "torchbuild.toml").write_text(f'cache = "{cache}"\n{ROW}', "utf-8")
    (folder / "tools").mkdir()
    shutil.copy(sccache, folder / "tools")
    # Newer ones call functions of the C runtime (crealf) that wine 8 does not have.
    (folder / "constraints.txt").write_text("numpy<2\n", "utf-8")
    environ = environment(
        {
            "PIP_CONSTRAINT": str(folder / "constraints.txt"),
            "ProgramFiles(x86)": str(programs),
            "TORCHBUILD_MIRROR": mirror[0],
            "TORCHBUILD_TRUST": str(tree),
            "TORCHBUILD_CACHE": str(folder / "cache"),
            "SCCACHE_DIR": str(folder / "sccache"),
            "NO_PROXY": "127.0.0.1",
        }
    )
    # The compiler is reached through vcvarsall.bat alone. CMake and Ninja are the programs
    # themselves: the wheels' launchers start whichever python.exe is first on PATH.
    hidden = {Path(compiler).parent, Path(sysconfig.get_path("scripts"))}
    folders = [cmake.CMAKE_BIN_DIR, ninja.BIN_DIR, str(folder / "tools"), *environ["PATH"].split(os.pathsep)]
    environ["PATH"] = os.pathsep.join(f for f in folders if Path(f) not in hidden)
    return Station(environ=environ, tree=tree, asked=mirror[1], era=era)


def test_from_nothing_to_a_verified_torch(station: Station) -> None:
    before = len(station.asked)
    done = station.run("nox", "-s", "build_cpu", "--", "--source", str(station.tree), "--yes")
    assert done.returncode == 0, said(done)[-6000:]
    assert b"0 failed" in done.stdout
    record = station.record
    assert {check["outcome"] for check in record["verify"]["checks"]} == {"passed", "not possible"}
    assert Path(record["verify"]["torch"]["file"]).is_relative_to(station.tree)
    assert station.asked[before:] == [f"/ossci-windows/{ARCHIVE}"]
    if station.era == "setuptools":
        assert not record["caches"]
        return
    (report,) = record["caches"]
    assert (report["tool"], report["hits"]) == ("sccache", {})
    assert sum(report["misses"].values()) > 20


def test_the_toolset_came_from_vswhere_and_was_loaded_last(station: Station) -> None:
    record = station.record
    (studio,) = record["facts"]["windows"]["visual_studios"]
    assert (studio["found_via"], studio["release"], studio["product"]) == ("vswhere", "17.14.5", "Community")
    choices = {choice["name"]: choice["value"] for choice in record["choices"]}
    assert (choices["toolset"], choices["CXX"]) == (visual_studio.NEWEST, "cl")
    last = record["env"][-1]
    assert (last["op"], last["arguments"]) == ("load", ["x64", f"-vcvars_ver={visual_studio.NEWEST}"])
    assert last["value"].endswith(r"VC\Auxiliary\Build\vcvarsall.bat")


def test_the_helper_is_there_pinned_and_found_by_cmake(station: Station) -> None:
    (folder,) = (Path(station.environ["TORCHBUILD_CACHE"]) / "unpacked").iterdir()
    assert folder.name.startswith("mkl-classic-2020.2.254-")  # a row of the checkout: of this address
    assert (folder / "include" / "mkl.h").read_text("utf-8") == HEADER
    assert "mkl-classic-2020.2.254" in (station.tree / "torchbuild.lock").read_text("utf-8")


def test_again_there_is_nothing_to_do_and_nothing_to_download(station: Station) -> None:
    before = len(station.asked)
    done = station.run("nox", "-s", "build_cpu", "--", "--source", str(station.tree), "--offline")
    assert done.returncode == 0, said(done)[-6000:]
    assert "Up to date" in said(done)
    assert len(station.asked) == before


def test_the_env_file_gives_cmd_what_the_build_had(station: Station) -> None:
    """Loaded twice by a person's own cmd; the second time PATH does not grow."""
    script = station.tree / "try.bat"
    lines = (
        "@echo off",
        f'call "{station.tree}\\env_set.bat" || exit /b 1',
        "echo %PATH%",
        f'call "{station.tree}\\env_set.bat" || exit /b 1',
        "echo %PATH%",
        'if not "%VCToolsVersion%"=="' + visual_studio.NEWEST + '" exit /b 3',
        "where cl",
    )
    script.write_bytes("\r\n".join((*lines, "")).encode())
    command = f'cmd.exe /d /v:off /c "call "{script}""'
    done = subprocess.run(command, env=station.environ, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, said(done)
    once, twice, *_ = done.stdout.decode().splitlines()
    assert sorted(once.split(";")) == sorted(twice.split(";"))
    assert rf"MSVC\{visual_studio.NEWEST}\bin\Hostx64\x64\cl.exe" in said(done)


def test_an_older_toolset_needs_a_clean_and_gets_it(station: Station) -> None:
    words = ("build", "--source", str(station.tree), "--toolset", "14.38")
    plan = station.run("torchbuild_tasks.fronts.console", "plan", *words[1:], "--json")
    freshness = json.loads(plan.stdout)["freshness"]
    assert freshness["needs"] == "clean"
    assert "toolset" in [change["name"] for change in freshness["changes"]]


@in_one_era("station")
def test_a_broken_source_shows_the_first_error(station: Station) -> None:
    done = station.run(
        "torchbuild_tasks.fronts.console",
        "build",
        "--source",
        str(station.tree),
        "--set",
        "BUILD_BREAK=aten/src/ATen/matmul.cpp",
        "--yes",
    )
    assert done.returncode == 6, said(done)[-6000:]
    assert "error:" in said(done)
