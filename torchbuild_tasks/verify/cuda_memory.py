"""The checks of a CUDA torch's memory, streams and several GPUs; loaded like `cuda_checks.py`."""

from __future__ import annotations

import importlib
import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Answer = tuple[str, dict[str, str]]

PACKAGE = f"{__package__}." if __package__ else ""
shared = importlib.import_module(f"{PACKAGE}torch_checks")
reasons = importlib.import_module(f"{PACKAGE}cuda_reasons")
checks = importlib.import_module(f"{PACKAGE}cuda_checks")
NotPossible = shared.NotPossible
Wrong = shared.Wrong
numbers = shared.numbers
compare = shared.compare
require_compiled = reasons.require_compiled
require_device = reasons.require_device
add_on_gpu = checks.add_on_gpu
error_of = checks.error_of
DEVICE = checks.DEVICE

TOO_MUCH = 64  # times the device's memory: more than Windows lends to it from the machine's


def check_cuda_oom(torch: Any) -> Answer:
    require_device(torch)
    kind = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)  # a class of its own since torch 1.13
    before = torch.cuda.memory_allocated()
    size = torch.cuda.get_device_properties(0).total_memory * TOO_MUCH
    details = error_of(lambda: torch.empty(size, dtype=torch.uint8, device=DEVICE), kind)
    if "out of memory" not in details:
        raise Wrong(f"an allocation of {size} bytes ends with: {details}")
    after = add_on_gpu(torch)
    if torch.cuda.memory_allocated() > before:
        raise Wrong(f"{torch.cuda.memory_allocated() - before} bytes are lost after running out of memory")
    return f"{TOO_MUCH} times its memory is refused; then {after}", {}


def check_cuda_pinned(torch: Any) -> Answer:
    require_device(torch)
    given = torch.tensor(numbers(64, 65)).pin_memory()
    if not given.is_pinned():
        raise Wrong("Tensor.pin_memory() gives memory that is not pinned")
    on_gpu = given.to(DEVICE, non_blocking=True)
    back = torch.empty_like(given).pin_memory()
    back.copy_(on_gpu, non_blocking=True)
    torch.cuda.synchronize()
    return compare("there and back: pinned memory", back, given.tolist(), 0.0), {}


def check_cuda_streams(torch: Any) -> Answer:
    """One stream multiplies, another waits for it by an event and adds: the sum tells the order."""
    require_device(torch)
    first = torch.cuda.Stream()
    second = torch.cuda.Stream()
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    x = torch.ones(512, 512).to(DEVICE) / 512.0
    first.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(first):
        start.record()
        y = x
        for _ in range(50):  # the same numbers again: the matrix is its own square
            y = y @ x
        end.record()
    second.wait_event(end)
    with torch.cuda.stream(second):
        z = y[0] + 1.0
    torch.cuda.synchronize()
    details = compare("in order: result", z, [1.0 + 1.0 / 512.0] * 512, 1e-5)
    took = start.elapsed_time(end)
    if not took >= 0:
        raise Wrong(f"an event is {took} ms before the one that was recorded earlier")
    return f"{details}; the events are in order", {}


def check_cuda_peer(torch: Any) -> Answer:
    require_device(torch)
    count = torch.cuda.device_count()
    if count < 2:
        raise NotPossible("there is one GPU only")
    given, direct = numbers(33, 7), []
    for one, other in itertools.permutations(range(count), 2):
        copied = torch.tensor(given).to(f"{DEVICE}:{one}").to(f"{DEVICE}:{other}")
        compare(f"copied from {one} to {other}: tensor", copied, torch.tensor(given).tolist(), 0.0)
        if torch.cuda.can_device_access_peer(one, other):
            direct.append(f"{one}-{other}")
    return f"copies between {count} GPUs; peer access: {' '.join(direct) or 'none'}", {}


def check_nccl(torch: Any) -> Answer:
    require_compiled(torch)
    if not hasattr(torch._C, "_nccl_version"):
        raise NotPossible("this torch was built without NCCL")
    values = {"nccl": nccl_version(torch)}
    require_device(torch, **values)
    count = torch.cuda.device_count()
    if count < 2:
        raise NotPossible(f"NCCL {values['nccl']}: there is one GPU only", values)
    parts = [torch.full((5,), float(index)).to(f"{DEVICE}:{index}") for index in range(count)]
    torch.cuda.nccl.all_reduce(parts)
    torch.cuda.synchronize()
    wanted = [float(sum(range(count)))] * 5
    details = [compare(f"sum on GPU {index}", part, wanted, 0.0) for index, part in enumerate(parts)]
    return f"NCCL {values['nccl']}; {'; '.join(details)}", values


def nccl_version(torch: Any) -> str:
    """Return it as text; a number such as 2708 before torch 1.11."""
    seen = torch.cuda.nccl.version()
    return ".".join(map(str, seen)) if isinstance(seen, tuple) else str(seen)
