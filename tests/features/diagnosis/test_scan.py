"""The first real error of a log: real logs of tests/logs, and the traps among them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.diagnosis import FOLDERS, book
from tests.support.examples import examples
from tests.support.for_each import each_case
from torchbuild_tasks.catalog.failures import FailureBook
from torchbuild_tasks.features.diagnosis import scan as scan_module
from torchbuild_tasks.features.diagnosis.block import MAX_LINES, ErrorBlock
from torchbuild_tasks.features.diagnosis.scan import LogScanner
from torchbuild_tasks.system.lines import Blocks

LOGS = FOLDERS[1]
NO_ROWS = FailureBook(())


def scanned(*lines: str) -> LogScanner:
    scanner = LogScanner(NO_ROWS)
    scanner.feed_block("".join(f"{line}\n" for line in lines).encode())
    return scanner


def scan(*lines: str) -> ErrorBlock | None:
    return scanned(*lines).found


def scan_log(name: str) -> ErrorBlock | None:
    return scan(*(LOGS / f"{name}.log").read_text("utf-8").split("\n"))


# name of the log, kind, line number of the block, what its lines must say, what they must not
REAL = [
    ("ninja_keep_going", "compiler", 3, "no_such_thing.h: No such file", "dims"),
    ("ninja_verbose", "compiler", 8, "no_such_thing.h: No such file", "dims"),
    ("make", "compiler", 14, "no_such_thing.h: No such file", "Waiting for unfinished"),
    ("template_make", "compiler", 3, "required from here", "Error 1"),
    ("werror", "compiler", 1, "[-Werror=unused-variable]", "FAILED"),
    ("pip_editable", "compiler", 29, "has no member named", "subprocess-exited-with-error"),
    ("link", "linker", 4, "undefined reference to `missing(int)'", "build stopped"),
    ("link_make", "linker", 8, "undefined reference to `missing(int)'", "[ 50%]"),
    ("killed_ninja", "killed", 3, "Killed signal terminated program cc1plus", "build stopped"),
    ("killed_make", "killed", 7, "Killed signal terminated program cc1plus", "Error 1"),
    ("codegen", "python", 3, "FileNotFoundError", "build stopped"),
    ("cmake_error", "cmake", 17, "If not, do.", "ModuleNotFoundError"),
    ("cmake_codegen", "python", 13, "CMake Error at cmake/Codegen.cmake:4", "incomplete"),
    ("pip_traceback", "python", 10, "Unknown CUDA arch (10.9)", "yaml_not_there"),
    ("submodule", "words", 6, "Did you run 'git submodule update", "FutureWarning"),
    ("ninja_error", "words", 2, "ninja: fatal: chdir", "build.ninja"),
]


@each_case(("name", "kind", "number", "says", "says_not"), REAL)
def test_real_logs(name: str, kind: str, number: int, says: str, says_not: str) -> None:
    found = scan_log(name)
    assert found is not None
    assert (found.kind, found.lines[0].number) == (kind, number)
    assert says in "\n".join(found.text)
    assert says_not not in "\n".join(found.text)
    log = (LOGS / f"{name}.log").read_text("utf-8").split("\n")
    assert all(line.raw == log[line.number - 1] for line in (*found.lines, found.error))


@pytest.mark.parametrize("name", ["cmake_ok", "pip_ok"])
def test_logs_of_builds_that_went_well(name: str) -> None:
    assert scan_log(name) is None


# What every kind of line there is looks like: lines that begin a block, belong to one, end one, or are none.
REAL_LINES = sorted(
    {line for folder in FOLDERS for path in folder.glob("*.log") for line in path.read_bytes().split(b"\n")}
)
lines_of_logs = st.lists(
    st.one_of(
        st.sampled_from(REAL_LINES),
        st.sampled_from(
            [b"x.cpp:1:2: warning: y", b"", b"Killed", b"\xff\xe2\x82", b"make: *** [a] Error 2"]
        ),
    ),
    max_size=60,
)
cuts = st.lists(st.floats(0, 1), max_size=12)


def same_as_line_by_line(data: bytes, at: list[float]) -> None:
    """Only which encoding is guessed may depend on the blocks, so the lines are compared as they stand."""
    data = data.replace(b"\0", b"")
    by_line, by_block = LogScanner(book()), LogScanner(book())
    blocks = Blocks(carriage_return=False)
    for line in data.split(b"\n")[:-1]:
        by_line.feed(line)
    places = [0, *sorted(int(place * len(data)) for place in at), len(data)]
    for start, end in itertools.pairwise(places):
        by_block.feed_block(blocks.feed(data[start:end]))
    by_block.feed_block(blocks.end())
    one, other = by_line.found, by_block.found
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.kind, one.error.number, one.weak) == (other.kind, other.error.number, other.weak)
        assert [line.number for line in one.lines] == [line.number for line in other.lines]


@given(lines_of_logs, cuts)
def test_blocks_cut_anywhere_find_the_same_as_single_lines(lines: list[bytes], at: list[float]) -> None:
    same_as_line_by_line(b"".join(line + b"\n" for line in lines), at)


@pytest.mark.parametrize("name", sorted(path.stem for path in LOGS.glob("*.log")))
@settings(max_examples=examples(4, 50))
@given(st.integers(0, 30), cuts)
def test_a_real_log_in_blocks_finds_the_same(name: str, calm: int, at: list[float]) -> None:
    before = b"".join(b"[%d/99] Building CXX object a.cpp.o\n" % number for number in range(calm))
    same_as_line_by_line(before + (LOGS / f"{name}.log").read_bytes().rstrip(b"\n") + b"\n", at)


def test_skipped_lines_count() -> None:
    scanner = LogScanner(NO_ROWS)
    scanner.skip_block(b"# the header\nFAILED: of another command\n")
    scanner.feed_block(b"one\nFAILED: a.o\n")
    assert scanner.found is not None
    assert (scanner.found.lines[0].number, scanner.found.text) == (4, ("FAILED: a.o",))


@each_case(
    "line",
    [
        "[1/9] /usr/bin/c++ -Wall -Werror=return-type -Wno-error=x -c /pt/error_handling.cpp -o error.o",
        "[2/9] Building CXX object CMakeFiles/x.dir/error_handling.cpp.o",
        "x.cpp:3:1: warning: error: is a strange name [-Wfoo]",
        '   12 |   throw Error("a.cpp:1:2: error: no");',
        "-- Looking for dlopen in dl - not found",
        "-- Performing Test HAS_ERROR - Failed",
        "Build finished: 0 errors, 3 warnings",
        "fatal: not a git repository (or any of the parent directories): .git",
        "    0 Error(s)",
        '  See also "/pt/build/CMakeFiles/CMakeError.log".',
        "CMake Warning at CMakeLists.txt:5 (message):",
        "  *** Building project with Ninja...",
        "Clang version: Could not collect",
        "  The item was not found.",
        "when I run ./demo.sh, I get the error:",
    ],
)
def test_no_error(line: str) -> None:
    assert scan(line, "next") is None


@each_case(
    ("line", "kind"),
    [
        ("c:\\pt\\a.cpp(12): error C2065: 'x': undeclared identifier", "compiler"),
        ("C:\\Program Files\\a.h(1,10): fatal error C1083: Cannot open include file", "compiler"),
        ('/pt/a.cu(7): error: identifier "foo" is undefined', "compiler"),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_100'", "compiler"),
        ("nvcc error   : 'cicc' died due to signal 9 (Kill signal)", "killed"),
        ("g++: internal compiler error: Killed (program cc1plus)", "killed"),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", "killed"),
        ("LINK : fatal error LNK1104: cannot open file 'python312.lib'", "linker"),
        ("a.obj : error LNK2019: unresolved external symbol foo", "linker"),
        ("/tmp/cc1.s: fatal error: error writing to /tmp/cc1.s: No space left on device", "compiler"),
        ("error: Submodule 'third_party/pybind11' could not be updated", "words"),
        ("ERROR: No matching distribution found for pyyaml", "words"),
        ("CMake Error: The source directory /x does not exist.", "cmake"),
        ("[libprotobuf FATAL google/common.cc:79] CHECK failed", "words"),
    ],
)
def test_one_line_is_enough(line: str, kind: str) -> None:
    found = scan("before", line)
    assert found is not None
    assert (found.kind, found.lines[0].number, found.text) == (kind, 2, (line,))


@pytest.mark.parametrize(
    "line",
    [
        "error: subprocess-exited-with-error",
        "ERROR: Failed building wheel for torch",
        "error: command '/usr/bin/gcc' failed with exit code 1",
        "ninja: build stopped: subcommand failed.",
        "##[error]Process completed with exit code 1.",
    ],
)
def test_that_something_failed_is_all_that_is_known(line: str) -> None:
    found = scan(line, "next")
    assert found is not None
    assert (found.weak, found.error.raw) == (True, line)


def test_a_configure_test_that_fails_aloud_is_no_error() -> None:
    assert scan("src.c:1:10: fatal error: immintrin.h: No such file", "-- Performing Test X - Failed") is None


def test_a_traceback_after_which_the_build_goes_on_is_no_error() -> None:
    traceback = ("Traceback (most recent call last):", '  File "x", line 1', "ImportError: yaml")
    assert scan(*traceback, "[1/7] Building CXX object a.cpp.o") is None
    found = scan(*traceback)
    assert found is not None
    assert found.text == traceback


def test_what_collect_env_says_behind_a_posted_traceback_is_no_going_on() -> None:
    traceback = ("Traceback (most recent call last):", '  File "x", line 1', "OSError: [WinError 126] a.dll")
    found = scan(*traceback, "Collecting environment information...", "PyTorch version: N/A")
    assert found is not None
    assert found.error.raw == traceback[-1]


def test_make_without_a_compiler_error_shows_what_led_up_to_it() -> None:
    found = scan("cp a b", "cp: cannot stat 'a'", "make[1]: *** [Makefile:3: b] Error 1", "make: *** Error 2")
    assert found is not None
    assert (found.kind, found.lines[0].number, found.weak) == ("make", 1, True)
    assert found.error.raw == "cp: cannot stat 'a'"
    assert found.text[-1] == "make[1]: *** [Makefile:3: b] Error 1"


def test_a_giant_block_is_cut_around_its_first_error() -> None:
    command = "/usr/bin/c++ " + "-I/pt/include " * 1000
    notes = [f"a.cpp:{n}:1: note: candidate {n}" for n in range(500)]
    errors = [f"a.cpp:{n}:1: error: number {n}" for n in range(500)]
    found = scan("[1/2] Building", "FAILED: a.o", command, *notes, *errors, "[2/2] Building")
    assert found is not None
    assert len(found.lines) <= MAX_LINES
    assert len(found.text[1]) < 210
    assert "candidate 499" in found.text[4]
    assert "number 0" in found.text[5]
    assert found.error == found.lines[5]


def test_only_the_first_error_is_kept_in_flat_memory() -> None:
    scanner = LogScanner(NO_ROWS)
    for number in range(1000):
        scanner.feed(b"FAILED: object%d.o" % number)
        scanner.feed(b"x" * 8000)
    assert scanner.found is not None
    assert scanner.found.text[0] == "FAILED: object0.o"
    assert sum(map(len, scanner.found.text)) < 1100


def test_the_last_lines_stand_in_when_nothing_was_found() -> None:
    scanner = scanned(*(f"line {number}" for number in range(100)), "Please set CC to a compiler.")
    assert scanner.found is None
    assert scanner.last[-2:] == ("line 99", "Please set CC to a compiler.")


def test_an_error_that_make_shows_among_other_jobs_is_taken_up_again() -> None:
    found = scan(
        "[ 12%] Building CXX object a.cpp.o",
        "a.cpp:1:2: error: the first",
        "[ 13%] Building CXX object b.cpp.o",
        "b.cpp:1:2: warning: another",
        "make[2]: *** [x.make:76: a.cpp.o] Error 1",
    )
    assert found is not None
    assert (found.error.number, found.weak) == (2, False)


def test_an_error_of_configuring_is_not_taken_up_again() -> None:
    configured = ("src.c:1:2: fatal error: x.h", "-- Performing Test X - Failed", "-- Configuring done")
    found = scan(*configured, "something", "make: *** [all] Error 1")
    assert found is not None
    assert (found.error.number, found.weak) == (5, True)


def test_of_a_chain_of_exceptions_the_root_counts() -> None:
    first = ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: the root")
    direct = ("", "The above exception was the direct cause of the following exception:", "")
    during = ("", "During handling of the above exception, another exception occurred:", "")
    second = ("Traceback (most recent call last):", '  File "b.py", line 1', "RuntimeError: the end")
    roots = [found.error.raw for chain in (direct, during) if (found := scan(*first, *chain, *second))]
    assert roots == ["ValueError: the root", "RuntimeError: the end"]


def test_a_deep_traceback_keeps_its_exception() -> None:
    frames = [f'  File "a.py", line {number}, in f' for number in range(500)]
    found = scan("Traceback (most recent call last):", *frames, "RecursionError: too deep")
    assert found is not None
    assert found.error.raw == "RecursionError: too deep"
    assert len(found.lines) <= MAX_LINES


def test_what_repeats_the_failure_of_another_program_gives_way_to_it() -> None:
    found = scan(
        "a.cpp:1:2: error: the cause",
        "Traceback (most recent call last):",
        '  File "setup.py", line 1',
        "subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.",
    )
    assert found is not None
    assert found.error.number == 1


def test_a_trial_of_cmake_is_no_failure_but_the_error_that_quotes_it_is() -> None:
    trial = (
        "FAILED: CMakeFiles/cmTC_1.dir/x.o",
        "cc -c x.c",
        "x.c:1:2: fatal error: no",
        "ninja: build stopped: x.",
    )
    assert scan("-- Check for working C compiler", *trial) is None
    quoted = (
        "CMake Error at x.cmake:60 (message):",
        "  The C compiler cannot compile",
        *(f"  {t}" for t in trial),
    )
    found = scan(*quoted)
    assert found is not None
    assert (found.kind, found.error.number) == ("cmake", 1)


def test_a_line_of_cmake_that_a_row_knows_counts_until_configuring_has_ended() -> None:
    unknown = "-- The CXX compiler identification is unknown"
    for end, wanted in (("-- Detecting CXX compile features", unknown), ("-- Configuring done", None)):
        scanner = LogScanner(book())
        scanner.feed_block(f"{unknown}\n{end}\n".encode())
        assert (scanner.found.error.raw if scanner.found else None) == wanted


def test_a_log_of_two_bytes_a_character_in_the_middle_is_read_too() -> None:
    scanner = LogScanner(NO_ROWS)
    scanner.feed_block(b"plain\n" + "a.cpp:1:2: error: x\n".encode("utf-16-le"))
    assert scanner.found is not None
    assert scanner.found.error.raw == "a.cpp:1:2: error: x"


def test_far_into_a_log_what_led_to_an_error_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "_AT_FIRST", 1 << 19)
    scanner = LogScanner(book())
    for _ in range(2):
        scanner.feed_block(b"[1/2] Building CXX object a.cpp.o\n" * 16_000)
    scanner.feed_block(
        b"crti.o: in function `_init':\n(.init+0xb): relocation truncated to fit: R_X86_64_GOTPCREL\n"
    )
    scanner.feed_block(b"collect2: error: ld returned 1 exit status\n")
    assert scanner.found is not None
    assert (scanner.found.error.number, scanner.found.lines[0].number) == (32_002, 32_001)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ('ld: a.o: definizione multipla di "f"', "multiple definition of 'f'"),
        ("/bin/sh: 1: foo: orden no encontrada", "command not found"),
        ('a.cpp:3:5: errore: atteso ";"', "error: atteso"),
    ],
)
def test_a_language_without_other_letters_is_seen_long_before_the_end(line: str, meant: str) -> None:
    found = scan(line, *["Words of no meaning."] * 200)
    assert found is not None
    assert meant in found.error.text


def test_an_exception_at_the_very_end_that_repeats_a_failure_gives_way_too() -> None:
    found = scan(
        "a.cpp:1:2: error: the cause",
        "[ 50%] Building CXX object b.cpp.o",
        "Traceback (most recent call last):",
        '  File "setup.py", line 1',
        "subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.",
    )
    assert found is not None
    assert (found.error.number, found.weak) == (1, False)


def test_what_a_step_of_pip_tried_is_no_error_when_the_step_went_well() -> None:
    step = "  Building wheel for deepspeed (setup.py): "
    tried = ("/tmp/t.c:2:10: fatal error: libaio.h: No such file or directory", "compilation terminated.")
    assert scan(f"{step}started", *tried, f"{step}finished with status 'done'") is None
    before = scan(*tried, f"{step}started", f"{step}finished with status 'done'")
    assert before is not None
    assert before.error.number == 1


TRACE = ("Traceback (most recent call last):", '  File "a.py", line 3, in f', "RuntimeError: of a child")


@pytest.mark.parametrize("well", ["t.py::test_child PASSED", "test_child (t.T) ... ok", "OK (skipped=2)"])
def test_what_a_test_printed_is_no_error_when_the_test_passed(well: str) -> None:
    assert scan(*TRACE, well) is None


@pytest.mark.parametrize(
    "end",
    [
        "FAILED t.py::test_a - RuntimeError: of a child",
        "FAILED CONSISTENTLY: t.py::test_a",
        "FAILED (errors=1, skipped=2)",
        "===== 1 failed, 3 passed in 1.10s =====",
        "!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!",
    ],
)
def test_a_test_that_failed_is_an_error_though_others_passed(end: str) -> None:
    assert scan("test_a (t.T) ... ok", end, "t.py::test_b PASSED") is not None
    found = scan(*TRACE, "t.py::test_b PASSED", end)
    assert found is not None


def test_a_paragraph_of_cmake_may_have_lost_its_indentation() -> None:
    found = scan(
        "> CMake Error at a.cmake:5 (message):", "> FindCUDA says", "> other headers.", "> Call Stack:"
    )
    assert found is not None
    assert [line.text for line in found.lines][:3] == [
        "CMake Error at a.cmake:5 (message):",
        "FindCUDA says",
        "other headers.",
    ]


def test_any_command_of_cmake_may_have_lost_the_indentation_of_what_it_says() -> None:
    found = scan(
        "CMake Error at a.cmake:5 (find_package):", 'By not providing "Findx.cmake" in', "x has asked"
    )
    assert found is not None
    assert len(found.lines) == 3
