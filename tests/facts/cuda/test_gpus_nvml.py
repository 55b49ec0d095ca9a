from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.facts.cuda.canned import device, nvml, nvml_fails, nvml_says
from tests.facts.fakes import machine, windows_machine
from torchbuild_tasks.facts.cuda.gpus import Answer, ask_nvml, count_words
from torchbuild_tasks.facts.probe import Output
from torchbuild_tasks.model import GpuSeen
from torchbuild_tasks.model.cuda import pci_address


def asked(tmp_path: Path, output: Output | None) -> Answer:
    door = machine(tmp_path)
    nvml_says(door, output)
    return ask_nvml(door)


def test_two_gpus(tmp_path: Path) -> None:
    door = machine(tmp_path)
    second = device(name="NVIDIA A100-SXM4-80GB", bus="0000000A:81:00.0", pci=0x20B210DE, capability=[8, 0])
    nvml(door, device(), {**second, "mig": True, "uuid": None, "memory": None})
    answer = ask_nvml(door)
    assert (answer.summary, answer.driver, answer.cuda, answer.problem) == (
        "2 GPUs",
        "550.54.14",
        "12.4",
        None,
    )
    assert answer.gpus == (
        GpuSeen(
            probe="nvml",
            bus="0000:01:00.0",
            pci_id="10de:2204",
            name="NVIDIA GeForce RTX 3090",
            capability="8.6",
            memory=25769803776,
            uuid="GPU-00000000-0000-0000-0000-000000000001",
        ),
        GpuSeen(
            probe="nvml",
            bus="000a:81:00.0",
            pci_id="10de:20b2",
            name="NVIDIA A100-SXM4-80GB",
            capability="8.0",
            mig=True,
        ),
    )


def test_nvml_is_queried_in_an_isolated_python(tmp_path: Path) -> None:
    door = machine(tmp_path)
    ask_nvml(door)
    (command,) = door.asked
    assert command.startswith(f"{sys.executable} -I -S -B ")


def test_the_package_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    door = machine(tmp_path)
    assert ask_nvml(door) == Answer(summary="the package nvidia-ml-py is not installed")
    assert door.asked == []


def test_the_package_was_once_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site" / "pynvml").mkdir(parents=True)
    (tmp_path / "site" / "pynvml" / "__init__.py").write_text("", "utf-8")
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.syspath_prepend(tmp_path / "site")
    door = machine(tmp_path / "machine")
    ask_nvml(door)
    assert door.asked[0].endswith(f"nvml_probe.py {tmp_path / 'site'}")


def test_without_a_driver(tmp_path: Path) -> None:
    door, windows = machine(tmp_path), windows_machine(tmp_path)
    for one in (door, windows):
        nvml_fails(one, "NVML Shared Library Not Found", 12)
    assert ask_nvml(door) == Answer(summary="libnvidia-ml.so.1 was not found")
    assert ask_nvml(windows) == Answer(summary="nvml.dll was not found")


@pytest.mark.parametrize("text", ["Driver/library version mismatch", "Driver Not Loaded"])
def test_the_drivers_own_words_are_kept(tmp_path: Path, text: str) -> None:
    door = machine(tmp_path)
    nvml_fails(door, text, 18)
    assert ask_nvml(door) == Answer(summary=text, problem=text)


def test_one_that_hangs(tmp_path: Path) -> None:
    answer = asked(tmp_path, None)
    assert (answer.summary, answer.hung, answer.gpus) == ("no answer within 5 s", True, ())
    assert answer.problem == "NVML gave no answer within 5 s"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (Output(-11, ""), "ended with -11: without a word"),
        (Output(1, "", "Traceback\nImportError: x"), "ended with 1: ImportError: x"),
        (Output(0, "[]"), "ended with 0: []"),
        (Output(0, "{} \n{"), "ended with 0: {}"),
    ],
)
def test_one_that_crashes_or_prints_rubbish(tmp_path: Path, output: Output, said: str) -> None:
    assert asked(tmp_path, output) == Answer(summary=said, problem=f"NVML {said}")


@pytest.mark.parametrize(
    "data",
    [
        {"devices": 3},
        {"devices": [1, "x"]},
    ],
)
def test_an_answer_that_is_not_ours_is_no_gpu(tmp_path: Path, data: Any) -> None:
    said = f"ended with 0: {json.dumps(data)}"
    assert asked(tmp_path, Output(0, json.dumps(data))) == Answer(summary=said, problem=f"NVML {said}")


def test_what_is_unknown_of_a_device_stays_so(tmp_path: Path) -> None:
    answer = asked(tmp_path, Output(0, json.dumps({"devices": [{}, {"bus": "x"}], "errors": []})))
    assert answer.gpus == (GpuSeen(probe="nvml"), GpuSeen(probe="nvml"))


def test_a_lost_gpu_is_one_and_reported(tmp_path: Path) -> None:
    error = "nvmlDeviceGetHandleByIndex: GPU is lost"
    answer = asked(tmp_path, Output(0, json.dumps({"devices": [device(), {}], "errors": [error]})))
    assert (answer.summary, answer.problem) == (f"2 GPUs; {error}", error)


def test_words() -> None:
    assert [count_words(number) for number in (0, 1, 2)] == ["no GPU", "1 GPU", "2 GPUs"]
    spelled = ("0000:0B:00.0", "00010000:0b:00.1", "01:00.0", "gpu0", None)
    assert [pci_address(text) for text in spelled] == [
        *("0000:0b:00.0", "10000:0b:00.1", "0000:01:00.0"),
        *(None, None),
    ]
