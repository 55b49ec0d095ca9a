from __future__ import annotations

from pathlib import Path

import pytest

from tests.facts.fakes import FakeProbe, machine, windows_machine
from torchbuild_tasks.facts.cuda.gpus import SMI_FIELDS, SMI_NEWER_FIELDS, Answer, ask_smi
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.model import GpuSeen

SMI = "/usr/bin/nvidia-smi"
WSL = "/usr/lib/wsl/lib/nvidia-smi"
TABLE = "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4     |\n"
OLD = "NVIDIA GeForce RTX 3090, GPU-1, 00000000:0B:00.0, 0x220410DE, 24576, 550.54.14"
FULL = f"{OLD}, 8.6, Disabled"


def says(tmp_path: Path, full: Output | None, old: Output | None, program: str = SMI) -> FakeProbe:
    door = machine(tmp_path, programs={program: TABLE})
    for fields, output in ((SMI_FIELDS + SMI_NEWER_FIELDS, full), (SMI_FIELDS, old)):
        query = f"{program} --query-gpu={','.join(fields)} --format=csv,noheader,nounits"
        door.outputs[query] = output
    return door


@pytest.mark.parametrize("program", [SMI, WSL])
def test_all_that_it_knows(tmp_path: Path, program: str) -> None:
    mig = "NVIDIA A100-SXM4-40GB, GPU-2, 00000000:81:00.0, 0x20B010DE, 40960, 550.54.14, 8.0, Enabled"
    answer = ask_smi(says(tmp_path, Output(0, f"{FULL}\n{mig}\n"), Output(0, OLD), program))
    assert (answer.summary, answer.driver, answer.cuda, answer.problem) == (
        "2 GPUs",
        "550.54.14",
        "12.4",
        None,
    )
    first, second = answer.gpus
    assert first == GpuSeen(
        probe="nvidia-smi",
        bus="0000:0b:00.0",
        pci_id="10de:2204",
        name="NVIDIA GeForce RTX 3090",
        capability="8.6",
        memory=24576 << 20,
        uuid="GPU-1",
    )
    assert (second.capability, second.mig) == ("8.0", True)


def test_an_old_driver_does_not_know_the_capability(tmp_path: Path) -> None:
    refusal = Output(2, 'Field "compute_cap" is not a valid field to query.\n')
    answer = ask_smi(says(tmp_path, refusal, Output(0, f"{OLD}\n")))
    (gpu,) = answer.gpus
    assert (gpu.pci_id, gpu.capability, answer.summary) == ("10de:2204", None, "1 GPU")


def test_what_it_does_not_know_stays_so(tmp_path: Path) -> None:
    line = "Orin (nvgpu), [N/A], [N/A], [N/A], [N/A], 540.4.0, [N/A], [N/A]"
    (gpu,) = ask_smi(says(tmp_path, Output(0, line), None)).gpus
    assert gpu == GpuSeen(probe="nvidia-smi", name="Orin (nvgpu)")


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (
            Output(9, "NVIDIA-SMI has failed because it couldn't communicate with the driver.\nMake sure\n"),
            Answer(
                summary="ended with 9: NVIDIA-SMI has failed because it couldn't communicate with the driver.",  # noqa: E501
                problem="NVIDIA-SMI has failed because it couldn't communicate with the driver.",
            ),
        ),
        (Output(6, "No devices were found\n"), Answer(summary="no GPU")),
        (Output(0, ""), Answer(summary="no GPU")),
        (Output(-6, ""), Answer(summary="ended with -6: without a word", problem="without a word")),
        (
            None,
            Answer(summary="no answer within 5 s", problem="nvidia-smi gave no answer within 5 s", hung=True),
        ),
    ],
)
def test_failures(tmp_path: Path, output: Output | None, answer: Answer) -> None:
    assert ask_smi(says(tmp_path, output, output)) == answer


def test_nowhere(tmp_path: Path) -> None:
    assert ask_smi(machine(tmp_path)) == Answer(summary="nvidia-smi was not found")


@pytest.mark.parametrize(
    "program",
    [
        "C:\\Windows\\System32\\nvidia-smi.exe",
        "C:\\Program Files\\NVIDIA Corporation\\NVSMI\\nvidia-smi.exe",
    ],
)
def test_on_windows(tmp_path: Path, program: str) -> None:
    door = windows_machine(tmp_path, programs={program: Output(0, FULL)}, environ={"Path": "C:\\none"})
    assert ask_smi(door).summary == "1 GPU"
