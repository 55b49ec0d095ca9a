"""Which wheels of an index are tried: by release or night, by what the plan says of CUDA."""

from __future__ import annotations

from tests.support.for_each import each_case
from torchbuild_tasks.features.wheel_overlay.variants import (
    Wanted,
    choose_files,
    choose_nights,
    night_source,
    wanted_device,
)

CPU, CUDA = Wanted(cuda=False), Wanted(cuda=True)
TAGS = "cp311-cp311-linux_x86_64.whl"


def files(*versions: str) -> list[str]:
    return [f"torch-{version}-{TAGS}" for version in versions]


HELD = files("2.9.1", "2.9.1+cpu", "2.9.1+cu126", "2.9.1+cu128", "2.9.1+cu130", "2.9.1+rocm6.4", "2.9.1+mine")


@each_case(
    ("wanted", "order"),
    [
        (CPU, ["+cpu", "", "+mine"]),
        (Wanted(cuda=True, toolkit="cu126"), ["+cu126", "+cu128", "", "+cu130", "+mine"]),
        (Wanted(cuda=True, toolkit="cu129"), ["+cu128", "+cu126", "", "+cu130", "+mine"]),
        (CUDA, ["", "+cu130", "+cu128", "+cu126", "+mine"]),
        (Wanted(), ["", "+cpu", "+cu130", "+cu128", "+cu126", "+mine"]),
    ],
)
def test_the_variant_that_suits_best_comes_first(wanted: Wanted, order: list[str]) -> None:
    assert choose_files(HELD, ("2.9.1",), wanted) == tuple(f"2.9.1{each}" for each in order)


def test_another_release_and_what_is_no_wheel_are_left_out() -> None:
    held = [*files("2.9.0+cpu", "2.9.1rc2+cpu", "2.10.0+cpu"), "torch-2.9.1.tar.gz", "torch-2.9.1+cpu.whl"]
    assert choose_files(held, ("2.9.1",), CPU) == ()
    assert choose_files(files("2.9.1+cpu.cxx11.abi"), ("2.9.1",), CPU) == ("2.9.1+cpu.cxx11.abi",)


def test_the_nearest_of_the_named_comes_first() -> None:
    held = files("2.9.1+cpu", "2.9.2", "2.9.2+cpu")
    assert choose_files(held, ("2.9.2", "2.9.1"), CPU) == ("2.9.2+cpu", "2.9.2", "2.9.1+cpu")


def test_nights_are_those_of_the_release_up_to_the_day() -> None:
    days = ("20251117", "20251118", "20251119", "20251120", "20251121")
    held = files(*(f"2.10.0.dev{day}+{each}" for day in days for each in ("cpu", "cu130")))
    held += files("2.9.0.dev20251120+cpu", "2.10.0", "2.10.0.dev1+cpu")
    nights = choose_nights(held, "2.10.0", "20251120")
    assert nights == tuple(f"2.10.0.dev{day}" for day in ("20251120", "20251119", "20251118"))
    assert choose_nights(held, "2.11.0", "20251120") == ()


@each_case(
    ("inputs", "device"),
    [
        ({}, Wanted()),
        ({"variable USE_CUDA": "0", "cuda toolkit": "/usr/local/cuda 12.6.3"}, CPU),
        ({"variable USE_CUDA": ""}, CPU),
        ({"variable USE_CUDA": "ON"}, CUDA),
        (
            {"variable USE_CUDA": "1", "cuda toolkit": "/my cuda 12 12.6.3"},
            Wanted(cuda=True, toolkit="cu126"),
        ),
        ({"variable USE_CUDA": "1", "cuda toolkit": "/usr/local/cuda"}, CUDA),
    ],
)
def test_the_device_is_the_plans(inputs: dict[str, str], device: Wanted) -> None:
    assert wanted_device(inputs) == device


def test_a_nightly_names_what_it_was_made_from() -> None:
    assert night_source(f"2025-11-20 nightly release ({'a1' * 20})") == "a1" * 20
    assert night_source(f"Revert {'a1' * 20}") == ""
