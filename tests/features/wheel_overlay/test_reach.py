"""How far a change goes: by Ninja's graph, and by what is included as text."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.features.wheel_overlay.reach import (
    Part,
    Spread,
    find_included,
    find_parts,
    find_readers,
    list_includes,
    spread_change,
    take_from_wheel,
)
from torchbuild_tasks.ninja.build_file import parse_build_file

# As CMake writes it: a static library in a shared one, a source that a step copies, CUDA beside it, and what
# only has to be there before (behind ||).
NINJA = """\
rule CXX_SHARED_LIBRARY_LINKER__torch_cpu_Release
  command = $LINKER $in $LINK_LIBRARIES

build c10/c10.dir/core/Device.cpp.o: CXX_COMPILER__c10 /src/c10/core/Device.cpp || order_c10
build lib/libc10.so: CXX_SHARED_LIBRARY_LINKER__c10 c10/c10.dir/core/Device.cpp.o
  RPATH = -Wl,-rpath,/src/build/lib:

build sleef.dir/sleefsimd.c.o: C_COMPILER__sleef /src/third_party/sleef/sleefsimd.c
build sleef/lib/libsleef.a: C_STATIC_LIBRARY_LINKER__sleef sleef.dir/sleefsimd.c.o
build aten/src/ATen/native/cpu/Sum.cpp.AVX2.cpp: CUSTOM_COMMAND /src/aten/src/ATen/native/cpu/Sum.cpp
build cpu.dir/Sum.cpp.AVX2.cpp.o: CXX_COMPILER__torch_cpu aten/src/ATen/native/cpu/Sum.cpp.AVX2.cpp
build lib/libtorch_cpu.so: CXX_SHARED_LIBRARY_LINKER__torch_cpu_Release cpu.dir/Sum.cpp.AVX2.cpp.o | $
    sleef/lib/libsleef.a lib/libc10.so || bin/protoc
  LINK_LIBRARIES = -Wl,--no-as-needed,"/src/build/lib/libc10.so" sleef/lib/libsleef.a lib/libc10.so

build cuda.dir/Sum.cu.o: CUDA_COMPILER__torch_cuda /src/aten/src/ATen/native/cuda/Sum.cu
build lib/libtorch_cuda.so: CXX_SHARED_LIBRARY_LINKER__torch_cuda cuda.dir/Sum.cu.o | lib/libtorch_cpu.so
  LINK_LIBRARIES = lib/libtorch_cpu.so

build tool.dir/main.cpp.o: CXX_COMPILER__protoc /src/third_party/protobuf/main.cpp
build bin/protoc: CXX_EXECUTABLE_LINKER__protoc tool.dir/main.cpp.o
build torch_cpu: phony lib/libtorch_cpu.so
"""
MEMBERS = (
    "torch/lib/libc10.so",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libtorch_cuda.so",
    "torch/version.py",
)
INCLUDES = {
    "build/aten/src/ATen/native/cpu/Sum.cpp.AVX2.cpp": ("/src/aten/src/ATen/native/cpu/Sum.cpp",),
    "aten/src/ATen/native/cpu/Sum.cpp": ("../Reduce.h", "ATen/native/cpu/Loops.h"),
    "aten/src/ATen/native/cuda/Sum.cu": ("ATen/native/Reduce.h",),
    "aten/src/ATen/native/Reduce.h": ("c10/core/Device.h",),
    "aten/src/ATen/templates/Functions.h": ("ATen/Context.h",),
    "c10/test/core/Device_test.cpp": ("ATen/native/cpu/Loops.h", "torch/dim.h"),
    "functorch/csrc/dim/dim.cpp": ("torch/dim.h",),
}


def place(path: str) -> str:
    return path.removeprefix("/src/") if path.startswith("/") else f"build/{path}"


def parts() -> tuple[Part, ...]:
    return find_parts(parse_build_file(lambda name: NINJA), MEMBERS, place)


def spread(*changed: str) -> Spread:
    readers = find_readers(changed, INCLUDES)
    covered = find_included({each for part in parts() for each in part.sources}, INCLUDES)
    return spread_change(parts(), changed, readers, ("aten/src/ATen/templates/Functions.h",), covered)


def test_a_library_is_of_its_own_sources_and_of_what_is_linked_into_it() -> None:
    found = {part.name: part for part in parts()}
    assert found["libtorch_cpu.so"].files == {"lib/libtorch_cpu.so": "torch/lib/libtorch_cpu.so"}
    assert found["libtorch_cpu.so"].sources == {
        "build/aten/src/ATen/native/cpu/Sum.cpp.AVX2.cpp",
        "third_party/sleef/sleefsimd.c",
    }
    assert found["libtorch_cuda.so"].sources == {"aten/src/ATen/native/cuda/Sum.cu"}
    assert len(found) == 3


@each_case(
    ("changed", "due"),
    [
        ("c10/core/Device.cpp", ["libc10.so"]),
        ("third_party/sleef/sleefsimd.c", ["libtorch_cpu.so"]),
        ("aten/src/ATen/native/cpu/Sum.cpp", ["libtorch_cpu.so"]),  # by the file that includes it
        ("aten/src/ATen/native/cpu/Loops.h", ["libtorch_cpu.so"]),
        ("c10/core/Unused.h", []),
    ],
)
def test_what_a_change_reaches_is_due(changed: str, due: list[str]) -> None:
    found = spread(changed)
    assert ([part.name for part in found.due], found.findings) == (due, ())
    assert len(found.kept) == 3 - len(due)


@each_case(
    ("changed", "said"),
    [
        ("aten/src/ATen/native/cuda/Sum.cu", "Sum.cu reaches libtorch_cuda.so; of its sources 1 are CUDA's"),
        (
            "c10/core/Device.h",
            "c10/core/Device.h reaches libtorch_cuda.so, by aten/src/ATen/native/cuda/Sum.cu",
        ),
        (
            "torch/dim.h",
            "torch/dim.h is included by functorch/csrc/dim/dim.cpp, of which this configuration makes",
        ),
        ("ATen/Context.h", "is included by what aten/src/ATen/templates/Functions.h generates"),
        ("c10/core/New.cpp", "no step of this configuration compiles it: c10/core/New.cpp"),
        ("third_party/sleef", "no step of this configuration compiles it: third_party/sleef"),  # a submodule
        ("third_party/protobuf/main.cpp", "no step of this configuration compiles it"),  # into no library
    ],
)
def test_what_the_wheels_cuda_may_have_seen_or_nobody_knows_is_refused(changed: str, said: str) -> None:
    (finding,) = spread(changed).findings
    assert said in finding.text


def test_includes_are_seen_under_any_condition_and_in_what_writes_them() -> None:
    text = (
        b'#if 0\n#  include <a/b.h>\n#endif\nwrite("#include \\"c.h\\"")\n// #include "a/b.h"\n#include O\n'
    )
    assert list_includes(text) == ("a/b.h", "c.h")
    assert list_includes(b"'#include <ATen/${name}.h>'") == ("ATen/${name}.h",)


def test_an_include_fits_each_path_that_ends_with_it() -> None:
    includes = {"a.cpp": ("x/../core/./Device.h",), "b.cpp": ("Device.h",), "c.cpp": ("other/Device.h",)}
    assert set(find_readers(["c10/core/Device.h"], includes)) == {"c10/core/Device.h", "a.cpp", "b.cpp"}
    around = {"a.h": ("b.h",), "b.h": ("a.h",)}
    assert find_readers(["a.h"], around) == {"a.h": "a.h", "b.h": "a.h"}


def test_what_a_source_includes_is_found_over_any_number_of_files() -> None:
    assert find_included(["aten/src/ATen/native/cuda/Sum.cu"], {**INCLUDES, "c10/core/Device.h": ()}) == {
        "aten/src/ATen/native/cuda/Sum.cu",
        "aten/src/ATen/native/Reduce.h",
        "c10/core/Device.h",
    }


def test_ninja_is_left_no_step_that_makes_what_is_the_wheels() -> None:
    places = {f"lib/lib{name}.so": f"torch/lib/lib{name}.so" for name in ("c10", "torch_cuda")}
    text = take_from_wheel(NINJA, places, "/src/build", "/src")
    graph = parse_build_file(lambda name: text)
    assert not {"lib/libc10.so", "lib/libtorch_cuda.so"} & graph.outputs_of(
        ["lib/libtorch_cpu.so", "torch_cpu"]
    )
    assert "build lib/libc10.so" not in text and "build lib/libtorch_cuda.so" not in text
    assert '"/src/torch/lib/libc10.so" sleef/lib/libsleef.a ../torch/lib/libc10.so\n' in text
    needed = graph.find_needed_edges(["lib/libtorch_cpu.so"])
    assert [graph.edges[index].outputs[0] for index in needed if "Device" in str(graph.edges[index])] == []
    assert take_from_wheel(NINJA, {}, "/src/build", "/src") == NINJA
