"""What is there: architectures against devices, and errors that must arrive."""

from __future__ import annotations

import types
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.verify import cuda_checks, cuda_reasons
from torchbuild_tasks.verify.torch_checks import NotPossible, Wrong


def torch_with(
    *capabilities: tuple[int, int], flags: str | None = "", archs: Any = None, name: str = "GPU"
) -> Any:
    """A torch for `flags` on a machine with GPUs of these capabilities."""
    cuda = types.SimpleNamespace(
        is_available=lambda: bool(capabilities),
        device_count=lambda: len(capabilities),
        get_device_properties=lambda index: types.SimpleNamespace(
            name=name, major=capabilities[index][0], minor=capabilities[index][1], total_memory=12 * 2**30
        ),
    )
    if archs is not None:
        cuda.get_arch_list = lambda: archs
    inner = {} if flags is None else {"_cuda_getArchFlags": lambda: flags}
    return types.SimpleNamespace(
        version=types.SimpleNamespace(cuda="13.0"), cuda=cuda, _C=types.SimpleNamespace(**inner)
    )


@pytest.fixture(autouse=True)
def nothing_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_reasons, "BROKEN", [])


# ---------------------------------------------------------------- whether it is a CUDA torch


def test_a_promised_cuda_torch_that_is_none() -> None:
    torch = types.SimpleNamespace(version=types.SimpleNamespace(cuda=None))
    with pytest.raises(Wrong, match=r"^this torch was built without CUDA$"):
        cuda_checks.check_cuda_available(torch)
    torch.version.hip = "6.2.41133"
    with pytest.raises(Wrong, match=r"without CUDA, for ROCm 6\.2\.41133$"):
        cuda_checks.check_cuda_available(torch)


def test_what_is_installed_is_reported_whether_it_works_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        cuda_reasons, "installed_versions", lambda cuda: {"driver": "580.65.06", "runtime": cuda}
    )
    monkeypatch.setattr(cuda_reasons, "why_not", lambda torch: "error 802: not yet. Wait.")
    values = {"driver": "580.65.06", "runtime": "13.0"}
    assert cuda_checks.check_cuda_available(torch_with((9, 0), (9, 0))) == (
        "2 visible, driver 580.65.06, runtime 13.0",
        values,
    )
    with pytest.raises(NotPossible) as caught:
        cuda_checks.check_cuda_available(torch_with())
    assert caught.value.args == ("error 802: not yet. Wait.", values)


# ---------------------------------------------------------------- architectures


@each_case(
    ("arch", "capability", "runs"),
    [
        ("sm_86", (8, 6), True),
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 9), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_120", (12, 1), True),
        ("sm_100", (12, 0), False),
        ("compute_80", (8, 6), True),
        ("compute_80", (12, 0), True),
        ("compute_90", (8, 9), False),
        ("compute_75", (10, 0), True),
        # the letters: this very capability, this family
        ("sm_90a", (9, 0), True),
        ("sm_100a", (10, 3), False),
        ("compute_90a", (10, 0), False),
        ("sm_100f", (10, 3), True),
        ("compute_120f", (12, 1), True),
        ("compute_100f", (12, 0), False),
        # integrated GPUs and their desktop siblings
        ("sm_80", (8, 7), False),
        ("sm_86", (8, 7), False),
        ("sm_87", (8, 7), True),
        ("sm_87", (8, 9), False),
        ("compute_80", (8, 7), True),
        ("sm_70", (7, 2), False),
        ("sm_101", (11, 0), True),
        ("sm_100", (11, 0), False),
        ("gfx90a", (9, 0), False),
        ("sm_", (9, 0), False),
    ],
)
def test_which_code_runs_where(arch: str, capability: tuple[int, int], runs: bool) -> None:
    assert cuda_checks.runs_on(arch, capability) is runs


def test_the_architectures_serve_every_device() -> None:
    said, values = cuda_checks.check_cuda_arch_list(torch_with((8, 6), (9, 0), flags="sm_80 compute_80"))
    assert said == "sm_80 compute_80 serve every device"
    assert values == {"arch_list": "sm_80 compute_80"}


def test_no_kernel_image_is_seen_before_one_is_run() -> None:
    with pytest.raises(Wrong) as caught:
        cuda_checks.check_cuda_arch_list(torch_with((8, 6), (12, 0), flags="sm_80 sm_90", name="RTX"))
    words, values = caught.value.args
    assert words == "no kernel image for 1: RTX (12.0, 12.0 GiB): this torch holds sm_80 sm_90"
    assert values == {"arch_list": "sm_80 sm_90"}


def test_without_a_gpu_the_list_is_reported_and_nothing_has_passed() -> None:
    with pytest.raises(NotPossible) as caught:
        cuda_checks.check_cuda_arch_list(torch_with(flags="sm_75 sm_120"))
    assert caught.value.args == ("sm_75 sm_120: no GPU to hold them against", {"arch_list": "sm_75 sm_120"})


def test_the_sample_does_not_say_which_gpu_it_has() -> None:
    sample = torch_with((9, 0), flags="sm_75")
    del sample.cuda.get_device_properties
    with pytest.raises(NotPossible, match="sm_75: no GPU to hold them against"):
        cuda_checks.check_cuda_arch_list(sample)


@each_case(
    ("torch", "archs"),
    [
        (torch_with(flags="sm_75 sm_80", archs=[]), ["sm_75", "sm_80"]),
        (torch_with((9, 0), flags=None, archs=["sm_60"]), ["sm_60"]),
    ],
)
def test_the_list_is_known_without_a_device(torch: Any, archs: list[str]) -> None:
    assert cuda_checks.arch_list(torch) == archs


@each_case("torch", [torch_with(flags=None), torch_with(flags=None, archs=[]), torch_with(flags="")])
def test_a_torch_that_does_not_say(torch: Any) -> None:
    with pytest.raises(NotPossible, match="does not say which architectures"):
        cuda_checks.arch_list(torch)


# ---------------------------------------------------------------- devices


def test_devices() -> None:
    torch = torch_with((8, 0), (9, 0), name="NVIDIA A100-SXM4-40GB MIG 1g.5gb")
    words, values = cuda_checks.check_cuda_devices(torch)
    assert words.startswith("0: NVIDIA A100-SXM4-40GB MIG 1g.5gb (8.0, 12.0 GiB, a MIG instance); 1: NVIDIA")
    assert values == {"devices": words, "capabilities": "8.0 9.0"}


def test_available_and_no_device_contradict() -> None:
    torch = torch_with()
    torch.cuda.is_available = lambda: True
    with pytest.raises(Wrong, match=r"device_count\(\) is 0"):
        cuda_checks.check_cuda_devices(torch)


def test_a_driver_that_only_torch_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OSError("no libcuda.so.1")

    monkeypatch.setattr(cuda_reasons, "driver_library", missing)
    with pytest.raises(NotPossible, match=r"cannot be asked without torch: no libcuda\.so\.1"):
        cuda_checks.check_cuda_driver(torch_with((9, 0)))
    assert cuda_reasons.BROKEN == []


# ---------------------------------------------------------------- errors that must arrive


def raising(error: Exception) -> Any:
    def attempt() -> None:
        raise error

    return attempt


def test_an_error_arrives_as_what_it_is() -> None:
    said = cuda_checks.error_of(
        raising(IndexError("index 4 is out of bounds\nException raised from")), LookupError
    )
    assert said == "IndexError: index 4 is out of bounds"


def test_an_error_of_another_kind_is_not_it() -> None:
    with pytest.raises(SystemError, match="returned NULL"):
        cuda_checks.error_of(raising(SystemError("returned NULL without setting an exception")), RuntimeError)


def test_an_error_that_lost_its_words() -> None:
    with pytest.raises(Wrong, match="lost its words on the way: Caught an unknown exception!"):
        cuda_checks.error_of(raising(RuntimeError("Caught an unknown exception!")), RuntimeError)


def test_no_error_where_one_is_due() -> None:
    with pytest.raises(Wrong, match="what must raise RuntimeError did not raise it"):
        cuda_checks.error_of(lambda: None, RuntimeError)


def test_a_kernel_of_each_architecture_where_a_gpu_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Numbers:
        def to(self, device: str) -> Numbers:
            seen.append(device)
            return self

        def __mul__(self, other: Any) -> list[float]:
            return [1.0, 4.0, 9.0]

    torch = types.SimpleNamespace(tensor=lambda numbers: Numbers())
    monkeypatch.setattr(cuda_checks, "require_device", lambda torch: None)
    monkeypatch.setattr(cuda_checks, "compare", lambda what, seen, wanted, allowed: what)
    monkeypatch.setattr(cuda_checks, "devices", lambda torch: [("0: A", (8, 0)), ("1: B", (9, 0))])
    monkeypatch.setattr(cuda_checks, "arch_list", lambda torch: ["sm_80", "sm_90", "sm_120"])
    detail, values = cuda_checks.check_cuda_kernels(torch)
    assert values == {"ran": "sm_80 sm_90", "without_gpu": "sm_120"} and seen == ["cuda:0", "cuda:1"]
    assert detail == "sm_80 sm_90 ran; no GPU here runs sm_120"
    monkeypatch.setattr(cuda_checks, "arch_list", lambda torch: ["sm_120"])
    with pytest.raises(cuda_checks.NotPossible, match="sm_120"):
        cuda_checks.check_cuda_kernels(torch)
