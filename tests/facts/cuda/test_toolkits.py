from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.facts.cuda.canned import answers, toolkit
from tests.facts.fakes import FakeProbe, link, machine, windows_machine, write
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.cuda.toolkits import look_for_toolkits
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.model import Python, Toolkit

PROGRAMS = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA"


def linux(tmp_path: Path, *roots: str, **environ: str) -> FakeProbe:
    files = {path: text for root in roots for path, text in toolkit(root).items()}
    programs = {f"{root}/bin/nvcc": None for root in roots}
    door = machine(tmp_path, files=files, programs=programs, environ=environ)
    for root in roots:
        answers(door, f"{root}/bin/nvcc")
    return door


def found(door: FakeProbe, asked: str | None = None, **more: Any) -> tuple[Toolkit, ...]:
    values = {"store": None, "pythons": (), **more}
    return look_for_toolkits(door, asked, values["store"], values["pythons"])[0]


def places(door: FakeProbe, asked: str | None = None, **more: Any) -> list[tuple[str, str]]:
    return [(seen.path, seen.found_via) for seen in found(door, asked, **more)]


def test_in_the_order_in_which_they_would_be_taken(tmp_path: Path) -> None:
    named = ("/a/asked", "/a/home", "/a/path", "/a/root", "/a/v12.4", "/a/v12.10")
    usual = ("/usr/local/cuda-12.4", "/usr/local/cuda-12.10", "/opt/cuda", "/conda")
    door = linux(
        tmp_path,
        *named,
        *usual,
        CUDA_HOME="/a/home",
        CUDA_PATH="/a/path",
        CUDA_TOOLKIT_ROOT_DIR="/a/root",
        CUDA_PATH_V12_4="/a/v12.4",
        CUDA_PATH_V12_10="/a/v12.10",
        CONDA_PREFIX="/conda",
        PATH="/usr/bin:/usr/local/cuda-12.4/bin",
    )
    assert places(door, "/a/asked") == [
        ("/a/asked", "--cuda-toolkit"),
        ("/a/home", "CUDA_HOME"),
        ("/a/path", "CUDA_PATH"),
        ("/a/root", "CUDA_TOOLKIT_ROOT_DIR"),
        ("/a/v12.10", "CUDA_PATH_V12_10"),
        ("/a/v12.4", "CUDA_PATH_V12_4"),
        ("/usr/local/cuda-12.4", "PATH"),
        ("/usr/local/cuda-12.10", "known folder"),
        ("/opt/cuda", "known folder"),
        ("/conda", "CONDA_PREFIX"),
    ]


@pytest.mark.parametrize("asked", ["12.6", "12", "pypi:13.0", "pypi:", "cu126", "v12.6", None, ""])
def test_what_is_no_path_is_not_looked_for(tmp_path: Path, asked: str | None) -> None:
    assert places(machine(tmp_path), asked) == []


@pytest.mark.parametrize("asked", ["/file", "/none", "none", "./12.6"])
def test_what_is_requested_and_is_none_is_reported(tmp_path: Path, asked: str) -> None:
    door = machine(tmp_path, files={"/file": ""})
    (seen,) = found(door, asked)
    assert seen.found_via == "--cuda-toolkit"
    assert seen.problem == (
        "it is a file, not the folder of a toolkit" if asked == "/file" else "it does not exist"
    )
    assert seen.path.startswith("/")
    assert asked in (seen.path, *seen.aliases)


def test_a_variable_that_leads_nowhere_is_reported(tmp_path: Path) -> None:
    (seen,) = found(machine(tmp_path, environ={"CUDA_HOME": "/none", "CUDA_PATH": ""}))
    assert (seen.path, seen.found_via, seen.problem) == ("/none", "CUDA_HOME", "it does not exist")


def test_two_of_one_version_are_two(tmp_path: Path) -> None:
    seen = found(linux(tmp_path, "/usr/local/cuda-12.4", "/opt/cuda"))
    assert [(one.path, one.version) for one in seen] == [
        ("/usr/local/cuda-12.4", "12.4.1"),
        ("/opt/cuda", "12.4.1"),
    ]


def test_one_folder_by_several_names_is_one(tmp_path: Path) -> None:
    door = linux(
        tmp_path, "/opt/cuda", CUDA_HOME="/opt/cuda/", CUDA_PATH="/opt/x/../cuda", PATH="/opt/cuda/bin"
    )
    (seen,) = found(door)
    assert (seen.path, seen.found_via) == ("/opt/cuda", "CUDA_HOME")
    assert seen.aliases == ("/opt/cuda/", "/opt/x/../cuda")


@needs_symlinks
def test_links_are_other_names(tmp_path: Path) -> None:
    door = linux(tmp_path, "/usr/local/cuda-12.4")
    link(tmp_path, "/usr/local/cuda", "cuda-12.4")
    link(tmp_path, "/usr/bin/nvcc", "../local/cuda/bin/nvcc")
    (seen,) = found(door)
    assert (seen.path, seen.found_via, seen.aliases) == ("/usr/local/cuda-12.4", "PATH", ("/usr/local/cuda",))


def test_debians_nvcc_is_a_script(tmp_path: Path) -> None:
    root = "/usr/lib/nvidia-cuda-toolkit"
    door = machine(
        tmp_path,
        files={"/usr/include/cuda_runtime.h": "", "/usr/include/crt/host_config.h": "#if __GNUC__ > 13\n"},
        programs={f"{root}/bin/nvcc": None, "/usr/bin/nvcc": Output(1, f"#$ _HERE_={root}/bin\n")},
    )
    answers(door, f"{root}/bin/nvcc")
    (seen,) = found(door)
    assert (seen.path, seen.nvcc, seen.headers, seen.gcc) == (root, f"{root}/bin/nvcc", True, 13)


def test_what_an_uninstaller_left_is_no_toolkit(tmp_path: Path) -> None:
    files = {
        "/usr/local/cuda-11.8/lib64/x": "",
        "/usr/local/cuda-old/bin/nvcc": "",
        "/usr/local/cuda-12.4": "",
    }
    assert places(machine(tmp_path, files=files)) == []


def test_wheels_in_the_packages_of_an_interpreter(tmp_path: Path) -> None:
    site = "/v/lib/python3.13t/site-packages"
    door = linux(tmp_path, f"{site}/nvidia/cu13")
    write(tmp_path, {f"{site}/nvidia/cudnn/include/cudnn.h": "", f"{site}/nvidia/cu12/empty": ""})
    python = Python(
        executable="/v/bin/python", found_via="PATH", prefix="/v", version="3.13.1", abi="cpython-313t-x"
    )
    assert places(door, pythons=(python, python)) == [(f"{site}/nvidia/cu13", "NVIDIA's wheels")]
    unread = Python(executable="/x", found_via="PATH", problem="is a folder")
    assert places(door, pythons=(unread,)) == []


def test_those_that_this_tool_made_when_they_are_complete(tmp_path: Path) -> None:
    shelf = "/s/toolkits"
    door = linux(tmp_path, *(f"{shelf}/{name}" for name in ("done", "half", "moved", "odd", "bare")))
    marks = {
        "done": {"id": "done", "version": "13.0", "finished": "2026-11-20T10:00:00Z"},
        "half": {"id": "half", "version": "13.0", "finished": None},
        "moved": {"id": "other", "version": "13.0", "finished": "2026-11-20T10:00:00Z"},
        "odd": ["id"],
    }
    write(tmp_path, {f"{shelf}/{k}/.torchbuild-toolkit.json": json.dumps(v) for k, v in marks.items()})
    (seen,) = found(door, store="/s")
    assert (seen.path, seen.found_via, seen.managed) == (f"{shelf}/done", "managed", True)


def test_windows_with_two(tmp_path: Path) -> None:
    roots = [f"{PROGRAMS}\\v{version}" for version in ("12.4", "13.0")]
    files = {path: text for root in roots for path, text in toolkit(root).items()}
    door = windows_machine(
        tmp_path,
        files=files,
        programs={f"{root}\\bin\\nvcc.exe": None for root in roots},
        environ={
            "cuda_path": roots[0].replace("C:", "c:"),
            "CUDA_PATH_V12_4": roots[0],
            "CUDA_PATH_V13_0": roots[1],
            "Path": f"C:\\Windows;{roots[1]}\\bin",
            "CONDA_PREFIX": "C:\\conda",
        },
    )
    for root in roots:
        answers(door, f"{root}\\bin\\nvcc.exe")
    seen = found(door)
    assert [one.found_via for one in seen] == ["CUDA_PATH", "CUDA_PATH_V13_0"]
    assert [one.path.lower() for one in seen] == [root.lower() for root in roots]
    assert [one.problem for one in seen] == [None, None]
    looked = look_for_toolkits(door, None, "C:\\s", ())[1]
    assert f"{PROGRAMS}\\v*" in looked
    assert {"C:\\conda\\Library", "C:\\s\\toolkits", "environment CUDA_HOME (not set)"} <= set(looked)


def test_where_was_looked(tmp_path: Path) -> None:
    door = machine(tmp_path, environ={"CUDA_HOME": "/x", "CONDA_PREFIX": "/conda"})
    python = Python(executable="/v/bin/python", found_via="PATH", prefix="/v", version="3.12.1")
    assert look_for_toolkits(door, "/y", "/s", (python,))[1] == (
        "--cuda-toolkit /y",
        "environment CUDA_HOME (/x)",
        "environment CUDA_PATH (not set)",
        "environment CUDA_TOOLKIT_ROOT_DIR (not set)",
        "nvcc in the folders of PATH",
        "/usr/local/cuda*, /opt/cuda",
        "/conda",
        "/v/lib/python3.12/site-packages/nvidia/cu*",
        "/v/lib64/python3.12/site-packages/nvidia/cu*",
        "/s/toolkits",
    )
