"""Why no GPU can be used: every error code of a driver, with a message that says what to do."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.verify import cuda_reasons
from torchbuild_tasks.verify.torch_checks import NotPossible, Wrong

# What torch 2.13.0 said for these answers of a driver; 46 and 802 to 804 are all told in this way.
UNEXPECTED = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
    "NumCudaDevices() that might have already set an error? Error {}: {}"
)
TOO_OLD = (
    "The NVIDIA driver on your system is too old (found version 12040). Please update your GPU driver by "
    "downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"
)
UNKNOWN = (
    "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable "
    "CUDA_VISIBLE_DEVICES after program start. Setting the available devices to be zero."
)


class Driver:
    """A driver's library that answers `code` to cuInit and runs CUDA `cuda`."""

    def __init__(self, code: int = 0, cuda: int = 13000) -> None:
        self.code, self.cuda = code, cuda

    def cuInit(self, flags: int) -> int:
        return self.code

    def cuDriverGetVersion(self, place: Any) -> int:
        ctypes.cast(place, ctypes.POINTER(ctypes.c_int))[0] = self.cuda
        return 0


def torch_saying(words: str = "", *, cuda: str | None = "13.0", available: bool = False) -> Any:
    def init() -> None:
        if words:
            raise RuntimeError(words)

    return types.SimpleNamespace(
        version=types.SimpleNamespace(cuda=cuda),
        cuda=types.SimpleNamespace(is_available=lambda: available, init=init),
    )


@pytest.fixture(autouse=True)
def sound_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cuda_reasons, "BROKEN", [])
    install(monkeypatch, Driver())


def install(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    monkeypatch.setattr(cuda_reasons, "driver_library", lambda: driver)


# ---------------------------------------------------------------- why not


@pytest.mark.parametrize(
    ("code", "words", "meant"),
    [
        (34, UNEXPECTED.format(34, "CUDA driver is a stub library"), "stub, made for linking only. Remove"),
        (46, UNEXPECTED.format(46, "all CUDA-capable devices are busy or unavailable"), "in use by others"),
        (100, "No CUDA GPUs are available", "error 100: the driver sees no GPU. See whether the card"),
        (101, UNEXPECTED.format(101, "invalid device ordinal"), "is not there. Look at CUDA_VISIBLE_DEVICES"),
        (802, UNEXPECTED.format(802, "system not yet initialized"), "fabric manager"),
        (803, UNEXPECTED.format(803, "unsupported display driver / cuda driver combination"), "Restart the"),
        (
            804,
            UNEXPECTED.format(804, "forward compatibility was attempted on non supported HW"),
            "cuda-compat",
        ),
        (999, UNKNOWN, "error 999: the driver gives no reason. After a suspend load nvidia_uvm again"),
    ],
)
@pytest.mark.parametrize("told_by", ["torch and the driver", "torch", "the driver"])
def test_an_answer_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, code: int, words: str, meant: str, told_by: str
) -> None:
    install(monkeypatch, Driver(0 if told_by == "torch" else code))
    said = cuda_reasons.why_not(torch_saying("" if told_by == "the driver" else words))
    assert said.startswith(f"error {code}: ")
    assert meant in said


@pytest.mark.parametrize(("code", "words"), [(0, TOO_OLD), (0, ""), (100, "No CUDA GPUs are available")])
def test_a_driver_that_is_too_old(monkeypatch: pytest.MonkeyPatch, code: int, words: str) -> None:
    """torch may give no reason, or error 100: a driver that is too old may also see no GPU."""
    install(monkeypatch, Driver(code, cuda=12040))
    said = cuda_reasons.why_not(torch_saying(words))
    assert said.startswith("error 35: the driver is too old for the CUDA of this torch. Install a newer")
    assert said.endswith("The driver runs CUDA 12.4, this torch is for 13.0.")


@each_case(
    ("driver", "runtime", "too_old"),
    [
        ("12.4", "13.0", True),
        ("13.0", "13.2", False),
        ("12.0", "12.9", False),
        ("11.4", "12.0", True),
        ("10.1", "10.2", True),
        ("10.2", "10.1", False),
        ("10.1", "10.1.243", False),
        ("13.0", "", False),
    ],
)
def test_minor_version_compatibility(driver: str, runtime: str, too_old: bool) -> None:
    assert cuda_reasons.is_too_old(driver, runtime) is too_old


def test_no_driver_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cuda_reasons, "driver_library", missing)
    said = cuda_reasons.why_not(torch_saying("Found no NVIDIA driver on your system."))
    assert said.startswith(f"the driver's library {cuda_reasons.LIBRARY} cannot be loaded. Install NVIDIA's")
    assert said.endswith("cannot open shared object file")


@pytest.mark.parametrize("hidden", ["", "-1", "GPU-nobody"])
def test_every_gpu_is_hidden(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    install(monkeypatch, Driver(100))
    said = cuda_reasons.why_not(torch_saying("No CUDA GPUs are available"))
    assert said == f"CUDA_VISIBLE_DEVICES is {hidden!r}, which leaves no GPU to be seen. Unset it."


def test_a_visible_device_does_not_hide_another_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    install(monkeypatch, Driver(803))
    assert cuda_reasons.why_not(torch_saying()).startswith("error 803: ")


def test_an_error_that_is_not_known_keeps_torchs_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = UNEXPECTED.format(77, "something of the future")
    assert cuda_reasons.why_not(torch_saying(words)) == f"error 77: {words}"
    install(monkeypatch, Driver(78))
    assert cuda_reasons.why_not(torch_saying()) == "error 78: a new one"


@each_case("words", ["", "libcudart functions unavailable. It looks like you have a broken build?"])
def test_when_the_driver_is_fine_it_is_torch(words: str) -> None:
    with pytest.raises(Wrong, match=f"driver is fine, yet .*{words[:20]}"):
        cuda_reasons.why_not(torch_saying(words))


def test_the_sample_has_no_function_that_starts_cuda() -> None:
    sample = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))
    assert cuda_reasons.torch_error(sample) == ""


@each_case("text", cuda_reasons.CODES.values())
def test_each_answer_is_a_sentence_and_what_to_do(text: str) -> None:
    what, _, to_do = text.partition(". ")
    assert what[0].islower() and to_do[0].isupper() and to_do.endswith(".")


# ---------------------------------------------------------------- what a check begins with


@each_case("cuda", [None, "None", ""])
def test_a_torch_without_cuda(cuda: str | None) -> None:
    with pytest.raises(NotPossible, match="this torch was built without CUDA"):
        cuda_reasons.require_device(torch_saying(cuda=cuda))


def test_a_gpu_that_can_be_used_is_no_reason() -> None:
    cuda_reasons.require_device(torch_saying(available=True))


def test_the_reason_is_one_sentence_and_the_values_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, Driver(802))
    with pytest.raises(NotPossible) as caught:
        cuda_reasons.require_device(torch_saying(), nccl="2.29.7")
    reason = "no GPU can be used: error 802: the system is not yet initialised"
    assert caught.value.args == (reason, {"nccl": "2.29.7"})


def test_after_the_driver_failed_by_itself_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_reasons, "BROKEN", ["the driver fails without torch: cuInit gives error 3"])
    with pytest.raises(NotPossible, match="cuInit gives error 3"):
        cuda_reasons.require_device(torch_saying(available=True))


# ---------------------------------------------------------------- what is installed


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024",
            "550.54.15",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@x)\n"
            "GCC version:  gcc version 13.2.0 (Ubuntu 13.2.0-23ubuntu4)\n",
            "580.65.06",
        ),
        ("nothing of the kind", ""),
        (None, ""),
    ],
)
def test_the_version_of_the_kernel_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, version: str
) -> None:
    file = tmp_path / "version"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(cuda_reasons, "KERNEL_MODULE", file)
    assert cuda_reasons.driver_version() == version


def test_what_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def loaded(name: str) -> Any:
        asked.append(name)
        if "13" not in name:
            raise OSError(name)
        return types.SimpleNamespace(cudaRuntimeGetVersion=Driver(cuda=13020).cuDriverGetVersion)

    monkeypatch.setattr(cuda_reasons, "KERNEL_MODULE", tmp_path / "none")
    monkeypatch.setattr(cuda_reasons, "loaded_library", loaded)
    assert cuda_reasons.installed_versions("13.0") == {"runtime": "13.2", "driver_cuda": "13.0"}
    assert cuda_reasons.installed_versions("11.8") == {"driver_cuda": "13.0"}
    assert all(name.startswith(("libcudart.so.1", "cudart64_1")) for name in asked)


def test_a_library_that_is_not_loaded_is_not_brought_in() -> None:
    """Another CUDA runtime on the machine says nothing about the one of torch."""
    here = next((file for file in map(extension_file, ("_lsprof", "_uuid", "audioop", "_crypt")) if file), "")
    if not here:
        pytest.skip("no library here that this process has not loaded")
    for name in (here, "no-such-library.so.1"):
        with pytest.raises(OSError):
            cuda_reasons.loaded_library(name)


def extension_file(name: str) -> str:
    """The file of a module that is a library and was not imported yet."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    file = str(spec.origin) if spec else ""
    return file if file.endswith((".so", ".pyd")) else ""
