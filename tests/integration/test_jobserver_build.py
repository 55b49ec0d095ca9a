"""The compile stage with its jobserver, with real Ninja, a small project and faults of the jobserver."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from tests.integration.test_jobserver import NINJA, needs_ninja_1_13
from tests.support.capabilities import needs_fifo
from tests.support.machines import linux_facts, plan_of, tool
from tests.support.preflight import RecordingReporter, ledger_of
from torchbuild_tasks.build.compile import run_build
from torchbuild_tasks.build.work import Fetching, Work
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Command
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.system.net.client import Net
from torchbuild_tasks.values import replace

pytestmark = [pytest.mark.integration, needs_ninja_1_13]


def work_on(tree: Path, program: str) -> tuple[Work, RecordingReporter]:
    """A planned build of three steps, each of which runs the Python program with its output as argument."""
    build = tree / "build"
    build.mkdir()
    (tree / "step.py").write_text(program, "utf-8")
    command = f'"{sys.executable}" "{tree / "step.py"}" $out'
    lines = ["rule one", f"  command = {command}", *(f"build {number}.o: one" for number in range(3))]
    (build / "build.ninja").write_text("\n".join(lines) + "\n", "utf-8")
    request, facts, said = BuildRequest(), linux_facts(tools=(tool("ninja", "1.13.2"),)), RecordingReporter()
    plan = replace(
        plan_of(facts),
        source=str(tree),
        build_dir=str(build),
        compile=Command(argv=(str(NINJA), "-k", "0"), cwd=str(build), because=""),
    )
    assert plan.jobserver is not None
    catalog = load_catalog()
    fetching = Fetching(store=tree, lock_file=tree / "lock", net=Net(), require_hashes=False)
    work = Work(
        question=Question(request, facts, catalog),
        plan=plan,
        report=said,
        ledger=ledger_of(request, facts, plan, tree),
        fetching=fetching,
        environ={**os.environ, "PATH": str(Path(str(NINJA)).parent), "MAX_JOBS": "4"},
    )
    return work, said


def outputs(tree: Path) -> list[str]:
    return [(tree / f"build/{number}.o").read_text("utf-8").strip() for number in range(3)]


SAYS = """
import os, sys
text = f"{os.environ.get('MAX_JOBS', '')} {os.environ.get('MAKEFLAGS', '')}"
open(sys.argv[1], "w").write(text)
"""


def test_the_build_gets_tokens_and_no_number(tmp_path: Path) -> None:
    work, said = work_on(tmp_path, SAYS)
    with work.ledger:
        run_build(work, work.plan.compile)
    wanted = "--jobserver-auth=" + ("torchbuild-jobs-" if sys.platform == "win32" else "fifo:")
    assert all(line.startswith(wanted) for line in outputs(tmp_path))
    assert work.ledger.manifest.jobserver is not None and work.ledger.manifest.jobserver.most == 8
    assert said.notes == []  # it had nothing to do about memory


@needs_fifo
def test_a_tree_that_was_configured_with_an_old_ninja_gets_the_number(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    work, said = work_on(tmp_path, SAYS)
    old = tmp_path_factory.mktemp("machine") / "ninja"  # one in the checkout is not run
    old.write_text("#!/bin/sh\necho 1.11.1\n", "ascii")
    old.chmod(stat.S_IRWXU)
    (tmp_path / "build/CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={old}\n", "ascii")
    with work.ledger:
        run_build(work, work.plan.compile)
    assert outputs(tmp_path) == ["4"] * 3
    assert said.notes == [f"Without a jobserver, with 4 jobs: {old} is ninja 1.11.1, and >=1.13 is needed."]


@needs_fifo
def test_an_old_ninja_on_path_gets_the_number_for_the_short_way_calls_it(tmp_path: Path) -> None:
    work, said = work_on(tmp_path, SAYS)
    old = tmp_path / "ninja"
    old.write_text("#!/bin/sh\necho 1.11.1\n", "ascii")
    old.chmod(stat.S_IRWXU)
    (tmp_path / "build/CMakeCache.txt").write_text(f"CMAKE_MAKE_PROGRAM:FILEPATH={NINJA}\n", "ascii")
    work = replace(work, environ={**(work.environ or {}), "PATH": str(tmp_path)})
    with work.ledger:
        run_build(work, work.plan.compile)
    assert said.notes == [f"Without a jobserver, with 4 jobs: {old} is ninja 1.11.1, and >=1.13 is needed."]


@needs_fifo
def test_without_a_place_for_tokens_it_builds_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, said = work_on(tmp_path, SAYS)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with work.ledger:
        run_build(work, work.plan.compile)
    assert outputs(tmp_path) == ["4"] * 3
    (note,) = said.notes
    assert note.startswith("Without a jobserver, with 4 jobs: ") and "nowhere" in note


MAKE_4_3 = """
import os, sys
if "jobserver-auth" in os.environ.get("MAKEFLAGS", ""):
    sys.exit("make: *** internal error: invalid --jobserver-auth string 'fifo:/x'.  Stop.")
open(sys.argv[1], "w").write(os.environ["MAX_JOBS"])
"""


def test_a_program_that_breaks_on_the_jobserver_gets_none(tmp_path: Path) -> None:
    work, said = work_on(tmp_path, MAKE_4_3)
    with work.ledger:
        run_build(work, work.plan.compile)
    assert outputs(tmp_path) == ["4"] * 3
    assert said.notes[-1].startswith("Continuing without a jobserver, with 4 jobs: make: *** internal error")


KILLED = """
import os, sys
first = os.path.join(os.path.dirname(__file__), "killed")
if not os.path.exists(first):
    open(first, "w").close()
    sys.exit("g++: fatal error: Killed signal terminated program cc1plus")
open(sys.argv[1], "w").write("done")
"""


def test_a_compile_that_is_killed_all_the_same_is_made_again_with_fewer_tokens(tmp_path: Path) -> None:
    work, said = work_on(tmp_path, KILLED)
    with work.ledger:
        run_build(work, work.plan.compile)
    assert outputs(tmp_path) == ["done"] * 3
    (note,) = said.notes
    assert "ran out of memory" in note and note.endswith("with 4 jobs, not 8.")
    assert work.ledger.manifest.jobserver is not None
    assert (work.ledger.manifest.jobserver.most, work.ledger.manifest.jobserver.fewest) == (8, 4)
