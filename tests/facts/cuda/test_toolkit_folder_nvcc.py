from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.cuda.canned import answers, nvcc_says
from tests.facts.fakes import link, machine, windows_machine
from tests.support.capabilities import needs_symlinks
from torchbuild_tasks.facts.cuda.toolkit_folder import NvccAnswer, ask_nvcc, capabilities, root_of_nvcc
from torchbuild_tasks.facts.probe import Output

NVCC = "/usr/local/cuda/bin/nvcc"


def test_what_it_says(tmp_path: Path) -> None:
    door = machine(tmp_path, programs={NVCC: None})
    answers(door, NVCC, "13.0", "13.0.88")
    assert ask_nvcc(door, NVCC) == NvccAnswer("13.0", "13.0.88", ("5.0", "7.5", "9.0", "10.0"))


def test_one_that_cannot_list_architectures(tmp_path: Path) -> None:
    """nvcc 10.2 has no --list-gpu-arch; nvcc 7 prints no build number."""
    door = machine(tmp_path, programs={NVCC: Output(1, "", "nvcc fatal   : Unknown option 'list-gpu-arch'")})
    door.outputs[f"{NVCC} --version"] = Output(0, nvcc_says("10.2", "10.2.89"))
    assert ask_nvcc(door, NVCC) == NvccAnswer("10.2", "10.2.89")
    door.outputs[f"{NVCC} --version"] = Output(0, "Cuda compilation tools, release 7.0")
    assert ask_nvcc(door, NVCC) == NvccAnswer("7.0", None)


def test_capabilities_in_ascending_order_without_letters() -> None:
    text = "compute_120\ncompute_90a\ncompute_90\ncompute_101\ncompute_75\ncompute_100f\nsm_86\n"
    assert capabilities(text) == ("7.5", "9.0", "10.0", "10.1", "12.0")


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (Output(-11, ""), "ended with -11: without a word"),
        (Output(127, "", "libstdc++.so.6: not found\nmore"), "ended with 127: libstdc++.so.6: not found"),
        (Output(0, "hello\nyou"), "says no version: hello"),
        (Output(0, ""), "says no version: without a word"),
        (None, "did not start, or gave no answer within 10 s"),
    ],
)
def test_one_that_crashes_hangs_or_prints_rubbish(
    tmp_path: Path, output: Output | None, problem: str
) -> None:
    door = machine(tmp_path, programs={NVCC: output})
    assert ask_nvcc(door, NVCC) == NvccAnswer(problem=f"{NVCC} --version {problem}")


def test_the_toolkit_next_to_it(tmp_path: Path) -> None:
    files = {"/usr/local/cuda-12.4/bin/nvcc.profile": ""}
    door = machine(tmp_path, files=files, programs={"/usr/local/cuda-12.4/bin/nvcc": None})
    assert root_of_nvcc(door, "/usr/local/cuda-12.4/bin/nvcc") == "/usr/local/cuda-12.4"
    assert door.asked == []


@needs_symlinks
def test_a_link_leads_to_the_toolkit(tmp_path: Path) -> None:
    files = {"/usr/local/cuda-12.4/bin/nvcc.profile": ""}
    door = machine(tmp_path, files=files, programs={"/usr/local/cuda-12.4/bin/nvcc": None})
    link(tmp_path, "/usr/local/bin/nvcc", "../cuda-12.4/bin/nvcc")
    assert root_of_nvcc(door, "/usr/local/bin/nvcc") == "/usr/local/cuda-12.4"


def test_a_script_is_resolved_to_its_nvcc(tmp_path: Path) -> None:
    said = (
        "#$ _HERE_=/opt/x/bin\n#$ TOP=/opt/x/bin/..\n#$ PATH=/usr/bin\nnvcc fatal   : Don't know what to do"
    )
    door = machine(tmp_path, programs={"/usr/bin/nvcc": Output(1, "", said)})
    assert root_of_nvcc(door, "/usr/bin/nvcc") == "/opt/x"


def test_debians_profile_has_no_top(tmp_path: Path) -> None:
    said = "#$ _SPACE_= \n#$ _HERE_=/usr/lib/nvidia-cuda-toolkit/bin\n#$ _THERE_=/x\n"
    door = machine(tmp_path, programs={"/usr/bin/nvcc": Output(1, said)})
    assert root_of_nvcc(door, "/usr/bin/nvcc") == "/usr/lib/nvidia-cuda-toolkit"


def test_one_that_says_nothing_is_taken_by_its_place(tmp_path: Path) -> None:
    door = machine(tmp_path, programs={"/usr/bin/nvcc": None})
    assert root_of_nvcc(door, "/usr/bin/nvcc") == "/usr"


def test_on_windows(tmp_path: Path) -> None:
    root = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4"
    door = windows_machine(
        tmp_path, files={f"{root}\\bin\\nvcc.profile": ""}, programs={f"{root}\\bin\\nvcc.exe": None}
    )
    assert root_of_nvcc(door, f"{root}\\bin\\nvcc.exe") == root
    shim = "C:\\bin\\nvcc.exe"
    door.outputs[shim] = Output(1, f"#$ TOP={root}\\bin/..\r\n")
    assert root_of_nvcc(door, shim) == root
