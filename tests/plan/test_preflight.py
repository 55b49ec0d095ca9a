"""The commands of the pre-flight, as texts."""

from __future__ import annotations

import pytest

from tests.support.preflight import planned


def test_linux() -> None:
    plain, kernel = planned(cxx_flags=("-O2", "-march=native"), nvcc_flags=("--threads", "2")).trials
    assert plain.argv == (
        *("/usr/bin/g++", "-O2", "-march=native", "-std=c++17", "-fPIC"),
        *("-o", "preflight_cpp.o", "-c", "preflight.cpp"),
    )
    assert kernel.argv == (
        *("/cuda/bin/nvcc", "-forward-unknown-to-host-compiler", "-ccbin=/usr/bin/g++", "--threads", "2"),
        *("-gencode", "arch=compute_86,code=sm_86", "-std=c++17", "-Xcompiler=-fPIC"),
        *("-x", "cu", "-c", "preflight.cu", "-o", "preflight_cuda.o"),
    )
    assert (plain.output, kernel.output) == ("preflight_cpp.o", "preflight_cuda.o")


def test_msvc() -> None:
    cl = r"C:\VS\VC\bin\cl.exe"
    plain, kernel = planned(
        cxx=cl, host=cl, nvcc=r"C:\CUDA\bin\nvcc.exe", msvc=True, cxx_flags=("/Zc:x",)
    ).trials
    assert plain.argv == (
        *(cl, "/nologo", "/EHsc", "/Zc:x", "/std:c++17"),
        *("/Fopreflight_cpp.obj", "/c", "preflight.cpp"),
    )
    assert kernel.argv == (
        *(r"C:\CUDA\bin\nvcc.exe", "-forward-unknown-to-host-compiler", f"-ccbin={cl}"),
        *("-gencode", "arch=compute_86,code=sm_86", "-std=c++17", "-Xcompiler=/EHsc"),
        *("-x", "cu", "-c", "preflight.cu", "-o", "preflight_cuda.obj"),
    )


def test_msvc_knows_no_cpp_11() -> None:
    assert "/std:c++14" in planned(msvc=True, cxx_standard=11).trials[0].argv
    assert "-std=c++11" in planned(cxx_standard=11).trials[0].argv


def test_what_is_not_named_is_left_to_nvcc() -> None:
    argv = planned(host="", forwards=False).trials[1].argv
    assert not [word for word in argv if word.startswith(("-ccbin", "-forward"))]


def test_ptx_is_code_of_its_own() -> None:
    plan = planned(archs=("7.5", "9.0a", "10.0f", "12.0+PTX"))
    assert plan.archs == ("sm_75", "sm_90a", "sm_100f", "sm_120", "compute_120")
    argv = plan.trials[1].argv
    assert [word for word in argv if word.startswith("arch=")] == [
        "arch=compute_75,code=sm_75",
        "arch=compute_90a,code=sm_90a",
        "arch=compute_100f,code=sm_100f",
        "arch=compute_120,code=sm_120",
        "arch=compute_120,code=compute_120",
    ]
    assert argv.count("-gencode") == 5


def test_the_users_own_flags_make_code_too() -> None:
    flags = ("-gencode", "arch=compute_70,code=[sm_70,compute_70]", "-gencode=arch=compute_90,code=lto_90")
    assert planned(nvcc_flags=flags).archs == ("sm_70", "compute_70", "sm_86")


def test_a_launcher_is_a_list() -> None:
    plain, kernel = planned(launcher="/usr/bin/ccache", cuda_launcher="env;A=1;sccache").trials
    assert plain.launcher == ("/usr/bin/ccache",)
    assert kernel.launcher == ("env", "A=1", "sccache")
    assert planned().trials[0].launcher == ()


def test_every_source_is_compiled() -> None:
    plan = planned()
    assert [trial.argv for trial in plan.trials if not set(plan.sources) & set(trial.argv)] == []
    assert plan.cubin == plan.trials[1].output


def test_a_name_is_no_architecture() -> None:
    with pytest.raises(ValueError, match="Ampere"):
        planned(archs=("Ampere",))
