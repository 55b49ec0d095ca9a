from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.facts.cuda.canned import HEADERS, answers, toolkit
from tests.facts.fakes import FakeProbe, machine, windows_machine, write
from torchbuild_tasks.facts.cuda.toolkit_folder import is_toolkit, read_toolkit
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.model import Toolkit

ROOT = "/usr/local/cuda-12.4"
NVCC = f"{ROOT}/bin/nvcc"


def complete(tmp_path: Path, version: str | None = "12.4.1", **files: str) -> FakeProbe:
    door = machine(tmp_path, files={**toolkit(ROOT, version), **files}, programs={NVCC: None})
    answers(door, NVCC)
    return door


def read(door: FakeProbe, root: str = ROOT, **more: Any) -> Toolkit:
    return read_toolkit(door, root, "known folder", **more)


def test_a_complete_one(tmp_path: Path) -> None:
    door = complete(tmp_path)
    write(tmp_path, {f"{ROOT}/lib64/libcublas.so": "", f"{ROOT}/lib64/libcublas.so.12": ""})
    assert read(door, aliases=("/usr/local/cuda",)) == Toolkit(
        path=ROOT,
        found_via="known folder",
        version="12.4.1",
        version_via="version.json",
        nvcc=NVCC,
        nvcc_version="12.4.131",
        headers=True,
        libraries=f"{ROOT}/lib64",
        archs=("5.0", "7.5", "9.0", "10.0"),
        gcc=13,
        clang=17,
        msc=(1910, 1950),
        parts={"cublas": f"{ROOT}/lib64/libcublas.so"},
        lacks=("cublas", "cusparse", "cusolver", "cufft", "curand", "nvrtc"),
        aliases=("/usr/local/cuda",),
    )


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"cuda": 1}', '{"cuda": {"version": 12}}', '{"cuda": {"version": "x"}}', "\0"]
)
def test_a_broken_version_file_leaves_the_compiler_to_say_it(tmp_path: Path, text: str) -> None:
    door = complete(tmp_path, version=None)
    write(tmp_path, {f"{ROOT}/version.json": text})
    assert (read(door).version, read(door).version_via) == ("12.4", "nvcc")


def test_a_version_in_text_of_old_toolkits(tmp_path: Path) -> None:
    door = complete(tmp_path, version=None)
    write(tmp_path, {f"{ROOT}/version.txt": "CUDA Version 10.2.89\nCUDA Patch Version 10.2.1\n"})
    assert (read(door).version, read(door).version_via) == ("10.2.89", "version.txt")
    assert read(door).nvcc_version == "12.4.131"


def test_a_root_without_nvcc_says_its_version_in_a_header(tmp_path: Path) -> None:
    door = machine(tmp_path, files=toolkit(ROOT, version=None))
    seen = read(door)
    assert (seen.version, seen.version_via, seen.nvcc, seen.headers) == ("12.4", "cuda.h", None, True)
    assert (seen.archs, seen.gcc, seen.problem) == ((), 13, None)
    assert door.asked == []


def test_nothing_says_a_version_but_our_mark(tmp_path: Path) -> None:
    door = machine(tmp_path, files={f"{ROOT}/include/cuda_runtime.h": ""})
    seen = read(door, version="12.4", managed=True)
    assert (seen.version, seen.version_via, seen.managed) == ("12.4", "the mark of this tool", True)
    assert not seen.headers  # crt/host_config.h is missing


@pytest.mark.parametrize("output", [Output(-11, ""), None, Output(0, "rubbish")])
def test_an_nvcc_that_does_not_work(tmp_path: Path, output: Output | None) -> None:
    door = machine(tmp_path, files=toolkit(ROOT), programs={NVCC: output})
    seen = read(door)
    assert seen.nvcc == NVCC
    assert seen.version == "12.4.1"
    assert seen.problem and seen.problem.startswith(f"{NVCC} --version ")


def test_an_nvcc_that_may_not_be_started(tmp_path: Path) -> None:
    door = machine(tmp_path, files={**toolkit(ROOT), NVCC: ""})
    assert (read(door).nvcc, read(door).problem) == (
        None,
        f"{NVCC} is not a program that this user may start",
    )


def test_what_is_no_toolkit(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/x/file": "", "/empty/": ""})
    assert read(door, "/none").problem == "it does not exist"
    assert read(door, "/x/file").problem == "it is a file, not the folder of a toolkit"
    assert read(door, "/empty").problem == "holds neither bin/nvcc nor the CUDA headers"
    assert [is_toolkit(door, root) for root in ("/none", "/x/file", "/empty")] == [False] * 3


PARTS = {
    "cusparse": "cusparse.h",
    "cusolver": "cusolverDn.h",
    "cufft": "cufft.h",
    "curand": "curand.h",
    "nvrtc": "nvrtc.h",
}


@pytest.mark.parametrize(
    ("include", "libraries", "lacks"),
    [
        (f"{ROOT}/include", f"{ROOT}/lib64", ()),
        ("/usr/include", "/usr/lib/x86_64-linux-gnu", ()),  # cuBLAS of 10.1 and 10.2
        ("/hpc/math_libs/12.4/include", "/hpc/math_libs/12.4/lib64", ()),
        (f"{ROOT}/include", "/elsewhere", ("cublas",)),
        ("/elsewhere", f"{ROOT}/lib64", ("cublas",)),
    ],
)
def test_what_torch_links_with_is_looked_for_where_cmake_looks(
    tmp_path: Path, include: str, libraries: str, lacks: tuple[str, ...]
) -> None:
    root = "/hpc/cuda/12.4" if "math_libs" in include else ROOT
    files = {f"{include}/cublas_v2.h": "", f"{libraries}/libcublas.so": ""}
    files |= {f"{root}/include/{header}": "" for header in PARTS.values()}
    files |= {f"{root}/lib64/lib{name}.so": "" for name in PARTS}
    door = machine(tmp_path, files={**toolkit(root), **files})
    assert read(door, root).lacks == lacks
    assert read(door, root, managed=True).lacks == ()


def test_parts_are_the_file_to_link_else_what_there_is(tmp_path: Path) -> None:
    files = (
        "lib64/libcusparse.so.12",
        "lib64/libcusparse.so.12.3.1",
        "lib64/libcufft_static.a",
        "lib64/libcurand.so.10",
        "extras/CUPTI/lib64/libcupti.so",
        "targets/x86_64-linux/lib/libcurand.so",
        "targets/sbsa-linux/lib/libnvrtc.so",
        "include/nvtx3/nvToolsExt.h",
        "include/cufile.h",
    )
    door = complete(tmp_path, **{f"{ROOT}/{name}": "" for name in files})
    assert read(door).parts == {
        "cusparse": f"{ROOT}/lib64/libcusparse.so.12",
        "cufft": f"{ROOT}/lib64/libcufft_static.a",
        "curand": f"{ROOT}/targets/x86_64-linux/lib/libcurand.so",
        "cupti": f"{ROOT}/extras/CUPTI/lib64/libcupti.so",
        "nvtx3": f"{ROOT}/include/nvtx3/nvToolsExt.h",
        "cufile": f"{ROOT}/include/cufile.h",
    }


def test_cudnn_and_nccl_inside(tmp_path: Path) -> None:
    cudnn = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 8\n#define CUDNN_PATCHLEVEL 0\n"
    nccl = '#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n#define NCCL_SUFFIX ""\n'
    files = {f"{ROOT}/include/cudnn_version.h": cudnn, f"{ROOT}/include/nccl.h": nccl}
    door = complete(tmp_path, **files, **{f"{ROOT}/lib64/libcudnn.so": ""})
    seen = read(door)
    assert (seen.cudnn, seen.nccl) == ("9.8.0", "2.21.5")
    assert seen.parts["cudnn"] == f"{ROOT}/lib64/libcudnn.so"
    assert seen.parts["nccl"] == f"{ROOT}/include/nccl.h"


def test_the_cudnn_of_old_days_has_its_version_in_its_header(tmp_path: Path) -> None:
    cudnn = "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 6\n#define CUDNN_PATCHLEVEL 5\n"
    door = complete(tmp_path, **{f"{ROOT}/include/cudnn.h": cudnn})
    assert read(door).cudnn == "7.6.5"


def test_the_layout_of_wheels_has_no_runtime_to_link(tmp_path: Path) -> None:
    root = "/v/lib/python3.12/site-packages/nvidia/cu13"
    files = {f"{root}/include/{name}": text for name, text in HEADERS.items()}
    door = machine(tmp_path, files={**files, f"{root}/lib/libcudart.so.13": ""})
    assert is_toolkit(door, root)
    assert (read(door, root).headers, read(door, root).libraries) == (True, None)


def test_the_layout_of_conda(tmp_path: Path) -> None:
    target = "/opt/conda/targets/x86_64-linux"
    files = {f"{target}/include/{name}": text for name, text in HEADERS.items()}
    files[f"{target}/lib/libcudart.so"] = ""
    programs = {"/opt/conda/bin/nvcc": None, "/opt/conda/bin/cuobjdump": None}
    door = machine(tmp_path, files=files, programs=programs)
    answers(door, "/opt/conda/bin/nvcc")
    seen = read(door, "/opt/conda")
    assert (seen.headers, seen.libraries, seen.gcc) == (True, f"{target}/lib", 13)
    assert seen.cuobjdump == "/opt/conda/bin/cuobjdump"


def test_debians_package(tmp_path: Path) -> None:
    root = "/usr/lib/nvidia-cuda-toolkit"
    files = {f"/usr/include/{name}": text for name, text in HEADERS.items()}
    files["/usr/lib/x86_64-linux-gnu/libcudart.so"] = ""
    programs = {f"{root}/bin/nvcc": None, "/usr/bin/cuobjdump": None}
    door = machine(tmp_path, files=files, programs=programs)
    answers(door, f"{root}/bin/nvcc")
    seen = read(door, root)
    assert (seen.version, seen.headers, seen.gcc) == ("12.4", True, 13)
    assert (seen.libraries, seen.cuobjdump) == ("/usr/lib/x86_64-linux-gnu", "/usr/bin/cuobjdump")
    # Its other folder has links to a few of these files, and no compiler.
    write(tmp_path, {"/usr/lib/cuda/include/cuda.h": ""})
    assert (read(door, "/usr/lib/cuda").nvcc, read(door, "/usr/lib/cuda").problem) == (None, None)


def test_on_windows(tmp_path: Path) -> None:
    root = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4"
    files = {**toolkit(root), f"{root}\\lib\\x64\\cublas.lib": "", f"{root}\\include\\curand.h": ""}
    nvcc = f"{root}\\bin\\nvcc.exe"
    door = windows_machine(tmp_path, files=files, programs={nvcc: None, f"{root}\\bin\\cuobjdump.exe": None})
    answers(door, nvcc)
    seen = read(door, root)
    assert (seen.version, seen.nvcc, seen.headers) == ("12.4.1", nvcc, True)
    assert (seen.libraries, seen.cuobjdump) == (f"{root}\\lib\\x64", f"{root}\\bin\\cuobjdump.exe")
    assert seen.parts == {
        "cublas": f"{root}\\lib\\x64\\cublas.lib",
        "curand": f"{root}\\include\\curand.h",
    }


def test_json_of_a_real_installer(tmp_path: Path) -> None:
    """Many parts stand in it, each with a version of its own."""
    parts = {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "cuda_nvcc": {"version": "12.4.131"}}
    door = complete(tmp_path, version=None, **{f"{ROOT}/version.json": json.dumps(parts)})
    assert read(door).version == "12.4.1"
