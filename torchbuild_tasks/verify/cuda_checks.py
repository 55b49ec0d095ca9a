"""The checks of a CUDA torch, its GPUs and the driver, its memory, its streams and several GPUs.

Loaded by `torch_probe.py` like `torch_checks.py`, which describes a check. On a machine
without a GPU most are not possible; what can be checked without one is checked all the same.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Answer = tuple[str, dict[str, str]]

PACKAGE = f"{__package__}." if __package__ else ""
shared = importlib.import_module(f"{PACKAGE}torch_checks")
reasons = importlib.import_module(f"{PACKAGE}cuda_reasons")
NotPossible = shared.NotPossible
Wrong = shared.Wrong
numbers = shared.numbers
compare = shared.compare
require_compiled = reasons.require_compiled
require_device = reasons.require_device

DEVICE = "cuda"
TOO_MUCH = 64  # times the device's memory: more than Windows adds to it from the machine's memory

# Integrated and discrete GPUs of one generation do not run each other's code. Source: CUDA C++
# programming guide, "Binary compatibility"; the same in torch/cuda/__init__.py, DEVICE_REQUIREMENT.
TEGRA = ((3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1))
RENAMED = {(10, 1): (11, 0)}  # Thor, from CUDA 13.0 on


# ---------------------------------------------------------------- devices and architectures


def check_cuda_available(torch: Any) -> Answer:
    if not reasons.is_compiled(torch):
        hip = getattr(torch.version, "hip", None)
        raise Wrong("this torch was built without CUDA" + (f", for ROCm {hip}" if hip else ""))
    values = reasons.installed_versions(str(torch.version.cuda))
    if not torch.cuda.is_available():
        raise NotPossible(reasons.why_not(torch), values)
    details = [f"{torch.cuda.device_count()} visible", *(f"{key} {text}" for key, text in values.items())]
    return ", ".join(details), values


def check_cuda_arch_list(torch: Any) -> Answer:
    require_compiled(torch)
    archs = arch_list(torch)
    values = {"arch_list": " ".join(archs)}
    if not torch.cuda.is_available() or not hasattr(torch.cuda, "get_device_properties"):  # as the sample
        raise NotPossible(f"{values['arch_list']}: no GPU to hold them against", values)
    unserved = [text for text, capability in devices(torch) if not any(runs_on(a, capability) for a in archs)]
    if unserved:
        raise Wrong(
            f"no kernel image for {'; '.join(unserved)}: this torch holds {values['arch_list']}", values
        )
    return f"{values['arch_list']} serve every device", values


def arch_list(torch: Any) -> list[str]:
    """Return the architectures that this torch was compiled for: "sm_86", "compute_90" for PTX."""
    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    archs = str(flags() or "").split() if flags else list(getattr(torch.cuda, "get_arch_list", list)())
    if not archs:
        raise NotPossible("this torch does not say which architectures it was compiled for")
    return archs


def runs_on(arch: str, capability: tuple[int, int]) -> bool:
    """Say whether a device of `capability` runs code for `arch`: machine code, or PTX by its driver.

    Machine code runs on its own major release from its minor one on, PTX on everything
    later. Code with an "a" runs on that very capability only, with an "f" on its major release.
    """
    parts = re.match(r"(sm|compute)_(\d+)(\d)([af]?)$", arch)
    if not parts:
        return False
    code = (int(parts.group(2)), int(parts.group(3)))
    if capability in (code, RENAMED.get(code)):
        return True
    if parts.group(4) == "a" or code > capability:
        return False
    if parts.group(1) == "compute" and not parts.group(4):
        return True
    return code[0] == capability[0] and code not in TEGRA and capability not in TEGRA


def devices(torch: Any) -> list[tuple[str, tuple[int, int]]]:
    """Return a description of each device, and its compute capability."""
    known = []
    for index in range(torch.cuda.device_count()):
        seen = torch.cuda.get_device_properties(index)
        mig = ", a MIG instance" if " MIG " in seen.name else ""
        size = f"{seen.total_memory / 2**30:.1f} GiB"
        known.append(
            (f"{index}: {seen.name} ({seen.major}.{seen.minor}, {size}{mig})", (seen.major, seen.minor))
        )
    return known


def check_cuda_devices(torch: Any) -> Answer:
    require_device(torch)
    gpus = devices(torch)
    if not gpus:
        raise Wrong("torch.cuda.is_available() is true, and torch.cuda.device_count() is 0")
    words = "; ".join(text for text, _ in gpus)
    return words, {"devices": words, "capabilities": " ".join(f"{a}.{b}" for _, (a, b) in gpus)}


# ---------------------------------------------------------------- the driver, one addition, exceptions


def check_cuda_driver(torch: Any) -> Answer:
    """Fill memory and copy it back with the driver alone: if that fails, torch is not the cause."""
    require_device(torch)
    try:
        driver = reasons.driver_library()
    except OSError as error:  # torch still loads it, in another way
        raise NotPossible(f"the driver cannot be asked without torch: {error}") from error
    words = driver_fault(driver)
    if words:
        reasons.BROKEN.append(f"the driver fails without torch: {words}")
        raise NotPossible(reasons.BROKEN[0])
    return "the driver fills memory and copies it back", {}


def driver_fault(driver: Any) -> str:
    """Return the driver's error with 16 numbers on the first device; "" for none.

    The functions and their order are of the CUDA driver API; each returns a CUresult, 0 for success.
    """
    device = ctypes.c_int()
    context = ctypes.c_void_p()
    address = ctypes.c_uint64()
    back = (ctypes.c_uint * 16)()
    size = ctypes.c_size_t(64)
    for name, arguments in (
        ("cuInit", (0,)),
        ("cuDeviceGet", (ctypes.byref(device), 0)),
        ("cuDevicePrimaryCtxRetain", (ctypes.byref(context), device)),
        ("cuCtxPushCurrent_v2", (context,)),
        ("cuMemAlloc_v2", (ctypes.byref(address), size)),
        ("cuMemsetD32_v2", (address, ctypes.c_uint(7), ctypes.c_size_t(16))),
        ("cuMemcpyDtoH_v2", (back, address, size)),
        ("cuMemFree_v2", (address,)),
        ("cuCtxPopCurrent_v2", (ctypes.byref(context),)),
        ("cuDevicePrimaryCtxRelease", (device,)),
    ):
        code = getattr(driver, name)(*arguments)
        if code:
            return f"{name} gives error {code}"
    return "" if list(back) == [7] * 16 else "memory that it filled comes back changed"


def check_cuda_op(torch: Any) -> Answer:
    require_device(torch)
    return add_on_gpu(torch), {}


def add_on_gpu(torch: Any) -> str:
    x = torch.tensor([1.0, 2.0, 3.0]).to(DEVICE)
    return str(compare("an addition", x + x, [2.0, 4.0, 6.0], 0.0))


def check_cuda_kernels(torch: Any) -> Answer:
    """Run a kernel on a GPU of each architecture that this torch was compiled for, if there is one."""
    require_device(torch)
    here = devices(torch)
    ran = []
    absent = []
    for arch in arch_list(torch):
        fitting = [at for at, (_, capability) in enumerate(here) if runs_on(arch, capability)]
        if not fitting:
            absent.append(arch)
            continue
        x = torch.tensor([1.0, 2.0, 3.0]).to(f"{DEVICE}:{fitting[0]}")
        compare(f"{arch} on GPU {fitting[0]}", x * x, [1.0, 4.0, 9.0], 0.0)
        ran.append(arch)
    values = {"ran": " ".join(ran), "without_gpu": " ".join(absent)}
    missing = f"; no GPU here runs {values['without_gpu']}" if absent else ""
    if not ran:
        raise NotPossible(missing[2:], values)
    return f"{values['ran']} ran{missing}", values


def check_cuda_exceptions(torch: Any) -> Answer:
    """Check that an exception of torch's CUDA libraries reaches Python with its type, without a crash."""
    require_compiled(torch)
    if torch.cuda.is_available():
        require_device(torch)
    details = [
        error_of(lambda: torch.tensor([1.0]).to(f"{DEVICE}:{torch.cuda.device_count()}"), RuntimeError)
    ]
    if not torch.cuda.is_available():
        return f"without a GPU: {details[0]}", {}
    x = torch.tensor(numbers(4, 5)).to(DEVICE)
    details.append(error_of(lambda: x[4], IndexError))
    details.append(error_of(lambda: x @ x, RuntimeError))
    return "; ".join([*details, add_on_gpu(torch)]), {}


def error_of(attempt: Any, kind: type[Exception]) -> str:
    """Return the message of the error that `attempt` must raise."""
    try:
        attempt()
    except kind as error:
        words = str(error).partition("\n")[0]
        if "unknown exception" in words.lower():
            raise Wrong(f"the exception lost its words on the way: {words}") from error
        return f"{type(error).__name__}: {words[:120]}"
    raise Wrong(f"what must raise {kind.__name__} did not raise it")


# ---------------------------------------------------------------- memory, streams, several GPUs


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
    source = torch.tensor(numbers(64, 65)).pin_memory()
    if not source.is_pinned():
        raise Wrong("Tensor.pin_memory() gives memory that is not pinned")
    on_gpu = source.to(DEVICE, non_blocking=True)
    back = torch.empty_like(source).pin_memory()
    back.copy_(on_gpu, non_blocking=True)
    torch.cuda.synchronize()
    return compare("there and back: pinned memory", back, source.tolist(), 0.0), {}


def check_cuda_streams(torch: Any) -> Answer:
    """Check streams: one multiplies, another waits for its event and adds; the sum shows the order."""
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
        for _ in range(50):  # the matrix is its own square, so the product has the same numbers
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
    source = numbers(33, 7)
    direct = []
    for one, other in itertools.permutations(range(count), 2):
        copied = torch.tensor(source).to(f"{DEVICE}:{one}").to(f"{DEVICE}:{other}")
        compare(f"copied from {one} to {other}: tensor", copied, torch.tensor(source).tolist(), 0.0)
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
    """Return NCCL's version as text; torch before 1.11 has a number such as 2708."""
    seen = torch.cuda.nccl.version()
    return ".".join(map(str, seen)) if isinstance(seen, tuple) else str(seen)
