"""Progress from the lines of real builds."""

from __future__ import annotations

from pathlib import Path

from tests.support.for_each import each_case
from torchbuild_tasks.ninja.progress import Progress, ProgressParser, counting, eta

LOGS = Path(__file__).parent / "logs"
OBJECT = "CMakeFiles/torch_cpu.dir"
MSBUILD = 'Project "C:\\b\\a.sln" (1) is building "C:\\b\\c10.vcxproj" (2) on node 1'


@each_case(
    ("line", "phase", "done", "total", "what"),
    [
        (f"[3/9] Building CXX object {OBJECT}/src/a.cpp.o", "compile", 3, 9, "src/a.cpp"),
        (f"  [3/9] Building CUDA object caffe2/{OBJECT}/__/aten/b.cu.o", "compile", 3, 9, "aten/b.cu"),
        (f"[3/9] Building C object x/cmake/{OBJECT}/__/src/c.c.o", "compile", 3, 9, "x/src/c.c"),
        ("[3/9] Building CXX object x\\CMakeFiles\\t.dir\\__\\at\\d.cpp.obj", "compile", 3, 9, "at/d.cpp"),
        ("[8/9] Linking CXX shared library lib/libtorch_cpu.so", "link", 8, 9, "lib/libtorch_cpu.so"),
        ("[2/9] Generating sleef.h: mkrename 4 8", "codegen", 2, 9, "Generating sleef.h: mkrename 4 8"),
        ("[9/9] Install the project...", "install", 9, 9, "project..."),
        ("[0/1] Re-running CMake...", "configure", 0, 1, "CMake..."),
        (f"[1/9] /usr/bin/c++ -DX -o {OBJECT}/src/a.cpp.o -c /pt/src/a.cpp", "compile", 1, 9, "src/a.cpp"),
        ("[4/9] : && /usr/bin/c++ -shared -o lib/libx.so a.o && :", "link", 4, 9, "lib/libx.so"),
        ("[1/9] cl.exe /Foc10\\CMakeFiles\\c10.dir\\a.cpp.obj /c a.cpp", "compile", 1, 9, "c10/a.cpp"),
        (f"[3/9] 33% 0:12 Building CXX object {OBJECT}/src/a.cpp.o", "compile", 3, 9, "src/a.cpp"),
        (f"[ 14%] Building CXX object {OBJECT}/src/a.cpp.o", "compile", 14, 100, "src/a.cpp"),
        ("[100%] Built target torch_cpu", "compile", 100, 100, "torch_cpu"),
        ("  ReduceOps.cpp", "compile", 0, 0, "ReduceOps.cpp"),
        (MSBUILD, "compile", 0, 0, "c10.vcxproj"),
        ("-- Performing Test COMPILER_WORKS", "configure", 0, 0, "Performing Test COMPILER_WORKS"),
        ("-- Configuring done (0.6s)", "configure", 0, 0, "Configuring done (0.6s)"),
        ('-- Install configuration: "Release"', "install", 0, 0, 'Install configuration: "Release"'),
        ("-- Installing: /pt/torch/lib/libc10.so", "install", 0, 0, "Installing: /pt/torch/lib/libc10.so"),
        ("  *** Configuring CMake...", "configure", 0, 0, "Configuring CMake..."),
        ("  *** Making editable...", "package", 0, 0, "Making editable..."),
        ("running build_ext", "compile", 0, 0, "running build_ext"),
        ("running bdist_wheel", "package", 0, 0, "running bdist_wheel"),
        ("adding 'torch/__init__.py'", "package", 0, 0, "adding 'torch/__init__.py'"),
        ("Installing collected packages: torch", "install", 0, 0, "Installing collected packages: torch"),
    ],
)  # fmt: skip
def test_lines(line: str, phase: str, done: int, total: int, what: str) -> None:
    found = ProgressParser().feed(line)
    assert found is not None
    assert (found.phase, found.done, found.total, found.what) == (phase, done, total, what)


@each_case(
    "line",
    ["", "   ", "[torch] note", "[x/y] z", "[12] z", "a.cpp:1:2: warning: x", "  see a.cpp", "  12 | i;"],
)
def test_lines_that_say_nothing(line: str) -> None:
    assert ProgressParser().feed(line) is None


@each_case(
    ("own", "status"),
    [
        (None, None),
        ("", "[%f/%t] "),
        ("%p ", "[%f/%t] %p "),
        ("[%f/%t] ", "[%f/%t] "),
        ("[%f/%t] %e ", "[%f/%t] %e "),
        ("%p\n", "[%f/%t] %p"),
    ],
)
def test_ninja_counts_in_front_of_the_users_own_status(own: str | None, status: str | None) -> None:
    environ = {"PATH": "/bin"} | ({} if own is None else {"NINJA_STATUS": own})
    assert counting(environ) == {"PATH": "/bin"} | ({} if status is None else {"NINJA_STATUS": status})


def test_a_status_of_the_users_own_without_a_space_hides_no_step() -> None:
    found = ProgressParser().feed("[3/30] mine 10%:Building CXX object c10/CMakeFiles/c10.dir/a.cpp.o")
    assert found is not None
    assert (found.phase, found.done, found.total, found.what) == ("compile", 3, 30, "c10/a.cpp")


def test_an_inner_cmake_does_not_bring_the_build_back_to_configuring() -> None:
    parser = ProgressParser()
    step = "[1/9] Performing configure step for 'nccl_external'"
    assert parser.feed(step) is not None
    assert parser.feed("-- Performing Test X") is None
    assert ProgressParser().feed_block(f"{step}\n-- Performing Test X\n".encode()) == parser.feed(step)
    parser.feed("[0/1] Re-running CMake...")
    assert parser.feed("-- Performing Test X") == Progress(phase="configure", what="Performing Test X")


def test_the_last_answer_of_many_lines() -> None:
    parser = ProgressParser()
    lines = b"-- Configuring done\n[1/9] Linking a b\n  | ^\n[2/9] Linking a c\nx.h: warning\n"
    assert parser.feed_block(lines) == Progress(phase="link", done=2, total=9, what="c")
    assert parser.feed_block(b"x\ny\n") is None
    assert parser.feed_block(b"") is None


def test_of_a_block_only_the_last_lines_are_looked_at() -> None:
    step, noise = b"[1/9] Linking a b\n", b"a.cpp:1:2: warning: x\n"
    found = Progress(phase="link", done=1, total=9, what="b")
    assert ProgressParser().feed_block(step + noise) == found
    assert ProgressParser().feed_block(noise * 100_000 + step + noise * 50) == found
    assert ProgressParser().feed_block(step + noise * 1000) is None
    assert ProgressParser().feed_block(step + b"x" * 100_000 + b"\n") is None
    assert ProgressParser().feed_block(b"\xff\n" + step + b"\xff\n") == found
    assert ProgressParser().feed_block(b"\n") is None


@each_case(
    ("name", "phases"),
    [
        ("pip_ok", ["configure", "link", "install", "package", "install"]),
        ("cmake_ok", ["configure"]),
        ("make", ["compile"]),
        ("codegen", ["codegen"]),
    ],
)
def test_the_phases_of_real_builds(name: str, phases: list[str]) -> None:
    parser, seen = ProgressParser(), [""]
    for line in (LOGS / f"{name}.log").read_text("utf-8").splitlines():
        found = parser.feed(line)
        if found and found.phase != seen[-1] and "Building project" not in found.what:
            seen.append(found.phase)
    assert seen[1:] == phases


def test_eta() -> None:
    assert eta(10.0, 1, 4) == 30.0
    assert eta(10.0, 4, 4) == 0.0
    assert eta(10.0, 0, 4) is None
    assert eta(10.0, 1, 0) is None
    assert eta(0.01, 1, 1766) is None  # a first step tells nothing of hours
    assert eta(60.0, 18, 1766) is not None
