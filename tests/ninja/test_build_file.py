"""build.ninja as CMake and people write it: statements in their order, their inputs and their pools."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.ninja.build_file import CONSOLE, BuildFile, Edge, Step, find_step, parse_build_file

FILES = {
    "build.ninja": """# CMake's, shortened
ninja_required_version = 1.5
here = /src/build/
include rules.ninja
build gen/ops.h | ${here}gen/ops.h: GEN /src/ops.yaml | /src/gen.py || order
  COMMAND = python gen.py
  pool = console
build order: phony
build x.dir/a$ b.cpp.o: CXX /src/a$ b.cpp || gen/ops.h
build x.dir/c.cpp.o: CXX $
    C$:/src/c.cpp |@ checked
build checked: CXX /src/check.cpp
build lib/libx.so: LINK x.dir/a$ b.cpp.o x.dir/c.cpp.o | other.so
build other.so: LINK x.dir/c.cpp.o
  pool =
build all: phony lib/libx.so
default all
""",
    "rules.ninja": """pool heavy
  depth = 3
rule CXX
  command = c++ $in
rule GEN
  command = $COMMAND
rule LINK
  pool = heavy
  command = ld $in
""",
}


# a.cpp and gen.h -> a.o; b.cpp -> b.o; both -> lib.so; a phony `all`; what nothing asks for.
SMALL = """build all: phony lib.so
build lib.so: LINK a.o b.o
build a.o: CXX a.cpp || gen.h
build gen.h: GEN ops.yaml
build b.o: CXX b.cpp
build unasked.o: CXX c.cpp
default all
"""


def small() -> BuildFile:
    return parse_build_file(lambda name: SMALL)


def parsed() -> BuildFile:
    return parse_build_file(FILES.__getitem__)


def edge(output: str) -> Edge:
    return next(each for each in parsed().edges if output in each.outputs)


def test_statements_in_their_order_with_pools_and_default() -> None:
    found = parsed()
    assert [each.outputs[0] for each in found.edges] == [
        *("gen/ops.h", "order", "x.dir/a b.cpp.o", "x.dir/c.cpp.o", "checked"),
        *("lib/libx.so", "other.so", "all"),
    ]
    assert found.depths == {CONSOLE: 1, "heavy": 3} and found.default == ("all",)


def test_what_a_statement_makes_and_needs() -> None:
    made = edge("gen/ops.h")
    assert made.outputs == ("gen/ops.h", "/src/build/gen/ops.h") and made.pool == CONSOLE
    assert made.inputs == ("/src/ops.yaml", "/src/gen.py", "order") and made.explicit == 1
    assert edge("order").phony and not made.phony
    assert edge("x.dir/a b.cpp.o").inputs == ("/src/a b.cpp", "gen/ops.h")


def test_a_line_goes_on_after_a_dollar_and_a_drive_has_a_colon() -> None:
    """What only has to be valid (|@) is not waited for."""
    assert edge("x.dir/c.cpp.o").inputs == ("C:/src/c.cpp",)


def test_a_statement_has_the_last_word_on_its_rules_pool() -> None:
    assert edge("lib/libx.so").pool == "heavy" and edge("other.so").pool == ""


def test_what_a_target_needs_comes_before_it() -> None:
    found = parsed()
    names = [found.edges[each].outputs[0] for each in found.find_needed_edges(["lib/libx.so"])]
    assert sorted(names) == sorted(
        ["order", "gen/ops.h", "x.dir/a b.cpp.o", "x.dir/c.cpp.o", "other.so", "lib/libx.so"]
    )
    for at, name in enumerate(names):
        assert set(edge(name).inputs) & {each.outputs[0] for each in found.edges} <= set(names[:at])
    assert found.find_needed_edges(["no such target"]) == []


def test_a_file_that_says_nothing() -> None:
    assert parse_build_file({"build.ninja": ""}.__getitem__).edges == ()


def test_a_statement_that_was_cut_off_makes_nothing() -> None:
    text = "build a.o: CXX a.cpp\nbuild \nbuild b.o\nbuild : phony\n"
    assert [edge.outputs for edge in parse_build_file({"build.ninja": text}.__getitem__).edges] == [("a.o",)]


# As CMake 4.4.4 writes it.
CUSTOM = b"""
build version never: CUSTOM_COMMAND
  COMMAND = cd /src && echo $$HOME a$:b$ c
  DESC = Writing ${a} $$version
  restat = 1

build other: CUSTOM_COMMAND
  COMMAND = one
  DESC = Running utility command
build another: CUSTOM_COMMAND
  COMMAND = two
  DESC = Running utility command
build with: CUSTOM_COMMAND
  COMMAND = echo ${launcher}
  DESC = Launching
"""


@each_case("description", ["Writing ${a} $version", "Running utility command", "Launching", "Writing", ""])
def test_a_step_that_is_not_the_only_one_is_not_found(description: str) -> None:
    assert find_step(CUSTOM, description) is None


def test_the_step_of_a_description() -> None:
    text = CUSTOM.replace(b"${a} ", b"")
    found = Step(command="cd /src && echo $HOME a:b c", outputs=("version", "never"))
    assert find_step(text, "Writing $version") == found
    assert find_step(text.replace(b"\n", b"\r\n"), "Writing $version") is None  # Ninja's files have no CR


def test_what_a_step_says_that_it_writes() -> None:
    statement = b"build torch/gen /src/a$ b/version.py | ${cmake_ninja_workdir}gen C$:/x: CUSTOM_COMMAND"
    text = CUSTOM.replace(b"${a} ", b"").replace(b"build version never: CUSTOM_COMMAND", statement)
    found = find_step(text, "Writing $version")
    assert found is not None
    assert found.outputs == ("torch/gen", "/src/a b/version.py", "C:/x")


def test_what_a_build_makes_to_which_nothing_is_named() -> None:
    assert small().outputs == {"all", "lib.so", "a.o", "b.o", "gen.h"}
    without = parse_build_file(lambda name: SMALL.replace("default all\n", ""))
    assert without.targets == ("all", "unasked.o")
    assert BuildFile().outputs == frozenset()
