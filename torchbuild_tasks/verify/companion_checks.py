"""The checks of companions: run their compiled operators on real numbers, beyond the import.

Loaded like `torch_checks.py`, and the same rules hold.
"""

from __future__ import annotations

import importlib
import math
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Answer = tuple[str, dict[str, str]]

PACKAGE = f"{__package__}." if __package__ else ""
shared = importlib.import_module(f"{PACKAGE}torch_checks")
NotPossible = shared.NotPossible
Wrong = shared.Wrong
numbers = shared.numbers
compare = shared.compare


def check_torchvision(torch: Any) -> Answer:
    """Check nms against its definition, and roi_align of a plane, whose averages are known exactly."""
    vision = importlib.import_module("torchvision")
    values = module_values(vision, "torchvision")
    text = compare_nms(torch, vision, "cpu")
    plane = [[3.0 * x + 2.0 * y for x in range(12)] for y in range(10)]
    boxes = [[0.0, 1.0, 1.0, 7.0, 5.0], [0.0, 2.5, 3.5, 9.0, 8.0]]
    wanted = [3.0 * ((a + c) / 2 - 0.5) + 2.0 * ((b + d) / 2 - 0.5) for _, a, b, c, d in boxes]
    got = vision.ops.roi_align(torch.tensor([[plane]]), torch.tensor(boxes), [1, 1], 1.0, 2, True)
    return f"{text}; {compare('roi_align', got.reshape(-1), wanted, 1e-4)}", values


def check_torchvision_cuda(torch: Any) -> Answer:
    """Check nms on the GPU: a torchvision built without CUDA can be imported but lacks it."""
    if not torch.cuda.is_available():
        raise NotPossible("there is no GPU that torch can use")
    return compare_nms(torch, importlib.import_module("torchvision"), "cuda"), {}


def check_torchaudio(torch: Any) -> Answer:
    """Check a recursive filter by torchaudio's own compiled operator, against its definition."""
    audio = importlib.import_module("torchaudio")
    values = module_values(audio, "torchaudio")
    functional = importlib.import_module("torchaudio.functional")
    # Without its library torchaudio computes the same in Python.
    operators = [name for name in ("_lfilter_core_loop", "_lfilter") if has_operator(torch, name)]
    if not operators:
        raise Wrong("torchaudio's compiled operators are not loaded", values)
    wave = numbers(64)
    ahead = [0.2, 0.3, 0.1]
    back = [1.0, -0.4, 0.1]
    got = functional.lfilter(
        torch.tensor([wave], dtype=torch.float64),
        torch.tensor(back, dtype=torch.float64),
        torch.tensor(ahead, dtype=torch.float64),
        False,
    )
    what = f"lfilter of 64 samples by {operators[0]}"
    text = compare(what, got[0], filter_by_definition(wave, ahead, back), 1e-9)
    return text, values


# ---------------------------------------------------------------- extensions of which a row knows an operator


def check_torch_scatter(torch: Any) -> Answer:
    """Check sums and maxima by group against plain Python; both are operators of its own library."""
    scatter = importlib.import_module("torch_scatter")
    values = numbers(40)
    groups = [int(abs(each) * 50) % 5 for each in numbers(40, seed=3)]
    index = torch.tensor(groups)
    members = [[v for v, g in zip(values, groups) if g == group] for group in range(5)]  # noqa: B905
    tensor = torch.tensor(values, dtype=torch.float64)
    got = scatter.scatter(tensor, index, dim=0, dim_size=5, reduce="sum")
    text = compare("scatter by sum", got, [sum(each) for each in members], 1e-9)
    most = torch.ops.torch_scatter.scatter_max(tensor, index, 0, None, 5)[0]
    wanted = [max(each, default=0.0) for each in members]
    return f"{text}; {compare('scatter_max', most, wanted, 0.0)}", {}


def check_flash_attn(torch: Any) -> Answer:
    """Check attention of two heads on the GPU against its definition."""
    return compare_attention(torch, importlib.import_module("flash_attn").flash_attn_func, "flash_attn_func")


def check_xformers(torch: Any) -> Answer:
    """Check attention of two heads on the GPU against its definition."""
    attention = importlib.import_module("xformers.ops").memory_efficient_attention
    return compare_attention(torch, attention, "memory_efficient_attention")


def check_vllm(torch: Any) -> Answer:
    """Check a gated activation by vLLM's own library: silu of one half times the other."""
    importlib.import_module("vllm._C")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = numbers(6, 32)
    out = torch.empty(6, 16, dtype=torch.float32, device=device)
    torch.ops._C.silu_and_mul(out, torch.tensor(rows, dtype=torch.float32, device=device))
    wanted = [[x / (1 + math.exp(-x)) * y for x, y in zip(row[:16], row[16:])] for row in rows]  # noqa: B905
    return compare(f"silu_and_mul on {device}", out, wanted, 1e-4), {}


def compare_attention(torch: Any, attend: Any, name: str) -> Answer:
    """Check attention on the GPU, of (batch, length, heads, width) in halves, against its definition."""
    if not torch.cuda.is_available():
        raise NotPossible("there is no GPU that torch can use")
    queries, keys, values = (numbers(12, 2, 32, seed=seed) for seed in (4, 5, 6))
    halves = (torch.tensor([each], dtype=torch.float16, device="cuda") for each in (queries, keys, values))
    wanted = attention_by_definition(queries, keys, values)
    return compare(name, attend(*halves)[0].double(), wanted, 5e-3), {}


def attention_by_definition(queries: Any, keys: Any, values: Any) -> Any:
    """Return softmax(Q K^T / sqrt(width)) V of each head; all are lists of (length, heads, width)."""
    out = []
    for row in queries:
        heads = []
        for head, query in enumerate(row):
            scale = 1 / math.sqrt(len(query))
            scores = [scale * sum(q * k for q, k in zip(query, key[head])) for key in keys]  # noqa: B905
            weights = [math.exp(each - max(scores)) for each in scores]
            columns = zip(*(value[head] for value in values))  # noqa: B905
            heads.append(
                [sum(w * v for w, v in zip(weights, column)) / sum(weights) for column in columns]  # noqa: B905
            )
        out.append(heads)
    return out


def module_values(module: Any, name: str) -> dict[str, str]:
    return {f"{name}_version": str(module.__version__), f"{name}_file": os.path.realpath(module.__file__)}


def has_operator(torch: Any, name: str) -> bool:
    try:
        return bool(getattr(torch.ops.torchaudio, name))
    except (AttributeError, RuntimeError):  # the latter in torch before 1.13
        return False


def compare_nms(torch: Any, vision: Any, device: str) -> str:
    """Check non-maximum suppression of 60 boxes against the definition, in plain Python."""
    corners = numbers(60, 2, seed=7)
    sizes = numbers(60, 2, seed=8)
    boxes = [
        [10 * x, 10 * y, 10 * x + 4 + 2 * wide, 10 * y + 4 + 2 * high]
        for (x, y), (wide, high) in zip(corners, sizes)  # noqa: B905 - Python 3.7 knows no strict
    ]
    scores = numbers(60, seed=9)
    wanted = nms_by_definition(boxes, scores, 0.3)
    tensors = (torch.tensor(values, dtype=torch.float32, device=device) for values in (boxes, scores))
    got = vision.ops.nms(*tensors, 0.3).tolist()
    if got != wanted:
        raise Wrong(f"nms on {device} kept {got}, by its definition {wanted}")
    return f"nms on {device} kept {len(got)} of 60 boxes, the right ones"


def nms_by_definition(boxes: Any, scores: Any, most: float) -> list[int]:
    """Return the best box, then each next best that overlaps none of those by more than `most`."""
    chosen: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda each: -scores[each]):
        if all(overlap(boxes[index], boxes[other]) <= most for other in chosen):
            chosen.append(index)
    return chosen


def overlap(one: Any, other: Any) -> float:
    """Return the intersection of two boxes over their union."""
    wide = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    high = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return float(wide * high / (areas - wide * high))


def filter_by_definition(wave: Any, ahead: Any, back: Any) -> list[float]:
    """Return y[n] = (sum of ahead[k] x[n-k] - sum of back[k] y[n-k], k from 1) / back[0]."""
    out: list[float] = []
    for n in range(len(wave)):
        total = sum(ahead[k] * wave[n - k] for k in range(len(ahead)) if n >= k)
        total -= sum(back[k] * out[n - k] for k in range(1, len(back)) if n >= k)
        out.append(float(total / back[0]))
    return out
