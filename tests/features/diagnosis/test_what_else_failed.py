"""A build of several jobs may fail at several places: what failed for another cause is named, too."""

from __future__ import annotations

from tests.support.diagnosis import read
from torchbuild_tasks.features.diagnosis.others import Others
from torchbuild_tasks.features.diagnosis.show import reading_text

_HEADER = """\
[1/9] c++ -c a.cpp
FAILED: [code=1] x.dir/a.cpp.o
c++ -o x.dir/a.cpp.o -c a.cpp
a.cpp:5:10: fatal error: fmt/core.h: No such file or directory
compilation terminated.
"""
_SLIP = """\
FAILED: x.dir/b.cpp.o
c++ -o x.dir/b.cpp.o -c b.cpp
b.cpp: In function 'int f()':
b.cpp:7:72: error: expected ';' before '}' token
"""
_STOPPED = "ninja: build stopped: cannot make progress due to previous errors.\n"
_MAKE = """\
make[2]: Entering directory '/b'
a.cpp:5:10: fatal error: fmt/core.h: No such file or directory
b.cpp:7:72: error: expected ';' before '}' token
make[2]: *** [x.make:9: x.dir/b.cpp.o] Error 1
make[2]: *** [x.make:7: x.dir/a.cpp.o] Error 1
make: *** [Makefile:91: all] Error 2
"""


def test_a_target_of_ninja_that_failed_otherwise_is_named() -> None:
    reading = read(f"{_HEADER}[2/9] c++ -c c.cpp\n{_SLIP}[3/9] c++ -c d.cpp\n{_STOPPED}")
    assert reading.line_number == 4
    (other,) = reading.also
    assert (other.line_number, other.target) == (10, "x.dir/b.cpp.o")
    assert "expected ';'" in other.cause
    assert "Also failed, line 10 (x.dir/b.cpp.o): b.cpp:7:72: error" in reading_text(reading)


def test_what_a_service_wrote_before_each_line_is_not_shown_again() -> None:
    log = f"{_HEADER}[2/9] c++ -c c.cpp\n{_SLIP}[3/9] c++ -c d.cpp\n{_STOPPED}"
    own = "2026-05-04T10:11:12.1234567Z ", "[rank3]: ", "#12 34.5 ", "host7 | ", "\x1b[31m"
    for before in own:
        (other,) = read("".join(f"{before}{line}\n" for line in log.splitlines())).also
        assert (other.target, other.error_line) == (
            "x.dir/b.cpp.o",
            "b.cpp:7:72: error: expected ';' before '}' token",
        ), before


def test_another_library_that_the_same_link_lacks_is_named() -> None:
    lacks = "/usr/bin/ld: cannot find -l{}: No such file or directory\n"
    link = "FAILED: x.so\nc++ -shared -o x.so a.o\n" + lacks.format("openblas") + lacks.format("nvinfer")
    reading = read(
        link + lacks.format("openblas") + "collect2: error: ld returned 1 exit status\n" + _STOPPED
    )
    (other,) = reading.also
    assert (reading.line_number, other.line_number, other.target) == (3, 4, "")
    assert "nvinfer" in other.cause
    assert "Also failed, line 4: /usr/bin/ld: cannot find -lnvinfer" in reading_text(reading)


def test_what_the_loader_says_of_one_library_is_no_second_one() -> None:
    text = "ImportError: dlopen(/v/x.so, 6): Library not loaded: @rpath/liba.5.dylib\n"
    assert not read(f"{text}  Referenced from: /v/x.so\n  Reason: image not found\n").also


def test_the_same_cause_of_another_target_is_not_told_twice() -> None:
    assert not read(f"{_HEADER}{_HEADER.replace('a.cpp', 'b.cpp')}{_STOPPED}").also


def test_a_single_target_has_no_others() -> None:
    assert not read(f"{_SLIP}[2/9] c++ -c c.cpp\n{_STOPPED}").also


def test_make_names_the_target_later_than_the_error() -> None:
    (other,) = read(_MAKE).also
    assert (other.line_number, other.target) == (3, "x.dir/b.cpp.o")


def test_an_error_of_a_file_whose_target_was_made_is_none_of_make() -> None:
    assert not read(_MAKE.replace("make[2]: *** [x.make:9: x.dir/b.cpp.o] Error 1\n", "")).also


def test_a_target_is_read_over_the_end_of_a_block() -> None:
    others = Others()
    for number, line in enumerate(f"{_HEADER}{_SLIP}{_STOPPED}".splitlines(keepends=True), 1):
        others.feed_block(line.encode(), number)
    assert [(each.number, len(each.lines)) for each in others.found] == [(2, 4), (6, 4)]


def test_what_stands_above_a_target_of_make_is_of_it() -> None:
    log = (
        "nvcc -c tex.cu -o tex.o\n"
        "tex.cu:1:10: fatal error: helper.h: No such file or directory\n"
        "make: *** [Makefile:3: tex.o] Error 1\n"
        "ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x13880 bytes, 0xc000 max)\n"
        "make: *** [Makefile:3: soft.o] Error 255\n"
        "make: Target 'all' not remade because of errors.\n"
    )
    assert [(each.line_number, each.target) for each in read(log).also] == [(4, "soft.o")]


def test_what_make_says_of_itself_is_no_other_error() -> None:
    log = (
        "a.cpp:7:72: error: expected ';' before '}' token\n"
        "make[2]: *** [x.make:9: a.cpp.o] Error 1\n"
        "make[2]: *** Waiting for unfinished jobs....\n"
        "make[1]: *** [Makefile2:87: x.dir/all] Error 2\n"
        "make: *** [Makefile:91: all] Error 2\n"
    )
    assert not read(log).also


def test_two_steps_of_pip_fail_each_for_its_own_cause() -> None:
    step = (
        "  error: subprocess-exited-with-error\n"
        "  × Getting requirements to build wheel did not run successfully.\n"
        "  ╰─> [1 lines of output]\n      {}\n      [end of output]\n"
        "ERROR: Failed to build 'file:///p'\n"
    )
    first = step.format("ModuleNotFoundError: No module named 'torch'")
    second = step.format("error in p setup command: use_2to3 is invalid.")
    assert [each.line_number for each in read(first + second).also] == [10]
    assert not read(first + first).also


def test_msbuild_names_the_project_and_each_source_has_its_own_cause() -> None:
    reading = read(
        "a.cpp(3,1): error C2065: 'x': undeclared identifier [C:\\p\\a.vcxproj]\n"
        "b.cpp(4,10): fatal error C1083: Cannot open include file: 'foo.h': No such file or directory"
        " [C:\\p\\b.vcxproj]\n"
        "Build FAILED.\n"
    )
    assert (reading.line_number, reading.kind) == (1, "compile-error")
    assert [(each.line_number, each.target) for each in reading.also] == [(2, "b")]


def test_headers_of_one_part_are_one_cause() -> None:
    other = _HEADER.replace("a.cpp", "b.cpp").replace("fmt/core.h", "fmt/format.h")
    assert not read(f"{_HEADER}{other}{_STOPPED}").also


_EMPTY = "CMake Error at CMakeLists.txt:5 (message):\n  third_party/cutlass is empty, run git submodule\n\n\n"
_LACKS = (
    "CMake Error at CMakeLists.txt:7 (find_package):\n"
    '  Could not find a package configuration file provided by "CUDNN" (requested\n'
    "  version 9.5) with any of the following names:\n\n    CUDNNConfig.cmake\n\n\n"
)
_NOT_DONE = "-- Configuring incomplete, errors occurred!\n"


def test_what_else_cmake_did_not_find_is_named_and_no_error_that_follows() -> None:
    (other,) = read(f"{_EMPTY}{_LACKS}{_NOT_DONE}").also
    assert (other.line_number, other.target) == (5, "CMakeLists.txt:7")
    assert "CUDNN" in other.cause
    follows = (
        'CMake Error at CMakeLists.txt:9 (target_link_libraries):\n  called with non-existent target "z".\n\n'
    )
    assert not read(f"{_EMPTY}{follows}{_NOT_DONE}").also
    assert not read(f"{_LACKS}{_NOT_DONE}").also
    assert not read(f"{_EMPTY}FAILED: x-populate-download\n{_NOT_DONE}").also


def test_an_error_of_cmake_is_read_over_the_end_of_a_block() -> None:
    others = Others()
    for number, line in enumerate(f"{_EMPTY}{_LACKS}{_NOT_DONE}".splitlines(keepends=True), 1):
        others.feed_block(line.encode(), number)
    assert [(each.number, len(each.lines)) for each in others.found] == [(1, 4), (5, 7)]
