"""What CMake looked for in vain: a program, a library, a header or variables, by the names that it prints."""

# ruff: noqa: E501  (a log in one line)

from __future__ import annotations

from tests.features.diagnosis.test_premises import read
from tests.support.for_each import each_case

_NONE = "CMake Error at a.cmake:7 ({}):\n  Could not find {} using the following {}: {}\n\n-- Configuring incomplete, errors occurred!\n"
_UNSET = (
    "CMake Error: The following variables are used in this project, but they are set to NOTFOUND.\n"
    "Please set them or make sure they are set and tested correctly in the CMake files:\n{}\n"
    "-- Configuring incomplete, errors occurred!\n"
)
_USED = "\n   used as include directory in directory /s\n"


@each_case(
    "command, variable, of, names, told",
    [
        ("find_program", "Python_EXECUTABLE", "names", "python3, python", "-DPython_EXECUTABLE=PROGRAM"),
        ("find_program", "PROTOC", "names", "protoc", "-DPROTOC=PROGRAM"),
        ("find_program", "GEN", "names", "foogen, foo-gen", "-DGEN=PROGRAM"),
        ("find_library", "NUMA_LIBRARY", "names", "numa", "libnuma-dev"),
        ("find_library", "ODD_LIB", "names", "numa", "libnuma-dev"),
        ("find_library", "ODD_LIB", "names", "odd, libodd", "-DODD_LIB=FILE"),
        ("find_path", "ODD_INC", "files", "nccl.h", "nvidia-nccl"),
        ("find_path", "ODD_INCLUDE_DIR", "files", "odd.h", "-DODD_INCLUDE_DIR=FOLDER"),
    ],
)
def test_what_has_one_of_the_names_is_told_and_the_variable(
    command: str, variable: str, of: str, names: str, told: str
) -> None:
    reading = read(_NONE.format(command, variable, of, names))
    fix = reading.diagnoses[0].fix
    assert told in fix
    assert ("python3-dev" in fix) is False
    assert reading.kind == ("missing-tool" if command == "find_program" else "missing-package")


@each_case(
    "listed, component, given",
    [
        (f"/s/CUDNN_INCLUDE{_USED}CUDNN_LIBRARY\n", "cuDNN", "-DCUDNN_INCLUDE=FOLDER -DCUDNN_LIBRARY=FILE"),
        ('odd_lib (ADVANCED)\n    linked by target "a"\n', "", "-Dodd_lib=FILE"),
        (
            f"C:/s/NCCL_INCLUDE_DIR{_USED}ODD_ROOT{_USED}",
            "NCCL",
            "-DNCCL_INCLUDE_DIR=FOLDER -DODD_ROOT=FOLDER",
        ),
    ],
)
def test_variables_that_have_no_value_are_all_named(listed: str, component: str, given: str) -> None:
    reading = read(_UNSET.format(listed))
    assert reading.component == component
    assert given in reading.diagnoses[0].fix
