"""Real linkers before and in a build: each that is here, one that is broken, one that is not called."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import needs, needs_gcc, needs_linux_compiler, needs_lld, needs_mold
from tests.support.driver import environment, torchbuild
from tests.support.machines import linux_facts, plan_of, tool
from tests.support.preflight import CXX, RecordingReporter
from tests.support.sample import materialise
from torchbuild_tasks.build.preflight import try_linker
from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.facts.tools import look_for_tools
from torchbuild_tasks.model import BuildPlan, Tool
from torchbuild_tasks.values import replace

pytestmark = [pytest.mark.integration, needs_linux_compiler]
needs_gold = needs(shutil.which("ld.gold") is not None, "gold")
VERSION = "12.2.0"


@pytest.fixture
def tried(tmp_path: Path) -> Callable[..., tuple[str, RecordingReporter]]:
    """Plan with the linkers of this machine (or these) and try the one that is chosen."""

    def run(*tools: Tool, **flags: Any) -> tuple[str, RecordingReporter]:
        said = RecordingReporter()
        return try_linker(plan(tmp_path, *tools, **flags), said), said

    return run


def plan(root: Path, *tools: Tool, environ: dict[str, str] | None = None, **flags: Any) -> BuildPlan:
    facts = linux_facts(compilers=(tool("g++", VERSION, CXX),), environ=environ or {})
    seen = tools or look_for_tools(Probe(environ=dict(os.environ)))
    facts = replace(facts, tools=(*facts.tools, *seen), tree=replace(facts.tree, root=str(root)))
    return plan_of(facts, **flags)


def script(folder: Path, name: str, text: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
    path.chmod(0o755)
    return str(path)


# ---------------------------------------------------------------- the trial


@needs_gcc
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("lld", marks=needs_lld),
        pytest.param("mold", marks=needs_mold),
        pytest.param("gold", marks=needs_gold),
        "bfd",
    ],
)
def test_each_links_and_is_really_called(
    tried: Callable[..., tuple[str, RecordingReporter]], name: str
) -> None:
    problem, said = tried(linker=name)
    assert problem == ""
    (note,) = said.notes
    assert "linked and ran a library and a program with" in note
    assert any(f"-fuse-ld={name}" in argv for argv in said.commands)


@needs_gcc
@needs_lld
def test_one_in_a_place_of_its_own(
    tried: Callable[..., tuple[str, RecordingReporter]], tmp_path: Path
) -> None:
    """With -B and a folder without ld a compiler silently uses its default linker."""
    place = tmp_path / "place/ld.lld-99"
    place.parent.mkdir()
    place.symlink_to(Path(str(shutil.which("ld.lld"))).resolve())
    assert tried(linker=str(place))[0] == ""
    assert (tmp_path / ".torchbuild/linker/ld").readlink() == place
    place.unlink()
    with pytest.raises(PreflightFailed, match="is not a program"):
        tried(linker=str(place))


@needs_gcc
def test_one_that_is_another_is_seen(
    tried: Callable[..., tuple[str, RecordingReporter]], tmp_path: Path
) -> None:
    other = tmp_path / "place/ld.mold"
    other.parent.mkdir()
    other.symlink_to(Path(str(shutil.which("ld"))).resolve())
    with pytest.raises(PreflightFailed, match="the compiler called another linker") as caught:
        tried(linker=str(other))
    assert caught.value.exit_code == 13
    assert "--linker default" in caught.value.next_step


@needs_gcc
@needs_lld
def test_flags_that_it_cannot_do(tried: Callable[..., tuple[str, RecordingReporter]]) -> None:
    """lld cannot read what GCC leaves for its own link-time optimisation."""
    problem, said = tried(environ={"CXXFLAGS": "-flto -fno-fat-lto-objects"})
    assert "it does not link here" in problem
    (note,) = said.notes
    assert note.endswith("the build continues without it.")


@needs_gcc
def test_one_that_fails(tried: Callable[..., tuple[str, RecordingReporter]], tmp_path: Path) -> None:
    broken = script(tmp_path / "bin", "ld.lld-7", "import sys; sys.exit('ld.lld: error: cannot map this')")
    problem, said = tried(tool("ld.lld", "7.0.1", broken))
    assert problem.startswith("it does not link here (g++ ended with exit code 1: ld.lld: error: cannot map")
    with pytest.raises(PreflightFailed) as caught:
        tried(linker=broken)
    assert "cannot map this" in "\n".join(caught.value.looked)


@needs_lld
def test_the_env_file_alone_has_its_linker_too(tmp_path: Path, target: Path) -> None:
    tree, lld = materialise(tmp_path / "minitorch"), Path(str(shutil.which("ld.lld"))).resolve()
    done = torchbuild("env", "--source", tree, "--python", target, "--linker", lld)
    assert done.code == 0, done.err
    assert f"-B{tree}/.torchbuild/linker" in (tree / "env_set.sh").read_text("utf-8")
    assert (tree / ".torchbuild/linker/ld").readlink() == lld


# ---------------------------------------------------------------- a whole build


@needs_lld
@pytest.mark.slow
def test_a_build_goes_on_with_the_next_linker(tmp_path: Path, target: Path) -> None:
    """A broken lld stands first on PATH; what is linked, recorded and written is the next one's."""
    script(tmp_path / "bin", "ld.lld", "import sys; sys.exit('ld.lld: error: broken')")
    script(tmp_path / "bin", "ld.mold", "import sys; sys.exit('ld.mold: error: broken too')")
    tree = materialise(tmp_path / "minitorch")
    path = f"{tmp_path / 'bin'}{os.pathsep}{environment()['PATH']}"
    place = ("--source", str(tree), "--python", str(target))
    done = torchbuild("build", *place, "--yes", environ={"PATH": path})
    assert done.code == 0, done.out + done.err
    assert "The linker lld does not link here" in done.err
    assert "-fuse-ld" not in (tree / "env_set.sh").read_text("utf-8")

    again = torchbuild("plan", *place, "--json", environ={"PATH": path})
    assert '"needs": "nothing"' in again.out
    done = torchbuild("build", *place, "--linker", "lld", "--yes", environ={"PATH": path})
    assert done.code == 13
    assert "broken" in done.err

    done = torchbuild("build", *place, "--linker", "lld", "--yes")
    assert done.code == 0, done.out + done.err
    library = next((tree / "build").rglob("lib*.so"))
    assert b"LLD" in library.read_bytes()
    log = (tree / ".torchbuild/logs/build.log").read_text("utf-8")
    assert "Linking CXX shared library" in log
    assert "Building CXX object" not in log
