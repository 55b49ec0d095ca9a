"""Code that makes a CPU torch pretend to have GPUs, so that the checks of a CUDA torch run and can fail.

What is asked of "cuda" is computed on the CPU; what only a GPU has is played. So the checks'
own arithmetic, tolerances and use of torch are real; only the device is not.
"""

from __future__ import annotations

PRETENDED_GPU = """
import contextlib, types
COUNT = 1
torch.version.cuda = "13.0"
torch._C._cuda_getArchFlags = lambda: "sm_80 sm_90 compute_90"
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: COUNT
torch.cuda.get_device_capability = lambda index=0: (9, 0)
torch.cuda.get_device_properties = lambda index: types.SimpleNamespace(
    name="Pretended", major=9, minor=0, total_memory=2**34
)
torch.cuda.synchronize = torch.cuda.current_stream = lambda: None
torch.cuda.memory_allocated = lambda: 0
torch.cuda.can_device_access_peer = lambda one, other: one < other
torch.cuda.stream = lambda stream: contextlib.nullcontext()
torch.Tensor.pin_memory = torch.Tensor.clone
torch.Tensor.is_pinned = lambda self: True
torch.backends.cudnn.version = lambda: 92000
preferred = []
torch.backends.cuda.preferred_linalg_library = preferred.append
torch.cuda.has_magma = True
torch._C._nccl_version = None
torch.cuda.nccl.version = lambda: (2, 29, 7)


def all_reduce(parts):
    total = sum(parts)
    for part in parts:
        part.copy_(total)


class Stream:
    def wait_stream(self, stream): pass
    def wait_event(self, event): pass


class Event:
    ticks = 0
    def __init__(self, enable_timing): pass
    def record(self):
        Event.ticks += 1
        self.tick = Event.ticks
    def elapsed_time(self, end): return float(end.tick - self.tick)


def there(device):
    kind, _, index = str(device).partition(":")
    if kind == "cuda" and int(index or 0) >= COUNT:
        raise RuntimeError("CUDA error: invalid device ordinal")
    return "cpu" if kind == "cuda" else device


def to(self, *args, **more):
    return true_to(self, *(there(each) for each in args), **more)


def empty(*size, **more):
    if more.get("device") == "cuda":
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate too much")
    return true_empty(*size, **more)


def autocast(device, dtype):
    return true_autocast(there(device), dtype=dtype)


torch.cuda.nccl.all_reduce, torch.cuda.Stream, torch.cuda.Event = all_reduce, Stream, Event
true_to, torch.Tensor.to = torch.Tensor.to, to
true_empty, torch.empty = torch.empty, empty
true_autocast, torch.autocast = torch.autocast, autocast
"""
