"""The folder in which a linker is called ld, and what a trial of a linker says of the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capabilities import needs_symlinks
from tests.support.machines import linux_facts, plan_of
from tests.support.preflight import RecordingReporter
from torchbuild_tasks.build.preflight import link_linker, try_linker
from torchbuild_tasks.errors import PreflightFailed
from torchbuild_tasks.model import LinkerPlan, LinkTrial
from torchbuild_tasks.system import process
from torchbuild_tasks.system.process import Captured
from torchbuild_tasks.values import replace


@needs_symlinks
def test_the_link_leads_to_the_program_of_the_plan(tmp_path: Path) -> None:
    folder = tmp_path / ".torchbuild/linker"
    for name in ("one", "other", "other"):
        (tmp_path / name).write_bytes(b"")
        link_linker(tmp_path, folder, tmp_path / name)
        assert (folder / "ld").resolve() == tmp_path / name
    assert [path.name for path in folder.iterdir()] == ["ld"]


@needs_symlinks
def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / ".torchbuild").mkdir()
    (tmp_path / ".torchbuild/MARKER").write_text("ours", "utf-8")
    (tmp_path / ".torchbuild/linker").write_bytes(b"a file")
    with pytest.raises(PreflightFailed, match="cannot be written"):
        link_linker(tmp_path, tmp_path / ".torchbuild/linker", tmp_path / "ld")


@pytest.mark.parametrize("compiles", [True, False])
def test_a_compiler_that_fails_without_a_link_is_no_fault_of_the_linker(
    compiles: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("/usr/bin/g++", "-fuse-ld=lld", "-shared", "-o", "x.so", "x.cpp")
    trial = LinkTrial(sources={"x.cpp": ""}, commands=(words,), run=("./x",), library="x.so")
    linker = LinkerPlan(name="lld", tool="ld.lld", program="/usr/bin/ld.lld", trial=trial)
    plan = replace(plan_of(linux_facts()), source=str(tmp_path), linker=linker)

    def fails(argv: tuple[str, ...], **_: object) -> Captured:
        return Captured(rc=0 if compiles and argv[-1] == "-c" else 1, stdout=b"", stderr=b"no disk")

    monkeypatch.setattr(process, "capture", fails)
    if compiles:
        assert "g++ ended with exit code 1" in try_linker(plan, RecordingReporter())
        return
    with pytest.raises(PreflightFailed, match="does not compile a file of a few lines") as caught:
        try_linker(plan, RecordingReporter())
    assert caught.value.looked == ("no disk", "$ /usr/bin/g++ -shared -o x.so x.cpp -c")
