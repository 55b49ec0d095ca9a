"""What the checks do around their arithmetic; whether that finds faults is tried on a real torch."""

from __future__ import annotations

import types
import warnings
from typing import Any

import pytest

from tests.support.for_each import each_case
from torchbuild_tasks.verify import cuda_checks, cuda_math


def settings(**matmul: bool) -> Any:
    return types.SimpleNamespace(
        backends=types.SimpleNamespace(
            cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(**matmul)),
            cudnn=types.SimpleNamespace(allow_tf32=True),
        )
    )


@each_case("matmul", [{}, {"allow_tf32": False}, {"allow_tf32": True}])
def test_tf32_is_off_meanwhile_and_comes_back(matmul: dict[str, bool]) -> None:
    torch = settings(**matmul)
    with pytest.raises(ZeroDivisionError), cuda_math.without_tf32(torch):
        assert not torch.backends.cudnn.allow_tf32
        assert not getattr(torch.backends.cuda.matmul, "allow_tf32", False)
        raise ZeroDivisionError
    assert torch.backends.cudnn.allow_tf32
    assert vars(torch.backends.cuda.matmul) == matmul


@each_case(("capability", "names"), [((7, 5), 3), ((8, 0), 4), ((12, 1), 4)])
def test_bfloat16_is_tried_where_the_device_has_it(capability: tuple[int, int], names: int) -> None:
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(get_device_capability=lambda index: capability),
        **{name: name for name, _ in cuda_math.PRECISIONS},
    )
    kinds = [name for name, _, _ in cuda_math.precisions(torch)]
    assert kinds == ["float64", "float32", "float16", "bfloat16"][:names]


@each_case(("number", "text"), [(92000, "9.20.0"), (90100, "9.1.0"), (8902, "8.9.2"), (7605, "7.6.5")])
def test_the_version_of_cudnn(number: int, text: str) -> None:
    assert cuda_math.cudnn_version(number) == text


@each_case(("has_magma", "asked"), [(True, ["cusolver", "magma"]), (False, ["cusolver"])])
def test_each_library_is_preferred_in_turn(has_magma: bool, asked: list[str]) -> None:
    preferred: list[str] = []
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(has_magma=has_magma),
        backends=types.SimpleNamespace(cuda=types.SimpleNamespace(preferred_linalg_library=preferred.append)),
    )
    assert [name.lower() for name in cuda_math.prefer_each_library(torch)] == asked
    assert preferred == [*asked, "default"]


@each_case(("has_magma", "name"), [(True, "MAGMA"), (False, "cuSOLVER")])
def test_an_old_torch_has_no_preference(has_magma: bool, name: str) -> None:
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(has_magma=has_magma),
        backends=types.SimpleNamespace(cuda=types.SimpleNamespace()),
    )
    assert list(cuda_math.prefer_each_library(torch)) == [name]


# The words of torch 2.11.0+cu130.
HANDED_ON = (
    "linalg.svd: MAGMA, as a linear algebra backend, is deprecated and will be removed in future releases. "
    "linalg.svd will try dispatching to cuSOLVER instead. If you see any error messages, please, file ..."
)


@pytest.mark.parametrize("words", [HANDED_ON, "An output with one or more elements was resized", ""])
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_library_no_longer_makes_is_no_failure(words: str, fails: bool) -> None:
    def compute() -> float:
        if words:
            warnings.warn(words, stacklevel=1)
        if fails:
            raise RuntimeError("cusolver error: CUSOLVER_STATUS_INVALID_VALUE")
        return 7.0

    if fails and words != HANDED_ON:
        with pytest.raises(RuntimeError, match="INVALID_VALUE"):
            cuda_math.run_unless_replaced(compute)
    else:
        assert cuda_math.run_unless_replaced(compute) == (None if words == HANDED_ON else 7.0)


@each_case(("seen", "text"), [((2, 29, 7), "2.29.7"), ((2, 29, 7, "rc1"), "2.29.7.rc1"), (2708, "2708")])
def test_the_version_of_nccl(seen: Any, text: str) -> None:
    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(nccl=types.SimpleNamespace(version=lambda: seen))
    )
    assert cuda_checks.nccl_version(torch) == text
