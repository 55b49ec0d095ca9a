"""The history on disk, and the follower of a log that grows."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchbuild_tasks.build.history import (
    NINJA_LOG,
    Follower,
    Pace,
    history_file,
    longest_build,
    ninja_graph,
    read_history,
    read_peaks,
    write,
)
from torchbuild_tasks.catalog.rows import StepCostRow
from torchbuild_tasks.model.history import PEAKS, History, PastBuild, PastPeak, PastPeaks
from torchbuild_tasks.ninja.build_file import BuildFile, Edge

SOURCE = Path("/src/pytorch")
HEAD = "# ninja log v7\n"


def history() -> History:
    return History(
        source=str(SOURCE),
        compiler="g++",
        steps={"a.cpp.o": (1.5, 2.5), "é\udcff.o": (0.25,)},
        builds=(PastBuild(finished="2026-01-01T00:00:00+00:00", seconds=9.5, steps=2),),
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = history_file(tmp_path / "store", SOURCE, "g++")
    assert write(path, history()) == ""
    assert read_history(path, SOURCE, "g++") == history()
    assert path.parent == tmp_path / "store" / "history"


def test_the_longest_build_is_of_this_checkout_else_of_its_release(tmp_path: Path) -> None:
    builds = {"own": ("2.6.0a0", 5.0), "worktree": ("2.6.1", 90.0), "older": ("2.5.0a0", 900.0)}
    for name, (version, seconds) in builds.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "version.txt").write_text(f"{version}\n", "utf-8")
        build = PastBuild(finished="", seconds=seconds, steps=2)
        path = history_file(tmp_path, tmp_path / name, "g++")
        write(path, History(source=str(tmp_path / name), builds=(build,)))
    found = longest_build(tmp_path, tmp_path / "own")
    assert found and found.seconds == 5.0
    history_file(tmp_path, tmp_path / "own", "g++").unlink()
    found = longest_build(tmp_path, tmp_path / "own")
    assert found and found.seconds == 90.0
    assert longest_build(tmp_path, tmp_path / "nowhere") is None


def test_a_history_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(
        '{"schema": 1, "jobs": 4, "after": {"a.o": [0.0, 3.0]}, "steps": {"a.o": [1.5]}}', "utf-8"
    )
    assert read_history(path, SOURCE, "g++") == History(steps={"a.o": (1.5,)})


def test_the_memory_that_was_taken_is_read_back(tmp_path: Path) -> None:
    peak = PastPeak(source="/src", build_type="Debug", kind="C++", bytes=3, count=9)
    assert read_peaks(tmp_path) == PastPeaks()
    assert write(tmp_path / PEAKS, PastPeaks(peaks=(peak,))) == ""
    assert read_peaks(tmp_path).peaks == (peak,)


def test_checkouts_and_compilers_are_apart(tmp_path: Path) -> None:
    paths = {history_file(tmp_path, Path(source), cxx) for source in ("/a", "/b") for cxx in ("g++", "clang")}
    assert len(paths) == 4


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 99}', '{"schema": 1, "steps": {"a": "x"}}', '{"future": 1}', "\0\0"]
)
def test_what_cannot_be_read_counts_as_not_there(tmp_path: Path, text: str) -> None:
    path = tmp_path / "history.json"
    path.write_text(text, "utf-8")
    assert read_history(path, SOURCE, "g++") == History(source=str(SOURCE), compiler="g++")


def test_a_folder_that_cannot_be_made_is_reported_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file", "utf-8")
    problem = write(history_file(tmp_path / "store", SOURCE, "g++"), history())
    assert problem.startswith("What this build took is not remembered: ") and "\n" not in problem


def test_a_log_is_followed_from_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / ".ninja_log"
    path.write_bytes((HEAD + "1\t2\t3\told.o\taa\n").encode())
    follower = Follower(path)
    assert follower.new() == ""
    with path.open("ab") as file:
        file.write(b"1\t5\t9\tnew.o\taa\n1\t6\t9\thal")
    assert follower.new() == "1\t5\t9\tnew.o\taa\n"
    with path.open("ab") as file:
        file.write(b"f.o\taa\n")
    assert follower.new() == "1\t6\t9\thalf.o\taa\n"
    assert follower.new() == ""
    assert follower.head == HEAD.strip()


def test_a_log_that_comes_later(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "build" / ".ninja_log")
    assert (follower.new(), follower.head) == ("", "")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / ".ninja_log").write_bytes((HEAD + "1\t5\t9\tnew.o\taa\n").encode())
    assert follower.new().splitlines()[-1] == "1\t5\t9\tnew.o\taa"


def test_a_log_that_is_made_shorter_tells_nothing_old_again(tmp_path: Path) -> None:
    path = tmp_path / ".ninja_log"
    old = [f"{n}\t{n + 1}\t3\tf{n}.o\taa\n" for n in range(50)]
    path.write_bytes((HEAD + "".join(old)).encode())
    follower = Follower(path)
    path.write_bytes((HEAD + "".join(old[40:]) + "1\t5\t9\tnew.o\taa\n").encode())
    assert follower.new() == "1\t5\t9\tnew.o\taa\n"


def test_a_log_that_is_removed_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / ".ninja_log"
    path.write_bytes((HEAD + "1\t2\t3\tlong-old-name.o\taa\n").encode())
    follower = Follower(path)
    path.unlink()
    assert follower.new() == ""
    path.write_bytes((HEAD + "1\t5\t9\tnew.o\taa\n").encode())
    assert "new.o" in follower.new()


def test_a_long_first_build_is_looked_up_in_the_graph_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def graph(folder: Path) -> BuildFile:
        asked.append(folder)
        objects = tuple(f"a/CMakeFiles/a.dir/{n}.cpp.o" for n in range(150))
        others = tuple(Edge(outputs=(f"b/CMakeFiles/b.dir/{n}.cpp.o",)) for n in range(900))
        a = Edge(outputs=("a",), inputs=objects, phony=True)
        return BuildFile(edges=(*(Edge(outputs=(name,)) for name in objects), a, *others))

    monkeypatch.setattr("torchbuild_tasks.build.history.ninja_graph", graph)
    now = [0.0]
    row = StepCostRow(path="", kind="C++", seconds=5.0, source="")
    pace = Pace(tmp_path, History(), (row,), target="a", clock=lambda: now[0])
    pace.read_output(b"[1/4] Generating x\n")  # of CMake's own run: too short to ask for
    assert asked == []
    lines = (f"{n}000\t{n + 2}000\t0\ta/CMakeFiles/a.dir/{n}.cpp.o\t{n:x}\n" for n in range(3))
    (tmp_path / NINJA_LOG).write_text(f"# ninja log v5\n{''.join(lines)}", "utf-8")
    now[0] = 4.0
    line = b"[3/150] Building CXX object a/CMakeFiles/a.dir/2.cpp.o\n"
    pace.read_output(line)
    said = pace.read_output(line)
    assert asked == [tmp_path]  # the steps of other targets are not waited for
    assert said == pytest.approx(147 * 2.0 * 4.0 / 6.0) and pace.spread > 1.5


@pytest.mark.parametrize(("target", "left"), [("", 0), ("c10", 1)])
def test_after_one_target_the_rest_of_the_tree_is_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, left: int
) -> None:
    """c10 of 2.6.0 is 113 of 1,700 steps, and light: by it a plan let 25 compiles run at once."""
    names = ("c10/a.cpp.o", "c10/b.cpp.o", "aten/heavy.cpp.o", "lib/libc10.so")
    graph = BuildFile(edges=tuple(Edge(outputs=(name,)) for name in names))
    monkeypatch.setattr("torchbuild_tasks.build.history.ninja_graph", lambda folder: graph)
    (tmp_path / NINJA_LOG).write_text(f"{HEAD}1\t2\t0\tc10/a.cpp.o\ta\n1\t2\t0\tc10/b.cpp.o\tb\n", "utf-8")
    pace = Pace(tmp_path, History(), target=target)
    pace.read_output(b"[1/2] Building CXX object c10/a.cpp.o\n")
    pace.finish()  # the last line came within the half second that is not read
    assert pace.steps_of_tree() == (2, left)


def test_a_tree_that_cannot_be_queried_says_nothing_by_one_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchbuild_tasks.build.history.ninja_graph", lambda folder: None)
    assert Pace(tmp_path, History(), target="c10").steps_of_tree() == (0, 1)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("build a: phony\n", True),
        ("include rules.ninja\nbuild included: phony\n", True),
        ("rule x\n", False),
        ("include /dev/zero\nbuild a: phony\n", False),
        ("subninja build.ninja\nbuild a: phony\n", False),
        ("subninja $\n  /dev/zero\n", False),
        ("x = /dev/zero\ninclude $x\n", False),
        ("pool links\n  depth = many\n", False),
    ],
)
def test_a_graph_is_read_of_files_alone(tmp_path: Path, text: str, read: bool) -> None:
    """A checkout's may include a device, or itself."""
    (tmp_path / "build.ninja").write_text(text, "utf-8")
    (tmp_path / "rules.ninja").write_text("", "utf-8")
    assert (ninja_graph(tmp_path) is not None) is read
