from __future__ import annotations

import importlib
import math
import shutil
import sysconfig
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.for_each import each_case
from torchbuild_tasks.verify import torch_checks
from torchbuild_tasks.verify.torch_checks import (
    Wrong,
    compare,
    convolve,
    distance_of,
    numbers,
    product,
    transpose,
)

FINITE = st.floats(-1e6, 1e6)
MATRIX = st.integers(1, 4).flatmap(
    lambda wide: st.lists(st.lists(FINITE, min_size=wide, max_size=wide), min_size=1, max_size=4)
)


class Tensor:
    """As much of a tensor as `close` asks for."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def tolist(self) -> Any:
        return self.values


def test_half_a_cuda_toolkit_of_the_machine_is_no_fault_of_torch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An nvcc on PATH without its libraries, and a torch for CUDA from a wheel."""
    (tmp_path / "Torch").mkdir()
    (tmp_path / "Torch/TorchConfig.cmake").touch()
    utils = SimpleNamespace(cmake_prefix_path=str(tmp_path))
    torch = SimpleNamespace(version=SimpleNamespace(cuda="12.4"), __file__=__file__, utils=utils)

    def fail(*_: object) -> str:
        raise Wrong("Your installed Caffe2 version uses CUDA but I cannot find the CUDA\n  libraries.")

    monkeypatch.setattr(torch_checks, "consume", fail)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with pytest.raises(torch_checks.NotPossible, match="no whole toolkit at /bin/nvcc"):
        torch_checks.check_cmake_consumer(torch)
    monkeypatch.setenv("CUDA_HOME", "/toolkit")  # that of a CUDA build of ours
    with pytest.raises(Wrong):
        torch_checks.check_cmake_consumer(torch)


def test_numbers_are_the_same_at_every_run_and_differ_by_shape_and_seed() -> None:
    first = numbers(3, 5)
    assert [len(row) for row in first] == [5, 5, 5]
    assert first == numbers(3, 5)
    assert first != numbers(3, 5, seed=2)
    assert all(-1 <= value <= 1 for row in first for value in row)


def test_product_by_hand() -> None:
    assert product([[1.0, 2.0], [3.0, 4.0]], [[5.0], [6.0]]) == [[17.0], [39.0]]


@given(MATRIX)
def test_product_with_the_identity_changes_nothing(matrix: list[list[float]]) -> None:
    size = len(matrix[0])
    identity = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    assert product(matrix, identity) == matrix


@given(MATRIX)
def test_turning_twice_is_nothing(matrix: list[list[float]]) -> None:
    assert transpose(transpose(matrix)) == matrix


def test_convolution_by_hand() -> None:
    image = [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]
    kernel = [[[[1.0, 0.0], [0.0, -1.0]]]]
    assert convolve(image, kernel, [10.0], 1, 0) == [[[6.0, 6.0], [6.0, 6.0]]]
    assert convolve(image, kernel, [0.0], 2, 1) == [[[-1.0, -3.0], [-7.0, -4.0]]]


def test_convolution_adds_up_the_channels() -> None:
    image = [[[1.0]], [[10.0]]]
    assert convolve(image, [[[[2.0]], [[3.0]]], [[[0.0]], [[1.0]]]], [0.0, 0.5], 1, 0) == [
        [[32.0]],
        [[10.5]],
    ]


@given(MATRIX)
def test_nothing_is_apart_from_itself(matrix: list[list[float]]) -> None:
    assert distance_of(matrix, matrix) == 0.0


@given(MATRIX, FINITE)
def test_apart_finds_the_one_that_differs(matrix: list[list[float]], by: float) -> None:
    other = [list(row) for row in matrix]
    other[-1][-1] += by
    assert distance_of(other, matrix) == abs(other[-1][-1] - matrix[-1][-1])


@each_case(
    ("seen", "wanted"),
    [([1.0], [1.0, 2.0]), ([[1.0]], [[1.0], [2.0]]), (1.0, [1.0]), ([math.nan], [1.0]), ([math.inf], [1.0])],
)
def test_another_shape_or_no_number_is_infinitely_apart(seen: Any, wanted: Any) -> None:
    assert distance_of(seen, wanted) == math.inf


def test_close_says_how_close() -> None:
    assert compare("solve", Tensor([1.0]), [1.0 + 2e-7], 1e-6) == "solve off by 2.0e-07, allowed 1e-06"


@each_case("value", [1.1, math.nan])
def test_what_is_too_far_off_is_wrong(value: float) -> None:
    with pytest.raises(Wrong, match=r"^solve off by .*, allowed 1e-06$"):
        compare("solve", Tensor([value]), [1.0], 1e-6)


# ---------------------------------------------------------------- what a C++ extension needs


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-c++ -pipe")
    with pytest.raises(torch_checks.NotPossible, match=r"no-such-c\+\+ -pipe is not on PATH"):
        torch_checks.check_cpp_extension(None)


def test_no_ninja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "ninja" else name)
    with pytest.raises(torch_checks.NotPossible, match="ninja is not on PATH"):
        torch_checks.check_cpp_extension(None)


def test_no_python_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": "/nowhere"})
    with pytest.raises(torch_checks.NotPossible, match="headers of this Python are not installed"):
        torch_checks.check_cpp_extension(None)


def test_no_setuptools(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'setuptools'", name="setuptools")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(torch_checks.NotPossible, match="needs setuptools"):
        torch_checks.extension_builder()


def test_a_torch_without_the_extension_builder_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ModuleNotFoundError, match=r"torch\.utils\.cpp_extension"):
        torch_checks.extension_builder()


# ---------------------------------------------------------------- numpy


class NumpyLessTorch:
    @staticmethod
    def from_numpy(array: Any) -> None:
        raise RuntimeError("PyTorch was compiled without NumPy support")


class Numpy:
    @staticmethod
    def array(values: Any, dtype: str) -> Any:
        return values


def test_no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError("No module named 'numpy'", name=name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(torch_checks.NotPossible, match="No module named 'numpy'"):
        torch_checks.check_numpy(None)


def test_a_torch_built_without_numpy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: Numpy)
    with pytest.raises(torch_checks.NotPossible) as caught:
        torch_checks.check_numpy(NumpyLessTorch)
    assert caught.value.args[1:] == ({"built_with": "OFF"},)


def test_a_numpy_that_torch_cannot_use_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        @staticmethod
        def from_numpy(array: Any) -> None:
            raise RuntimeError("Numpy is not available")

    monkeypatch.setattr(importlib, "import_module", lambda name: Numpy)
    with pytest.raises(RuntimeError, match="Numpy is not available"):
        torch_checks.check_numpy(Torch)
