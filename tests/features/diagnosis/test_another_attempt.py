"""An attempt that failed is no failure where the next one makes it, with or without an announcement."""

# ruff: noqa: E501  (a log in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_NINJA = "[1/3] Building CXX object a/b.cpp.o\nFAILED: {}a/b.cpp.o \nc++ -c b.cpp\nb.cpp:1:1: error: expected ';'\nninja: build stopped: subcommand failed.\n"
_MAKE = "[ 9%] Building CXX object a/b.cpp.o\nb.cpp:1:1: error: expected ';'\nmake[2]: *** [a/build.make:9: a/b.cpp.o] Error 1\nmake: *** [Makefile:9: all] Error 2\n"
_LINKED = "[1/2] Building CXX object {}/b.cpp.o\n[2/2] Linking CXX shared library b.so\n"
_BUILT = "[ 9%] Building CXX object {}/b.cpp.o\n[100%] Built target b\n"


@each_case(
    "log, status",
    [
        (_NINJA.format("") + _LINKED.format("a"), "clean"),
        (_NINJA.format("[code=1] ") + _LINKED.format("a"), "clean"),
        (_MAKE + _BUILT.format("a"), "clean"),
        # another file of that log is another build
        (_NINJA.format("") + _LINKED.format("other"), "unknown"),
        (_MAKE + _BUILT.format("other"), "unknown"),
        # the same fails again
        (_NINJA.format("") * 2, "unknown"),
        (_MAKE * 2, "unknown"),
    ],
)
def test_what_could_not_be_made_is_made_again(log: str, status: str) -> None:
    assert read(log).status == status


@each_case(
    "end",
    [
        "adding 'a-1.dist-info/RECORD'\nremoving build/bdist.linux-x86_64/wheel",
        "running install_scripts\nInstalling torchrun script to /usr/bin",
        "Adding a 1 to easy-install.pth file",
        '-- Set runtime path of "/usr/lib/a.so" to ""',
        "[100%] Built target a\nmake[1]: Leaving directory '/b'",
        "c++ -shared -o a.so a.o\nmake: Leaving directory '/b'",
        "ninja: no work to do.",
        "Executing transaction: done\n#\n# To activate this environment, use\n#\n#     $ conda activate a",
        "View at:\nhttps://pypi.org/project/a/1/",
        "dist/a-1-py3-none-any.whl",
        "  - Built a-1-cp311-cp311-linux_x86_64.whl",
    ],
)
def test_ends_of_the_next_attempt(end: str) -> None:
    assert read(f"{_NINJA.format('')}-- attempt 2\n{end}\n").status == "clean"


@each_case("end", ["[4/50] Building CXX object c.o", "Collecting a", "Terminated"])
def test_a_next_attempt_that_does_not_end(end: str) -> None:
    assert read(f"{_NINJA.format('')}-- attempt 2\n{end}\n").status != "clean"
