"""The definitions that the operators of torchvision and torchaudio are compared with; wrong results fail."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from torchbuild_tasks.verify import companion_checks
from torchbuild_tasks.verify.torch_checks import NotPossible, Wrong


def test_overlap_is_the_shared_area_of_the_covered_one() -> None:
    assert companion_checks.overlap([0, 0, 2, 2], [1, 1, 3, 3]) == pytest.approx(1 / 7)
    assert companion_checks.overlap([0, 0, 1, 1], [1, 0, 2, 1]) == 0
    assert companion_checks.overlap([0, 0, 2, 2], [0, 0, 2, 2]) == 1


def test_the_best_boxes_are_kept_best_first() -> None:
    boxes = [[0, 0, 2, 2], [0.1, 0, 2, 2], [5, 5, 6, 6], [1, 1, 3, 3]]
    assert companion_checks.nms_by_definition(boxes, [0.5, 0.9, 0.7, 0.6], 0.3) == [1, 2, 3]
    assert companion_checks.nms_by_definition(boxes, [0.5, 0.9, 0.7, 0.6], 0.1) == [1, 2]


def test_a_filter_by_its_definition() -> None:
    assert companion_checks.filter_by_definition([1.0, 0.0, 0.0], [0.5], [1.0, -0.5]) == [0.5, 0.25, 0.125]
    assert companion_checks.filter_by_definition([2.0, 4.0], [1.0, 1.0], [2.0, 0.0]) == [1.0, 3.0]


class Numbers(list[Any]):
    def tolist(self) -> list[Any]:
        return list(self)


def torch(**changes: Any) -> Any:
    return SimpleNamespace(
        float32="float32",
        float64="float64",
        tensor=lambda values, **how: Numbers(values),
        cuda=SimpleNamespace(is_available=lambda: False),
        ops=SimpleNamespace(torchaudio=SimpleNamespace(**changes)),
    )


def vision(answer: Any) -> Any:
    return SimpleNamespace(ops=SimpleNamespace(nms=answer))


def test_the_right_boxes_pass() -> None:
    right = vision(
        lambda boxes, scores, most: Numbers(companion_checks.nms_by_definition(boxes, scores, most))
    )
    assert "the right ones" in companion_checks.compare_nms(torch(), right, "cpu")


def test_a_wrong_box_is_reported() -> None:
    wrong = vision(lambda boxes, scores, most: Numbers([0]))
    with pytest.raises(Wrong, match=r"nms on cpu kept \[0\], by its definition"):
        companion_checks.compare_nms(torch(), wrong, "cpu")


def test_without_a_gpu_its_operators_cannot_be_tried() -> None:
    with pytest.raises(NotPossible, match="no GPU"):
        companion_checks.check_torchvision_cuda(torch())


def test_a_torchaudio_that_computes_in_python_is_not_taken_for_a_built_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audio = SimpleNamespace(__version__="2.11.0", __file__=__file__)
    found = {"torchaudio": audio, "torchaudio.functional": SimpleNamespace()}
    monkeypatch.setattr(importlib, "import_module", found.__getitem__)
    with pytest.raises(Wrong, match="compiled operators are not loaded"):
        companion_checks.check_torchaudio(torch())


@pytest.mark.parametrize("right", [True, False])
def test_torchaudio_is_compared_with_the_definition(monkeypatch: pytest.MonkeyPatch, right: bool) -> None:
    def lfilter(wave: Any, back: Any, ahead: Any, clamp: bool) -> Any:
        answer = companion_checks.filter_by_definition(wave[0], ahead, back)
        return [Numbers(answer if right else answer[::-1])]

    audio = SimpleNamespace(__version__="2.11.0", __file__=__file__)
    found = {"torchaudio": audio, "torchaudio.functional": SimpleNamespace(lfilter=lfilter)}
    monkeypatch.setattr(importlib, "import_module", found.__getitem__)
    if not right:
        with pytest.raises(Wrong, match="lfilter of 64 samples"):
            companion_checks.check_torchaudio(torch(_lfilter="here"))
        return
    detail, values = companion_checks.check_torchaudio(torch(_lfilter="here"))
    assert "by _lfilter off by 0.0e+00" in detail
    assert values["torchaudio_version"] == "2.11.0"


def test_attention_by_its_definition() -> None:
    """Equal scores average the values; a key that fits far better is the only one that counts."""
    values = [[[1.0, 0.0]], [[3.0, 2.0]]]
    same = companion_checks.attention_by_definition([[[0.0, 0.0]]], [[[1.0, 1.0]], [[2.0, 2.0]]], values)
    assert same == [[[2.0, 1.0]]]
    one = companion_checks.attention_by_definition([[[40.0, 0.0]]], [[[0.0, 0.0]], [[40.0, 0.0]]], values)
    assert one[0][0] == pytest.approx([3.0, 2.0])


def test_without_a_gpu_attention_cannot_be_tried() -> None:
    with pytest.raises(NotPossible, match="no GPU"):
        companion_checks.compare_attention(torch(), None, "flash_attn_func")


class Groups:
    """Enough of torch_scatter: sums and maxima by group, in plain Python."""

    def __init__(self, wrong: float = 0.0) -> None:
        self.wrong = wrong

    def scatter(self, values: Any, index: Any, *, dim: int, dim_size: int, reduce: str) -> Numbers:
        assert (dim, reduce) == (0, "sum")
        return Numbers(
            sum(v for v, g in zip(values, index, strict=True) if g == group) + self.wrong
            for group in range(dim_size)
        )

    @staticmethod
    def scatter_max(values: Any, index: Any, dim: int, out: None, size: int) -> tuple[Numbers, None]:
        pairs = list(zip(values, index, strict=True))
        return Numbers(max((v for v, g in pairs if g == each), default=0.0) for each in range(size)), None


@pytest.mark.parametrize("wrong", [0.0, 1e-3])
def test_sums_by_group_are_checked_by_their_definition(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: Groups(wrong))
    seen = torch()
    seen.ops.torch_scatter = Groups
    if wrong:
        with pytest.raises(Wrong, match="scatter by sum off by"):
            companion_checks.check_torch_scatter(seen)
    else:
        assert "scatter_max" in companion_checks.check_torch_scatter(seen)[0]
