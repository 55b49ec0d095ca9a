"""Complete machines, as users have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.facts.cuda.canned import HEADERS, answers, device, no_nvml, nvml, nvml_fails, nvml_says, toolkit
from tests.facts.cuda.test_gpus_tegra import ORIN, R35
from tests.facts.cuda.test_pci import IDS
from tests.facts.cuda.test_pci_windows import CARD, display
from tests.facts.fakes import LINUX, FakeProbe, link, machine, windows_machine, write
from tests.support.capabilities import needs_odd_names, needs_symlinks
from torchbuild_tasks.facts.cuda.pci import REGISTRY_DEVICES
from torchbuild_tasks.facts.gather import look_at_cuda
from torchbuild_tasks.facts.probe import Uname
from torchbuild_tasks.model import Cuda, Driver, GpuSeen, Tegra
from torchbuild_tasks.values import from_json, replace, to_json

VERSION = "/sys/module/nvidia/version"
PROGRAMS = "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA"


def look(door: FakeProbe, toolkit: str | None = None) -> Cuda:
    seen = look_at_cuda(door, toolkit=toolkit, store="/none")
    assert from_json(Cuda, json.loads(json.dumps(to_json(seen)))) == seen
    return seen


def card(tmp_path: Path, bus: str, device: str = "0x2204") -> None:
    folder = f"/sys/bus/pci/devices/{bus}"
    write(tmp_path, {f"{folder}/vendor": "0x10de", f"{folder}/class": "0x030000", f"{folder}/device": device})


@needs_symlinks
@needs_odd_names
def test_a_desktop_with_two_gpus(tmp_path: Path) -> None:
    root = "/usr/local/cuda-12.4"
    nvcc = f"{root}/bin/nvcc"
    door = machine(
        tmp_path,
        files={**toolkit(root), VERSION: "550.54.14\n"},
        programs={nvcc: None},
        environ={"PATH": f"{root}/bin"},
    )
    answers(door, nvcc)
    nvml(door, device(), device(bus="00000000:02:00.0"))
    write(tmp_path, {"/usr/lib64/libcuda.so.550.54.14": "", "/usr/share/misc/pci.ids": IDS})
    link(tmp_path, "/usr/local/cuda", "cuda-12.4")
    link(tmp_path, "/usr/lib64/libcuda.so.1", "libcuda.so.550.54.14")
    for bus in ("0000:01:00.0", "0000:02:00.0"):
        card(tmp_path, bus)
    seen = look(door)
    assert [(one.path, one.version, one.aliases) for one in seen.toolkits] == [
        (root, "12.4.1", ("/usr/local/cuda",))
    ]
    assert [(gpu.probe, gpu.bus) for gpu in seen.gpus] == [
        ("nvml", "0000:01:00.0"),
        ("nvml", "0000:02:00.0"),
        ("pci", "0000:01:00.0"),
        ("pci", "0000:02:00.0"),
    ]
    assert (seen.gpus[0].capability, seen.gpus[2].chip) == ("8.6", "GA102")
    assert seen.driver == Driver(
        version="550.54.14", found_via="nvml", module="550.54.14", library="550.54.14", cuda="12.4"
    )
    assert seen.probes == {
        "nvml": "2 GPUs",
        "proc": "no GPU",
        "device tree": "no Jetson board",
        "pci": "2 GPUs",
    }
    assert (seen.visible, seen.wsl) == (None, False)


@needs_odd_names
def test_a_laptop_without_a_driver_still_knows_its_card(tmp_path: Path) -> None:
    door = machine(tmp_path, files={"/usr/share/misc/pci.ids": IDS})
    no_nvml(door)
    card(tmp_path, "0000:01:00.0")
    seen = look(door)
    assert seen.driver is None
    assert seen.gpus == (
        GpuSeen(probe="pci", bus="0000:01:00.0", pci_id="10de:2204", chip="GA102", name="GeForce RTX 3090"),
    )
    assert (seen.probes["nvml"], seen.probes["pci"]) == ("libnvidia-ml.so.1 was not found", "1 GPU")
    assert seen.probes["nvidia-smi"] == "nvidia-smi was not found"


def test_a_dgx_whose_gpus_are_split(tmp_path: Path) -> None:
    door = machine(tmp_path)
    a100 = [
        device(name="NVIDIA A100-SXM4-80GB", bus=f"00000000:0{n}:00.0", capability=[8, 0]) for n in range(8)
    ]
    nvml(door, *[{**one, "mig": number > 3} for number, one in enumerate(a100)])
    assert [gpu.mig for gpu in look(door).gpus] == [False] * 4 + [True] * 4


def test_linux_within_windows(tmp_path: Path) -> None:
    """There are no PCI ids; the driver is that of Windows, with nvidia-smi in the folder of its library."""
    smi = "/usr/lib/wsl/lib/nvidia-smi"
    line = "NVIDIA GeForce RTX 4090, GPU-1, 00000000:01:00.0, 0x268410DE, 24564, 551.61, 8.9, [N/A]"
    door = replace(
        machine(tmp_path, programs={smi: f"{line}\n"}),
        kernel=Uname("linux", "5.15.146.1-microsoft-standard-WSL2", "x86_64"),
    )
    no_nvml(door)
    seen = look(door)
    assert seen.wsl
    assert [(gpu.probe, gpu.capability) for gpu in seen.gpus] == [("nvidia-smi", "8.9")]
    assert seen.driver == Driver(version="551.61", found_via="nvidia-smi")
    assert (seen.probes["nvidia-smi"], seen.probes["pci"]) == ("1 GPU", "no GPU")


def test_the_folder_of_wsl_is_enough(tmp_path: Path) -> None:
    assert look(machine(tmp_path, files={"/usr/lib/wsl/lib/": ""})).wsl


def test_a_jetson_orin(tmp_path: Path) -> None:
    root = "/usr/local/cuda-11.4"
    target = f"{root}/targets/aarch64-linux"
    cudnn = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 6\n#define CUDNN_PATCHLEVEL 0\n"
    files = {
        **{f"/proc/device-tree/{name}": text for name, text in ORIN.items()},
        **{f"{target}/include/{name}": text for name, text in HEADERS.items()},
        f"{target}/lib/libcudart.so": "",
        f"{root}/bin/nvcc.profile": "",
        "/etc/nv_tegra_release": R35,
        "/usr/include/aarch64-linux-gnu/cudnn_version_v8.h": cudnn,
        "/usr/lib/aarch64-linux-gnu/libcudnn.so": "",
    }
    door = machine(tmp_path, files=files, programs={f"{root}/bin/nvcc": None})
    answers(door, f"{root}/bin/nvcc", "11.4", "11.4.315")
    door = replace(door, kernel=LINUX._replace(machine="aarch64"))
    no_nvml(door)
    seen = look(door)
    model = "NVIDIA Jetson AGX Orin Developer Kit"
    assert isinstance(seen.tegra, Tegra)
    assert (seen.tegra.model, seen.tegra.l4t) == (model, "35.4.1")
    assert seen.gpus == (GpuSeen(probe="device tree", name=model),)
    assert seen.driver is None
    (one,) = seen.toolkits
    assert (one.version, one.headers, one.libraries) == ("11.4", True, f"{target}/lib")
    (library,) = seen.libraries
    assert (library.name, library.version) == ("cudnn", "8.6.0")


def test_a_windows_with_two_toolkits(tmp_path: Path) -> None:
    roots = [f"{PROGRAMS}\\v12.4", f"{PROGRAMS}\\v13.0"]
    door = windows_machine(
        tmp_path,
        files={path: text for root in roots for path, text in toolkit(root, f"{root[-4:]}.0").items()},
        programs={f"{root}\\bin\\nvcc.exe": None for root in roots},
        environ={"CUDA_PATH": roots[1], "CUDA_VISIBLE_DEVICES": "0"},
        registry={f"{REGISTRY_DEVICES}\\{CARD}": display()},
        versions={"C:\\Windows\\System32\\nvcuda.dll": "32.0.15.8088"},
    )
    for root in roots:
        answers(door, f"{root}\\bin\\nvcc.exe", root[-4:], f"{root[-4:]}.88")
    nvml(door, device(), driver="580.88", cuda=13000)
    seen = look(door)
    assert [(one.path, one.version) for one in seen.toolkits] == [(roots[1], "13.0.0"), (roots[0], "12.4.0")]
    assert [gpu.probe for gpu in seen.gpus] == ["nvml", "pci"]
    assert seen.driver == Driver(version="580.88", found_via="nvml", library="580.88", cuda="13.0")
    assert set(seen.probes) == {"nvml", "pci"}
    assert seen.visible == "0"


def test_a_library_that_does_not_match_its_module(tmp_path: Path) -> None:
    words = "Driver/library version mismatch"
    door = machine(tmp_path, files={VERSION: "550.54.14\n"})
    nvml_fails(door, words, 18)
    seen = look(door)
    assert seen.driver == Driver(version="550.54.14", found_via=VERSION, module="550.54.14", problem=words)
    assert seen.probes["nvml"] == words


def test_a_driver_that_hangs_is_not_queried_twice(tmp_path: Path) -> None:
    door = machine(tmp_path, files={VERSION: "550.54.14\n"}, programs={"/usr/bin/nvidia-smi": None})
    nvml_says(door, None)
    seen = look(door)
    assert seen.probes["nvml"] == "no answer within 5 s"
    assert "nvidia-smi" not in seen.probes
    assert seen.driver is not None
    assert (seen.driver.version, seen.driver.problem) == ("550.54.14", "NVML gave no answer within 5 s")
    assert len(door.asked) == 1


@pytest.mark.parametrize("value", ["", "0", "-1", "GPU-1,MIG-2"])
def test_hidden_devices(tmp_path: Path, value: str) -> None:
    door = machine(tmp_path, environ={"CUDA_VISIBLE_DEVICES": value})
    nvml(door, device())
    seen = look(door)
    assert seen.visible == value
    assert len(seen.gpus) == 1


@pytest.mark.parametrize("windows", [False, True])
def test_a_machine_without_any(tmp_path: Path, windows: bool) -> None:
    door = windows_machine(tmp_path) if windows else machine(tmp_path)
    no_nvml(door)
    seen = look(door)
    assert seen == Cuda(looked=seen.looked, probes=seen.probes)
    assert seen.looked


def test_a_folder_that_was_requested(tmp_path: Path) -> None:
    door = machine(tmp_path)
    no_nvml(door)
    (one,) = look(door, toolkit="/none").toolkits
    assert (one.found_via, one.problem) == ("--cuda-toolkit", "it does not exist")
