"""The script that asks NVML, with a stand-in for NVIDIA's library behind the same functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from torchbuild_tasks.facts.cuda.nvml_probe import report


class Refused(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"number {value}")
        self.value = value


class Library:
    """Two devices; `refuse` maps a function (or function and device) to the error that it ends with."""

    NVMLError = Refused
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_FUNCTION_NOT_FOUND = 13
    WORDS = {3: "Not Supported", 12: None, 13: "Function Not Found", 15: "GPU is lost", 18: "mismatch"}

    def __init__(self, **refuse: int) -> None:
        self.refuse = refuse

    def __getattr__(self, name: str) -> Any:
        results: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlSystemGetDriverVersion": b"535.104.05",
            "nvmlSystemGetCudaDriverVersion_v2": 12020,
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:01:00.0", pciDeviceId=0x220410DE),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=1 << 34),
            "nvmlDeviceGetMigMode": [1, 1],
            "nvmlDeviceGetName": "NVIDIA A30",
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlDeviceGetCudaComputeCapability": (8, 0),
        }

        def call(*arguments: Any) -> Any:
            for key in (name, "_".join(map(str, (name, *arguments)))):
                if key in self.refuse:
                    raise Refused(self.refuse[key])
            return arguments[0] if name == "nvmlDeviceGetHandleByIndex" else results[name]

        return call

    def nvmlErrorString(self, value: int) -> str:
        words = self.WORDS[value]
        if words is None:
            raise Refused(1)  # no library is loaded that could say it
        return words


A30 = {
    "name": "NVIDIA A30",
    "uuid": "GPU-1",
    "bus": "00000000:01:00.0",
    "pci": 0x220410DE,
    "capability": (8, 0),
    "memory": 1 << 34,
    "mig": True,
}


def test_everything() -> None:
    assert report(Library()) == {
        "errors": [],
        "driver": "535.104.05",
        "cuda": 12020,
        "devices": [A30, A30],
    }


def test_what_a_card_or_an_old_driver_lacks_is_no_error() -> None:
    answer = report(Library(nvmlDeviceGetMigMode=3, nvmlDeviceGetMemoryInfo=3, nvmlDeviceGetUUID=13))
    assert answer["errors"] == []
    assert answer["devices"][0] == {**A30, "mig": False, "memory": None, "uuid": None}


def test_one_lost_device_leaves_the_other() -> None:
    answer = report(Library(nvmlDeviceGetHandleByIndex_0=15))
    assert answer["devices"] == [{}, A30]
    assert answer["errors"] == ["nvmlDeviceGetHandleByIndex: GPU is lost"]


def test_the_librarys_own_words() -> None:
    assert report(Library(nvmlInit=18)) == {"error": "mismatch", "code": 18}


def test_without_a_library_the_packages_words() -> None:
    assert report(Library(nvmlInit=12)) == {"error": "number 12", "code": 12}


def test_a_driver_that_cannot_count() -> None:
    answer = report(Library(nvmlDeviceGetCount=15))
    assert (answer["devices"], answer["driver"]) == ([], "535.104.05")
