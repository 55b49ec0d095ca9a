from __future__ import annotations

import ast
import faulthandler
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.verify import (
    companion_checks,
    cuda_checks,
    cuda_math,
    cuda_reasons,
    torch_checks,
    torch_probe,
)

FILES = [torch_checks, cuda_checks, cuda_math, companion_checks]
CONFIGS = Path(__file__).with_name("configs")


def config(name: str) -> str:
    return (CONFIGS / f"{name}.txt").read_text(encoding="utf-8")


def test_the_line_that_leads_to_a_torch_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", ["", str(tmp_path)])
    (tmp_path / "a.pth").write_text("/one\n", "utf-8")
    (tmp_path / "old.pth").write_text("import sys\n/other\n", "utf-8")
    assert torch_probe.led_by("/other/torch/__init__.py") == {"led_by": str(tmp_path / "old.pth")}
    assert torch_probe.led_by("/another/torch/__init__.py") == {}


# ---------------------------------------------------------------- torch.__config__.show()


def test_torch_2_13_cpu() -> None:
    values = torch_probe.parse_config(config("torch-2.13.0-cpu-linux"))
    flags = values.pop("CXX_FLAGS")
    assert flags.startswith("-fvisibility-inlines-hidden -DUSE_PTHREADPOOL")
    assert flags.endswith("-Wno-stringop-overflow")
    assert values.pop("CUDA_FLAGS").endswith("-DC10_NODEPRECATED")
    assert values == {
        "compiler": "GCC 13.3",
        "cxx_standard": "202002",
        "mkl": "2024.2",
        "onednn": "3.12.0",
        "openmp": "4.5",
        "cpu_capability": "AVX2",
        "lapack": "ON",
        "nnpack": "ON",
        "BLAS_INFO": "mkl",
        "BUILD_TYPE": "Release",
        "COMMIT_SHA": "cf30153c4c131c8164ee7798e5022d810682e2cb",
        "CXX_COMPILER": "/opt/rh/gcc-toolset-13/root/usr/bin/c++",
        "LAPACK_INFO": "mkl",
        "PERF_WITH_AVX": "1",
        "PERF_WITH_AVX2": "1",
        "TORCH_VERSION": "2.13.0",
        **dict.fromkeys(("USE_GLOO", "USE_MKL", "USE_MKLDNN", "USE_NNPACK", "USE_OPENMP"), "ON"),
        **dict.fromkeys(("USE_CUDNN", "USE_CUSPARSELT", "USE_GFLAGS", "USE_GLOG", "USE_MPI"), "OFF"),
        **dict.fromkeys(("USE_NCCL", "USE_ROCM", "USE_ROCM_KERNEL_ASSERT", "USE_XCCL", "USE_XPU"), "OFF"),
        "USE_CUDA": "0",
    }


@each_case(
    ("name", "wanted"),
    [
        (
            "torch-1.13.1-cu117-linux-no-gpu",
            {"compiler": "GCC 9.3", "cxx_standard": "201402", "mkl": "2020.0.0", "onednn": "2.6.0"}
            | {"CUDA_VERSION": "11.7", "USE_EXCEPTION_PTR": "1", "USE_ROCM": "OFF"},
        ),
        (
            "torch-1.13.1-cu117-gpu",
            {"mkl": "2021.4", "cuda_runtime": "11.7", "cudnn": "8.5", "magma": "2.6.1"}
            | {"gencode": "-gencode;arch=compute_70,code=sm_70;-gencode;arch=compute_86,code=sm_86"},
        ),
        (
            "torch-2.6.0-windows-msvc",
            {"compiler": "MSVC 194234436", "openmp": "2019", "nnpack": "OFF", "BUILD_TYPE": "RelWithDebInfo"}
            | {"LAPACK_INFO": "mkl", "PERF_WITH_AVX": "1"},
        ),
        (
            "torch-2.7.0a0-clang-minimal",
            {"compiler": "clang 18.1.3", "lapack": "OFF", "cpu_capability": "NO AVX", "LAPACK_INFO": ""}
            | {"CXX_FLAGS": '-Wl,-rpath,/opt/mine -DGREETING="hello, WORLD" -g -O0', "USE_OPENMP": "OFF"},
        ),
    ],
)
def test_other_torches(name: str, wanted: dict[str, str]) -> None:
    values = torch_probe.parse_config(config(name))
    assert {key: values.get(key) for key in wanted} == wanted


def test_commas_and_blanks_stay_in_their_value() -> None:
    values = torch_probe.parse_config(config("torch-2.6.0-windows-msvc"))
    assert values["CXX_FLAGS"].endswith("/wd4624 /wd4068,4067 /wd4267")
    assert values["CXX_COMPILER"].startswith("C:/Program Files/Microsoft Visual Studio")


@each_case("text", ["", "PyTorch built with:\n", "nonsense, A=1, B=2"])
def test_a_text_that_says_nothing(text: str) -> None:
    assert torch_probe.parse_config(text) == {"lapack": "OFF", "nnpack": "OFF"}


def test_parallel_info() -> None:
    text = config("torch-2.13.0-cpu-linux.parallel")
    values = torch_probe.parse_lines(text, torch_probe.PARALLEL_LINES, "")
    assert values == {"threads": "2", "hardware_threads": "2", "parallel_backend": "OpenMP"}


# ---------------------------------------------------------------- what this process has loaded


def test_the_systems_own_library_is_among_them() -> None:
    files = torch_probe.mapped_libraries() | torch_probe.loaded_dlls()
    names = {re.split(r"[/\\]", file)[-1].lower() for file in files}
    assert any(re.match(r"libc\.so|libc-|ld-|kernel32\.dll", name) for name in names), names


@pytest.mark.parametrize(
    ("key", "file"),
    [
        ("libstdcxx", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"),
        ("openmp_runtime", "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0"),
        ("openmp_runtime", "/site/torch/lib/libgomp-24e2ab19.so.1"),
        ("openmp_runtime", "/opt/intel/libiomp5.so"),
        ("openmp_runtime", "C:/venv/Library/bin/libiomp5md.dll"),
        ("openmp_runtime", "C:/Windows/System32/VCOMP140.DLL"),
        ("openmp_runtime", "C:/Windows/System32/libomp140.x86_64.dll"),
        ("msvcp", "C:/Windows/System32/MSVCP140.dll"),
    ],
)
def test_a_runtime_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch, key: str, file: str) -> None:
    monkeypatch.setattr(torch_probe, "mapped_libraries", lambda: {file, "/lib/libompi.so", "/lib/libm.so.6"})
    monkeypatch.setattr(torch_probe, "loaded_dlls", lambda: {"C:/Windows/System32/msvcp_win.dll"})
    assert torch_probe.runtimes() == {key: file}


# ---------------------------------------------------------------- the script


@each_case("module", [torch_probe, cuda_reasons, *FILES])
def test_it_is_written_in_the_python_of_old_torches(module: object) -> None:
    source = Path(str(getattr(module, "__file__", ""))).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert "__future__" in imported
    assert not [name for name in imported if str(name).startswith(("torchbuild", "packaging"))]


def test_every_check_has_its_function_and_every_function_is_a_check() -> None:
    assert [file.__name__.rpartition(".")[2] for file in FILES] == list(torch_probe.FILES)
    functions = [
        name[6:] for file in [torch_probe, *FILES] for name in vars(file) if name.startswith("check_")
    ]
    assert sorted(functions) == sorted(torch_probe.CHECKS)
    for name in (each for each in torch_probe.CHECKS if not hasattr(torch_probe, f"check_{each}")):
        assert torch_probe.find_check(FILES, name).__name__ == f"check_{name}"


def test_some_checks_have_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    passed = {"outcome": "passed", "detail": "", "values": {}}
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(torch_probe, "ask", lambda check, computing: passed)
    monkeypatch.setattr(
        torch_probe, "import_sibling", lambda name: dict(zip(torch_probe.FILES, FILES, strict=True))[name]
    )
    monkeypatch.setattr(faulthandler, "enable", lambda: None)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda limit, exit: limits.append(limit))
    torch_probe.main(["--limit", "100", "matmul", "cuda_available", "cuda_op", "cuda_matmul"])
    assert limits == [100.0, 100.0, 60.0, 20.0, 100.0]
    limits.clear()
    torch_probe.main(["--limit", "7", "cuda_op"])
    assert limits == [7.0, 7.0]


@pytest.mark.parametrize(("check", "last"), [("matmul", "end"), ("cublas", "again")])
def test_after_a_fault_on_the_gpu_a_fresh_process_is_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], check: str, last: str
) -> None:
    def ask(function: Any, computing: object) -> dict[str, object]:
        outcome = "failed" if function.__name__ == f"check_{check}" else "passed"
        return {"outcome": outcome, "detail": "", "values": {}}

    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(torch_probe, "ask", ask)
    monkeypatch.setattr(
        torch_probe, "import_sibling", lambda name: dict(zip(torch_probe.FILES, FILES, strict=True))[name]
    )
    monkeypatch.setattr(faulthandler, "enable", lambda: None)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda limit, exit: None)
    torch_probe.main([check, "nccl"])
    lines = [json.loads(line.partition(torch_probe.MARK)[2]) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1] == {last: True}
    assert ("nccl" in [line.get("check") for line in lines]) is (last == "end")


def answer(error: Exception) -> dict[str, object]:
    def check(torch: object) -> tuple[str, dict[str, str]]:
        raise error

    return torch_probe.ask(check, torch_checks)


@pytest.fixture
def any_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: name)


@pytest.mark.usefixtures("any_torch")
def test_an_answer() -> None:
    result = torch_probe.ask(lambda torch: (f"{torch} is fine", {"a": "b"}), torch_checks)
    assert result.pop("seconds") >= 0
    assert result == {"outcome": "passed", "detail": "torch is fine", "values": {"a": "b"}}


@pytest.mark.usefixtures("any_torch")
def test_what_torch_gets_wrong_is_reported_without_ornament() -> None:
    result = answer(torch_checks.Wrong("float32 off by 1.0e-01"))
    assert (result["outcome"], result["detail"]) == ("failed", "float32 off by 1.0e-01")


@pytest.mark.usefixtures("any_torch")
def test_what_is_wrong_may_still_bring_values() -> None:
    result = answer(torch_checks.Wrong("no kernel image", {"arch_list": "sm_75"}))
    assert (result["outcome"], result["values"]) == ("failed", {"arch_list": "sm_75"})


@pytest.mark.usefixtures("any_torch")
def test_what_is_not_possible_may_still_bring_values() -> None:
    result = answer(torch_checks.NotPossible("no numpy", {"built_with": "OFF"}))
    assert (result["outcome"], result["values"]) == ("not possible", {"built_with": "OFF"})
    assert answer(torch_checks.NotPossible("no ninja"))["values"] == {}


@pytest.mark.usefixtures("any_torch")
def test_an_error_is_reported_with_its_kind_and_its_place() -> None:
    detail = str(answer(RuntimeError("LAPACK is missing"))["detail"])
    assert detail.startswith("RuntimeError: LAPACK is missing\n  at ")
    assert "test_torch_probe.py" in detail
    assert "torch_probe.py:1" not in detail.replace("test_torch_probe.py", "")


@pytest.mark.usefixtures("any_torch")
def test_a_compilers_flood_is_cut_in_its_middle() -> None:
    detail = str(answer(RuntimeError("first" + "x" * 90_000 + "last"))["detail"])
    assert len(detail) < 3000
    assert "first" in detail
    assert "last" in detail


def test_an_event_is_one_ascii_line(capsys: pytest.CaptureFixture[str]) -> None:
    torch_probe.emit(check="import", detail="Zeile\nTür\u2028")
    mark, event, rest = capsys.readouterr().out.partition('{"')
    assert (mark, rest.count("\n")) == (torch_probe.MARK, 1)
    assert rest.isascii()
    assert json.loads(event + rest)["detail"] == "Zeile\nTür\u2028"
