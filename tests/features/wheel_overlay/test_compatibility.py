"""Whether a wheel was built as torch_python would be compiled against it."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.features.wheel_overlay.compatibility import (
    find_differences,
    find_header_differences,
    read_settings,
    shared_settings,
)

# As a build tree of 2.6.0 has it, and as the sample has it, shortened.
HEADER = """
#define CAFFE2_BUILD_STRINGS { \\
  {"TORCH_VERSION", "2.6.0"}, \\
  {"CXX_FLAGS", " -D_GLIBCXX_USE_CXX11_ABI=0 -fabi-version=11 -DNDEBUG -DUSE_KINETO -O2 -fPIC"}, \\
  {"BLAS_INFO", "open"}, \\
  {"USE_CUDA", "ON"}, \\
  {"CUDA_VERSION", "12.4"}, \\
  {"USE_NCCL", "1"}, \\
  {"USE_MPI", "OFF"}, \\
  {"USE_CUSPARSELT", ""}, \\
}
"""
SAMPLE = """{"CXX_FLAGS", R"cmake( -Wall -DNAME="a")cmake"},\n    {"USE_NUMPY", R"cmake(ON)cmake"},"""
# What the torch of PyPI's wheel says of itself.
WHEEL = {
    "compiler": "GCC 9.3",
    "CXX_FLAGS": " -D_GLIBCXX_USE_CXX11_ABI=0 -fabi-version=11 -DUSE_KINETO -DNDEBUG -O2 -Wall",
    "USE_CUDA": "ON",
    "CUDA_VERSION": "12.4",
    "USE_NCCL": "ON",
    "USE_MPI": "OFF",
    "BLAS_INFO": "mkl",
}
GCC = ("GNU", "12.2.0")


def test_settings_are_read_from_the_header_that_cmake_writes() -> None:
    found = read_settings(HEADER)
    assert (found["USE_CUDA"], found["USE_CUSPARSELT"], found["BLAS_INFO"]) == ("ON", "", "open")
    assert read_settings(SAMPLE) == {"CXX_FLAGS": ' -Wall -DNAME="a"', "USE_NUMPY": "ON"}


def test_another_spelling_other_warnings_and_a_newer_compiler_are_no_difference() -> None:
    assert find_differences(shared_settings(WHEEL), read_settings(HEADER), GCC) == ()


@each_case(
    ("name", "value", "said", "fix"),
    [
        ("USE_CUDA", "OFF", "USE_CUDA: the wheel has OFF, and this configuration ON", "--cpu"),
        ("CUDA_VERSION", "12.6", "the wheel has 12.6", "--cuda --cuda-toolkit 12.6"),
        ("CUDA_VERSION", "", "the wheel has nothing, and this configuration 12.4", "--cpu"),
        ("USE_NCCL", "", "USE_NCCL: the wheel has nothing, and this configuration 1", "--set USE_NCCL=0"),
        ("USE_MPI", "ON", "USE_MPI: the wheel has ON, and this configuration OFF", "--set USE_MPI=1"),
    ],
)
def test_a_setting_that_differs_is_named_with_what_makes_it_alike(
    name: str, value: str, said: str, fix: str
) -> None:
    (found,) = find_differences({**WHEEL, name: value}, read_settings(HEADER), GCC)
    assert said in found.text
    assert found.fix == fix


@each_case(
    ("before", "after", "fixes"),
    [
        ("_ABI=0", "_ABI=1", {"", "--set _GLIBCXX_USE_CXX11_ABI=1"}),
        (" -DNDEBUG", "", {"--build-type Debug"}),
        (" -DUSE_KINETO", "", {"--set USE_KINETO=0"}),
        (" -DUSE_KINETO", " -DUSE_KINETO -DUSE_XNNPACK", {"--set USE_XNNPACK=1"}),
        (" -fabi-version=11", "", {""}),
        ("-O2", "-DC10_OWN=2", {""}),
    ],
)
def test_a_definition_that_only_one_of_them_has_is_named(before: str, after: str, fixes: set[str]) -> None:
    wheel = {**WHEEL, "CXX_FLAGS": WHEEL["CXX_FLAGS"].replace(before, after)}
    found = find_differences(wheel, read_settings(HEADER), GCC)
    assert {each.fix for each in found} == fixes
    assert all("is compiled with it" in each.text for each in found)


@each_case(
    ("theirs", "ours", "differs"),
    [
        ("GCC 9.3", ("GNU", "9.5.0"), False),
        ("GCC 13.3", ("GNU", "12.2.0"), True),
        ("GCC 9.3", ("Clang", "17.0.6"), True),
        ("clang 17.0.6", ("Clang", "18.1.0"), False),
        ("MSVC 193833135", ("MSVC", "19.38.33135.0"), False),
        ("MSVC 193833135", ("Clang", "18.1.0"), True),
    ],
)
def test_a_compiler_of_another_family_or_an_older_one_is_refused(
    theirs: str, ours: tuple[str, str], differs: bool
) -> None:
    found = find_differences({**WHEEL, "compiler": theirs}, read_settings(HEADER), ours)
    assert bool(found) == differs
    assert all(f"built by {theirs}" in each.text for each in found)


def test_what_is_compiled_goes_by_what_it_can_read() -> None:
    here = {**read_settings(HEADER), "USE_CUDA": "OFF", "CUDA_VERSION": ""}
    here["CXX_FLAGS"] += " -DLIBKINETO_NOCUPTI"
    assert len(find_differences(WHEEL, here, GCC)) == 3
    assert find_differences(WHEEL, here, GCC, reads=lambda name: name.startswith("_")) == ()
    flags = here["CXX_FLAGS"].replace("ABI=0", "ABI=1")
    found = find_differences(
        WHEEL, {**here, "CXX_FLAGS": flags}, GCC, reads=lambda name: name.startswith("_")
    )
    assert len(found) == 2
    assert find_differences(WHEEL, here, ("Clang", "14"), reads=lambda name: False)


def test_a_header_that_cmake_writes_defines_the_same() -> None:
    name = "torch/include/ATen/Config.h"
    wheel = "// of a builder\n#define AT_MKL_ENABLED() 1\n#define ONCE\n/* #undef C10_USE_NUMA */\n"
    assert find_header_differences(name, wheel, wheel.replace("of a builder", "of ours")) == ()
    here = "#define AT_MKL_ENABLED() 0\r\n#define C10_USE_NUMA\n"
    texts = [each.text for each in find_header_differences(name, wheel, here)]
    assert texts == [
        f"AT_MKL_ENABLED() of {name}: the wheel has 1, and this configuration 0",
        f"C10_USE_NUMA of {name}: the wheel has nothing, and this configuration it defined",
        f"ONCE of {name}: the wheel has it defined, and this configuration nothing",
    ]
