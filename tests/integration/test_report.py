"""The report of a tree that a real Ninja built, and its notes about missing data."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.capabilities import POSIX, needs
from tests.support.machines import linux_facts, plan_of
from torchbuild_tasks.build.history import Pace, keep, ninja_graph, recall
from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.errors import NotBuilt, TorchbuildError, UsageError
from torchbuild_tasks.features.manifest.act import start_manifest
from torchbuild_tasks.features.report.verb import ReportFiles, make_report
from torchbuild_tasks.model import Choice, Cpu, Host, Memory
from torchbuild_tasks.model.record import MANIFEST_FILE, RECORD_FILE, StageTime
from torchbuild_tasks.options import BuildRequest
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.values import replace, to_json

pytestmark = [
    pytest.mark.integration,
    needs(shutil.which("ninja") is not None, "ninja"),
    needs(POSIX, "sleep and touch"),
]
RULES = """rule step
  command = sleep $time && touch $out
build gen/ops.h: step
  time = 0.05
build x.dir/a&b.cpp.o: step || gen/ops.h
  time = 0.30
build x.dir/<c>.cpp.o: step || gen/ops.h
  time = 0.01
build lib/libx.so: step x.dir/a&b.cpp.o x.dir/<c>.cpp.o
  time = 0.02
"""
GIB = 1 << 30
OLD_RECORD = Path(__file__).parents[1] / "features/manifest/record-schema-1.json"


def ninja(build: Path, *words: str) -> str:
    done = subprocess.run(["ninja", "-j2", *words], cwd=build, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build = tmp_path / "tree" / "build"
    build.mkdir(parents=True)
    (build / "build.ninja").write_text(RULES, "utf-8")
    return tmp_path / "tree"


def record(root: Path, **changes: Any) -> None:
    host, memory = Host(os="linux", arch="x86_64"), Memory(total=8 * GIB)
    facts = linux_facts(host=host, cpu=Cpu(cores=2), memory=memory)
    question = Question(BuildRequest(), facts, load_catalog())
    started = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = replace(
        start_manifest(question, plan_of(facts), "tests 1", started=started, result="ok"),
        choices=tuple(
            Choice(name=name, value=value, because="asked for")
            for name, value in (("torch", "2.1.0"), ("CXX", "g++"))
        ),
        stages=(StageTime(stage="compile", seconds=0.5, result="ok"),),
    )
    text = json.dumps({**to_json(manifest), **changes})
    (root / "build" / MANIFEST_FILE).write_text(text, "utf-8")


def made(root: Path, **changes: Any) -> tuple[ReportFiles, str]:
    values: dict[str, Any] = {"out": None, "trace": None, **changes}
    files = make_report(root, root / "build", **values)
    return files, files.page.read_text("utf-8")


def data(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    return found


def test_a_real_build(root: Path, tmp_path: Path) -> None:
    record(root)
    ninja(root / "build")
    trace = tmp_path / "sub" / "trace.json"
    files, page = made(root, out=tmp_path / "page.html", trace=trace)
    assert (files.page, files.trace, files.steps, files.notes) == (tmp_path / "page.html", trace, 4, ())
    assert "Build of torch 2.1.0" in page and "linux, 2 cores, 8 GiB" in page
    assert "a&amp;b.cpp" in page and "&lt;c&gt;.cpp" in page and "<c>" not in page
    chain = [row[0] for row in data(page)["steps"] if row[5]]
    assert chain == ["gen/ops.h", "x.dir/a&b.cpp.o", "lib/libx.so"]
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == 5  # four steps and a stage


@pytest.mark.slow
def test_only_the_recorded_build_is_shown(root: Path) -> None:
    ninja(root / "build", "gen/ops.h")
    time.sleep(5)  # more than the slack for whole seconds on both sides
    record(root)
    ninja(root / "build")
    files, page = made(root)
    assert files.steps == 3 and "gen/ops.h" not in {row[0] for row in data(page)["steps"]}
    assert files.page == root / ".torchbuild" / "report.html"


def test_without_a_record(root: Path) -> None:
    ninja(root / "build")
    files, page = made(root)
    assert files.steps == 4
    assert any("no manifest" in note for note in files.notes) and "There is no manifest of this build" in page


@pytest.mark.parametrize("text", ["{", "[]", '{"stages": 3, "started": "soon", "facts": []}'])
def test_a_damaged_record_is_no_obstacle(root: Path, text: str) -> None:
    ninja(root / "build")
    (root / "build" / "torchbuild-manifest.json").write_text(text, "utf-8")
    assert made(root)[0].steps == 4


def test_a_log_that_was_cut_off_says_so(root: Path) -> None:
    ninja(root / "build")
    log = root / "build" / ".ninja_log"
    log.write_bytes(log.read_bytes()[:-12])
    files, _ = made(root)
    assert files.steps == 3 and any("could not be read" in note for note in files.notes)


@pytest.mark.parametrize(
    ("log", "words", "error"),
    [
        (None, "cannot be read", NotBuilt),
        ("", "not a log of Ninja", UsageError),
        ("# ninja log v3\n1\t2\t3\ta\tb\n", "version 3", UsageError),
        ("# ninja log v7\n", "has no steps", NotBuilt),
        ("# ninja log v7\n1\t2", "has no steps", UsageError),
    ],
    ids=["none", "empty", "another version", "no steps", "cut off"],
)
def test_no_log_is_one_clear_error(
    root: Path, log: str | None, words: str, error: type[TorchbuildError]
) -> None:
    if log is not None:
        (root / "build" / ".ninja_log").write_text(log, "utf-8")
    with pytest.raises(error) as caught:
        made(root)
    assert words in caught.value.what and ".ninja_log" in caught.value.what and caught.value.next_step


def test_without_ninjas_graph_the_times_are_read(root: Path) -> None:
    ninja(root / "build")
    (root / "build" / "build.ninja").unlink()
    assert ninja_graph(root / "build") is None
    assert "because Ninja's graph could not be read" in made(root)[1].replace("&#x27;", "'")


def test_the_next_build_is_compared_and_timed(root: Path) -> None:
    """What `keep` takes in, the page compares with and the estimate starts from."""
    store, build = root / ".torchbuild" / "store", root / "build"
    started = time.time()
    ninja(build)
    assert keep(store, root, "g++", build, started=started, finished="2026-01-01T00:00:00+00:00") == ""
    history = recall(store, root, "g++")
    assert len(history.builds) == 1 and history.steps["x.dir/a&b.cpp.o"][0] >= 0.3
    ninja(build, "-t", "clean")
    pace = Pace(build, history)
    assert pace.seconds_left() is None
    record(root)
    output = ninja(build)
    assert pace.read_output(output.encode()) == 0.0
    page = made(root)[1]
    assert "Against the time before" in page and data(page)["compares"]
    assert "Builds before" in page and "2026-01-01 00:00:00 UTC" in page


def test_caches_and_memory_come_from_the_manifest(root: Path) -> None:
    ninja(root / "build")
    ccache = {"tool": "ccache", "hits": {"C/C++": 7}, "misses": {"C/C++": 1}}
    record(root, caches=[ccache], peaks=[{"kind": "C++", "bytes": 3 * GIB, "count": 8}])
    page = made(root)[1]
    assert "7 of 8 compiles" in page and "3.00 GiB" in page
    record(root, schema=99)
    files, page = made(root)
    assert "Peak memory" not in page
    assert any("has schema 99" in note for note in files.notes)


def test_a_tree_that_0_1_0_has_built(root: Path) -> None:
    ninja(root / "build")
    shutil.copy(OLD_RECORD, root / "build" / RECORD_FILE)
    files, page = made(root)
    assert "Build of torch 2.14.0a0" in page and "Peak memory" in page
    assert not any("manifest" in note for note in files.notes)


def test_a_build_that_cannot_be_remembered_is_a_line(root: Path) -> None:
    assert keep(root / "store", root, "g++", root / "build", started=0.0, finished="") == "", (
        "CMake alone ran"
    )
    (root / "build").mkdir(exist_ok=True)
    (root / "build/.ninja_log").write_text("not Ninja's", "utf-8")
    problem = keep(root / "store", root, "g++", root / "build", started=0.0, finished="")
    assert problem.startswith("The step times are not remembered: ") and "\n" not in problem
