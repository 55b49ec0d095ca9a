"""Ninja's log, as real ones look: versions, several runs, several outputs, damage, any order."""

from __future__ import annotations

import random

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.ninja.log import kind_of, last_run, parse_lines, parse_ninja_log, steps_within

NS = 10**9
FIRST, SECOND = 1_700_000_000, 1_700_005_000  # when two runs of Ninja began


def line(start: int, end: int, output: str, began: int = FIRST, command: str = "aa") -> str:
    """A line of version 7: its stamp is when the step started."""
    return f"{start}\t{end}\t{began * NS + start * 10**6}\t{output}\t{command}\n"


def log(*lines: str, version: int = 7) -> str:
    return f"# ninja log v{version}\n" + "".join(lines)


def test_steps_and_their_times() -> None:
    found = parse_ninja_log(log(line(57, 8031, "a.cpp.o"), line(40, 9000, "b.cpp.o", command="bb")))
    (run,) = found.runs
    assert [(step.output, step.start, step.end, step.seconds) for step in run.steps] == [
        ("a.cpp.o", 0.057, 8.031, pytest.approx(7.974)),
        ("b.cpp.o", 0.04, 9.0, 8.96),
    ]
    assert run.began == pytest.approx(FIRST)
    assert found.version == 7 and found.unreadable == 0


def test_an_edge_with_several_outputs_is_one_step_named_by_the_shortest_relative_one() -> None:
    lines = [line(2, 9, name, command="same") for name in ("/b/gen/ops.h", "gen/ops.h", "gen/ops_inl.h")]
    (step,) = parse_ninja_log(log(*lines)).runs[0].steps
    assert step.output == "gen/ops.h"
    assert set(step.outputs) == {"/b/gen/ops.h", "gen/ops.h", "gen/ops_inl.h"}


def test_a_drive_is_absolute_too() -> None:
    (step,) = parse_ninja_log(log(line(2, 9, r"C:\b\x.h"), line(2, 9, r"generated\long\x.h"))).runs[0].steps
    assert step.output == r"generated\long\x.h"


def test_the_stamp_of_version_5_is_the_end() -> None:
    text = log(f"1000\t3000\t{(FIRST + 3) * NS}\ta.cpp.o\taa\n", version=5)
    assert parse_ninja_log(text).runs[0].began == pytest.approx(FIRST)


def test_stamps_of_windows_and_of_an_old_ninja_are_times_of_this_century() -> None:
    windows = "# ninja log v7\n54\t1208\t8176863873575277\tc10/c10.dll\tab\n"  # of 2026-11-29, 20:13:07 UTC
    old = f"# ninja log v5\n0\t2000\t{FIRST + 2}\tc10/c10.dll\tab\n"
    assert parse_ninja_log(windows).runs[0].began == pytest.approx(1_795_983_187.3, abs=0.1)
    assert parse_ninja_log(old).runs[0].began == FIRST


def test_an_end_before_the_one_above_is_another_run() -> None:
    found = parse_ninja_log(
        log(line(0, 5000, "a.cpp.o"), line(5000, 9000, "b.so"), line(3, 700, "a.cpp.o", SECOND))
    )
    assert [[step.output for step in run.steps] for run in found.runs] == [["a.cpp.o", "b.so"], ["a.cpp.o"]]
    assert [round(run.began or 0) for run in found.runs] == [FIRST, SECOND]


def test_a_log_that_ninja_wrote_anew_in_any_order_is_sorted_out_by_the_stamps() -> None:
    lines = [line(n * 100, n * 100 + 90, f"a{n}.cpp.o") for n in range(40)]
    lines += [line(n * 100, n * 100 + 90, f"b{n}.cpp.o", SECOND) for n in range(30)]
    random.Random(3).shuffle(lines)
    runs = parse_ninja_log(log(*lines)).runs
    assert [len(run.steps) for run in runs] == [40, 30]
    assert [step.output for step in runs[1].steps] == [f"b{n}.cpp.o" for n in range(30)]


def test_steps_without_a_stamp_are_kept() -> None:
    (run,) = parse_ninja_log(log("3\t9\t0\ttorch_version\taa\n", version=5)).runs
    assert run.steps[0].output == "torch_version" and run.began is None


@each_case(
    "bad",
    ["12\t30\t5\ta.o\taa", "12\t30\t5\ta.o\n", "x\t30\t5\ta.o\taa\n", "40\t30\t5\ta.o\taa\n", "\0\0\0\n"],
    ids=["cut off", "a column short", "no number", "ends before it starts", "zeros"],
)
def test_a_bad_line_is_counted_and_the_others_are_read(bad: str) -> None:
    found = parse_ninja_log(log(line(1, 2, "good.o"), bad))
    assert [step.output for run in found.runs for step in run.steps] == ["good.o"]
    assert found.unreadable == 1


@each_case("text", ["", "# ninja log v4\n", "# ninja log v8\n", "ELF", "# ninja deps\n"])
def test_no_log_or_another_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ninja_log(text)
    assert caught.value.next_step


def test_lines_end_with_cr_lf_on_windows() -> None:
    text = log(line(1, 2, "a.obj")).replace("\n", "\r\n")
    assert parse_ninja_log(text).runs[0].steps[0].command == "aa"


def test_a_piece_of_a_growing_log() -> None:
    assert [step.output for step in parse_lines(line(1, 2, "a.o") + line(1, 3, "b.o"), 7)] == ["a.o", "b.o"]


def test_the_last_run_is_one_that_made_something() -> None:
    found = parse_ninja_log(log(line(0, 900, "a.cpp.o"), line(2, 90, "torch/version", SECOND)))
    run = last_run(found)
    assert run is not None and run.steps[0].output == "a.cpp.o"
    assert last_run(parse_ninja_log(log())) is None


def test_runs_of_a_time_stand_on_one_axis() -> None:
    first, second = line(0, 900, "a.cpp.o"), line(100, 200, "b.so", FIRST + 60)
    found = parse_ninja_log(log(first, second, line(0, 50, "late.o", SECOND)))
    steps = steps_within(found, FIRST - 5, FIRST + 100)
    assert [(step.output, round(step.start, 3)) for step in steps] == [("a.cpp.o", 0), ("b.so", 60.1)]
    assert steps_within(found, FIRST + 500, FIRST + 600) == ()


@each_case(
    ("output", "kind"),
    [
        ("x/CMakeFiles/t.dir/__/a.cpp.o", "C++"),
        ("CMakeFiles\\t.dir\\a.cpp.obj", "C++"),
        ("x.dir/k.cu.o", "CUDA"),
        ("x.dir/c.c.o", "C"),
        ("x.dir/s.S.o", "assembler"),
        ("odd.o", "object"),
        ("lib/libtorch_cpu.so", "link"),
        ("lib/libgomp.so.1.2", "link"),
        ("torch/_C.cpython-311-x86_64-linux-gnu.so", "link"),
        ("bin\\torch_cpu.dll", "link"),
        ("bin/protoc", "link"),
        ("bin/protoc-3.13.0.0", "codegen"),
        ("CMakeFiles/install.util", "install"),
        ("aten/src/ATen/Functions.h", "codegen"),
        ("torch/CMakeFiles/torch_version", "codegen"),
    ],
)
def test_kinds(output: str, kind: str) -> None:
    assert kind_of(output) == kind
