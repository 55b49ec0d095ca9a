"""What a checkout reads, from texts as CMake's and Python's files have them in 1.10 to 2.6."""

from __future__ import annotations

from pathlib import Path

from tests.facts.fakes import machine
from torchbuild_tasks.facts.tree_reads import look_at_reads
from torchbuild_tasks.model import Switch

TOP = """\
# option(USE_COMMENTED "no" ON)
option(USE_CUDA "Use CUDA" ON)
cmake_dependent_option(
    USE_NCCL "Use NCCL (Linux)" ON
    "USE_CUDA OR USE_ROCM;UNIX;NOT APPLE" OFF)
cmake_dependent_option(USE_RCCL "Use RCCL" ON
    USE_NCCL OFF)
cmake_dependent_option(
  USE_FLASH "Whether to build it.\\
  Will be off" ON "USE_CUDA" OFF)
if(USE_GOLD AND NOT
   USE_ASAN)
  set(USE_ONLY_SET ON)
endif()
set(BUILD_KIND "x" CACHE STRING "kept")
include(cmake/Dependencies.cmake)
add_subdirectory(c10)
add_subdirectory("${TORCH_ROOT}/caffe2/../aten")
"""
FILES = {
    "/src/CMakeLists.txt": TOP,
    "/src/c10/CMakeLists.txt": 'message("${USE_IN_C10}")',
    "/src/aten/CMakeLists.txt": "if(DEFINED ENV{USE_IN_ATEN})\nendif()",
    "/src/cmake/Dependencies.cmake": 'set_property(CACHE BLAS PROPERTY STRINGS "A;B")\n'
    'if(BLAS STREQUAL "Eigen")\nelseif(BLAS STREQUAL MKL)\nelseif(WITH_BLAS STREQUAL "open")\nendif()',
    "/src/cmake/Modules/FindX.cmake": "set(X_DIR $ENV{X_HOME})\n"
    'if("${X_THREADS}" STREQUAL "OMP")\nelseif("${X_THREADS}" STREQUAL "NATIVE")\nelse()\n'
    '  message(FATAL_ERROR "Unknown backend: ${X_THREADS}")\nendif()',
    "/src/setup.py": "# USE_DOCUMENTED\ncheck_env_flag('DEBUG')\nos.getenv(\"MAX_JOBS\")",
    "/src/third_party/gloo/CMakeLists.txt": "if(USE_REDIS)\nendif()",
}


def test_names_switches_and_values(tmp_path: Path) -> None:
    reads = look_at_reads(machine(tmp_path, files=FILES), "/src")
    assert reads
    assert reads.switches == (
        Switch(name="USE_CUDA", default="ON", place="CMakeLists.txt:2"),
        Switch(name="USE_FLASH", default="ON", place="CMakeLists.txt:8", needs="USE_CUDA"),
        Switch(
            name="USE_NCCL",
            default="ON",
            place="CMakeLists.txt:3",
            needs="USE_CUDA OR USE_ROCM;UNIX;NOT APPLE",
        ),
        Switch(name="USE_RCCL", default="ON", place="CMakeLists.txt:6", needs="USE_NCCL"),
    )
    assert set(reads.names) == {
        *("BUILD_KIND", "USE_ASAN", "USE_CUDA", "USE_FLASH", "USE_GOLD", "USE_IN_ATEN", "USE_IN_C10"),
        *("USE_NCCL", "USE_RCCL"),
    }
    assert {"USE_IN_ATEN", "X_HOME", "DEBUG", "MAX_JOBS"} <= set(reads.direct)
    assert "USE_DOCUMENTED" not in reads.direct
    assert reads.flags == ("DEBUG",)
    assert reads.values == {"BLAS": ("Eigen", "MKL"), "X_THREADS": ("NATIVE", "OMP")}


def test_submodules_are_searched_for_requested_names(tmp_path: Path) -> None:
    door = machine(tmp_path, files=FILES)
    found = look_at_reads(door, "/src", ("USE_REDIS", "USE_REDES"))
    assert found
    assert "USE_REDIS" in found.names
    assert "USE_REDES" not in found.names
    assert look_at_reads(door, "/none") is None
