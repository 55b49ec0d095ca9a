"""The checks of a CUDA torch's results, against plain Python or the CPU in double precision.

Loaded like `cuda_checks.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Answer = tuple[str, dict[str, str]]

PACKAGE = f"{__package__}." if __package__ else ""
shared = importlib.import_module(f"{PACKAGE}torch_checks")
reasons = importlib.import_module(f"{PACKAGE}cuda_reasons")
DEVICE = importlib.import_module(f"{PACKAGE}cuda_checks").DEVICE
NotPossible = shared.NotPossible
Wrong = shared.Wrong
numbers = shared.numbers
compare = shared.compare
require_compiled = reasons.require_compiled
require_device = reasons.require_device

# Tolerances for each type: products of 53 terms within [-1, 1], rounded once.
PRECISIONS = (("float64", 1e-12), ("float32", 2e-5), ("float16", 2e-2), ("bfloat16", 1e-1))


@contextlib.contextmanager
def without_tf32(torch: Any) -> Iterator[None]:
    """Disable TF32, which rounds to 10 bits and is the default of convolutions."""
    switches = [torch.backends.cuda.matmul, torch.backends.cudnn]
    switches = [switch for switch in switches if hasattr(switch, "allow_tf32")]  # since torch 1.7
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = False
    try:
        yield
    finally:
        for switch, allowed in zip(switches, before):  # noqa: B905 - Python 3.7 knows no strict
            switch.allow_tf32 = allowed


def precisions(torch: Any) -> list[tuple[str, Any, float]]:
    """Return the number types that the first device multiplies; bfloat16 from capability 8.0 on."""
    modern = torch.cuda.get_device_capability(0) >= (8, 0)
    names = [(name, allowed) for name, allowed in PRECISIONS if modern or name != "bfloat16"]
    return [(name, getattr(torch, name), allowed) for name, allowed in names]


def check_cuda_matmul(torch: Any) -> Answer:
    require_device(torch)
    left = numbers(37, 53)
    right = numbers(53, 41)
    wanted = shared.product(left, right)
    details = []
    large = torch.tensor(numbers(300, 300), dtype=torch.float64)
    with without_tf32(torch):
        for name, dtype, allowed in precisions(torch)[:2]:
            a, b = (torch.tensor(side, dtype=dtype).to(DEVICE) for side in (left, right))
            details.append(compare(name, a @ b, wanted, allowed))
            on_gpu = large.to(dtype).to(DEVICE)
            compare(f"{name}, 300 x 300", on_gpu @ on_gpu.t(), (large @ large.t()).tolist(), allowed * 20)
    return "; ".join(details), {}


def check_cublas(torch: Any) -> Answer:
    """Compare batched and strided products of every precision, against the same numbers on the CPU."""
    require_device(torch)
    one = numbers(5, 37, 53)
    other = numbers(5, 53, 40)
    details = []
    with without_tf32(torch):
        for name, dtype, allowed in precisions(torch):
            # Rounded to single precision, the default, sums in double precision would be exact.
            a = torch.tensor(one, dtype=torch.float64).to(dtype)
            b = torch.tensor(other, dtype=torch.float64).to(dtype)
            wanted = torch.matmul(a.double(), b.double())
            x = a.to(DEVICE)
            y = b.to(DEVICE)
            details.append(compare(f"{name} batched", torch.bmm(x, y).double(), wanted.tolist(), allowed))
            transposed = x.transpose(1, 2).contiguous().transpose(1, 2)
            strided = torch.bmm(transposed[:, ::2], y[:, :, ::2])
            compare(f"{name} strided", strided.double(), wanted[:, ::2, ::2].tolist(), allowed)
    return "; ".join(details), {}


def convolve(torch: Any, device: str, stride: int, padding: int) -> tuple[Any, Any]:
    """Return a convolution and the gradient of its kernel; on the CPU in double precision, else in single."""
    dtype = torch.float64 if device == "cpu" else torch.float32
    x = torch.tensor(numbers(2, 4, 13, 11), dtype=dtype).to(device)
    kernel = torch.tensor(numbers(6, 4, 3, 3), dtype=dtype).to(device).requires_grad_()
    y = torch.nn.functional.conv2d(x, kernel, stride=stride, padding=padding)
    y.pow(2).sum().backward()
    return y.detach(), kernel.grad


def check_cuda_conv(torch: Any) -> Answer:
    require_device(torch)
    return "; ".join(compare_with_cpu(torch)), {}


def compare_with_cpu(torch: Any) -> list[str]:
    details = []
    with without_tf32(torch):
        for stride, padding in ((1, 0), (2, 1)):
            on_gpu = convolve(torch, DEVICE, stride, padding)
            on_cpu = convolve(torch, "cpu", stride, padding)
            details.append(compare(f"stride {stride}: result", on_gpu[0], on_cpu[0].tolist(), 1e-4))
            details.append(compare(f"stride {stride}: gradient", on_gpu[1], on_cpu[1].tolist(), 1e-3))
    return details


def check_cudnn(torch: Any) -> Answer:
    """Convolve with cuDNN and without it, and compare both with the CPU."""
    require_compiled(torch)
    cudnn = torch.backends.cudnn
    number = cudnn.version()  # raises where another cuDNN is loaded than torch was built for
    if number is None:
        raise NotPossible("this torch was built without cuDNN")
    values = {"cudnn": cudnn_version(int(number))}
    require_device(torch, **values)
    if not cudnn.enabled:
        raise Wrong("torch.backends.cudnn.enabled is False", values)
    before = cudnn.enabled
    details = []
    try:
        for on in (True, False):
            cudnn.enabled = on
            details.append(f"{'with' if on else 'without'} it {compare_with_cpu(torch)[0]}")
    finally:
        cudnn.enabled = before
    return f"cuDNN {values['cudnn']}; {'; '.join(details)}", values


def cudnn_version(number: int) -> str:
    """Read 92000 as 9.20.0 and 8902 as 8.9.2. Source: CUDNN_VERSION in cudnn_version.h of 9 and of 8."""
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def check_cuda_linalg(torch: Any) -> Answer:
    require_compiled(torch)
    values = {"magma": "ON" if getattr(torch.cuda, "has_magma", False) else "OFF"}
    require_device(torch, **values)
    served = []
    details = ""
    for library in prefer_each_library(torch):
        try:
            details = solve(torch)
        except Wrong as error:
            raise Wrong(f"by {library}: {error}", values) from error
        served.append(library)
    return f"served by {' and by '.join(served)}: {details}", values


def prefer_each_library(torch: Any) -> Iterator[str]:
    """Make torch prefer each of its libraries in turn; for a function that one lacks it uses the other."""
    prefer = getattr(torch.backends.cuda, "preferred_linalg_library", None)  # since torch 1.11
    has_magma = bool(getattr(torch.cuda, "has_magma", False))
    if prefer is None:
        yield "MAGMA" if has_magma else "cuSOLVER"
        return
    try:
        for library in ("cusolver", "magma") if has_magma else ("cusolver",):
            prefer(library)
            yield {"cusolver": "cuSOLVER", "magma": "MAGMA"}[library]
    finally:
        prefer("default")


def solve(torch: Any) -> str:
    details = []
    for name, compute, wanted, allowed in shared.linalg_products(torch, DEVICE):
        got = run_unless_replaced(compute)
        text = f"{name} is left to the other library" if got is None else ""
        details.append(text or compare(name, got, wanted, allowed))
    return "; ".join(details)


def run_unless_replaced(compute: Callable[[], Any]) -> Any:
    """Return the result of `compute`; None if torch warns that it used the other library.

    torch 2.11 hands svd on to cuSOLVER where MAGMA is preferred (pytorch#172824), in MAGMA's memory
    layout: the factors come back mixed up (seen with 2.11.0+cu130 on an H200). The default is right.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = compute()
        except Exception:
            got = None
            if not is_left_to_the_other(caught):
                raise
    return None if is_left_to_the_other(caught) else got


def is_left_to_the_other(caught: Sequence[warnings.WarningMessage]) -> bool:
    return any(re.search(r"MAGMA.* deprecated.* cuSOLVER", str(each.message), re.DOTALL) for each in caught)


def check_cuda_amp(torch: Any) -> Answer:
    """Check that autocast multiplies in half precision, and GradScaler skips a step that overflows."""
    require_device(torch)
    if not hasattr(torch.cuda, "amp"):
        raise NotPossible("this torch has no torch.cuda.amp, which came with 1.6")
    left = numbers(37, 53)
    right = numbers(53, 41)
    details = []
    a, b = (torch.tensor(side).to(DEVICE) for side in (left, right))
    for name, dtype, allowed in precisions(torch)[2:]:
        with torch.autocast(DEVICE, dtype=dtype) if hasattr(torch, "autocast") else torch.cuda.amp.autocast():
            y = a @ b
        if y.dtype != dtype:
            raise Wrong(f"under autocast to {name} a product is of {y.dtype}")
        details.append(compare(f"{name} autocast", y.double(), shared.product(left, right), allowed))
        if not hasattr(torch, "autocast"):  # before torch 1.10: float16 only
            break
    return "; ".join([*details, take_scaled_steps(torch)]), {}


def take_scaled_steps(torch: Any) -> str:
    """Step a weight of 1 with the gradient 0.5 to 0.5; an infinite gradient must not change it."""
    modern = hasattr(getattr(torch, "amp", None), "GradScaler")  # since torch 2.3
    scaler = torch.amp.GradScaler(DEVICE) if modern else torch.cuda.amp.GradScaler()
    weight = torch.ones(1).to(DEVICE).requires_grad_()
    descent = torch.optim.SGD([weight], lr=1.0)
    before = scaler.get_scale()
    for factor in (0.5, float("inf")):
        descent.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(descent)
        scaler.update()
    details = compare("scaled step", weight.detach(), [0.5], 0.0)
    if not scaler.get_scale() < before:
        raise Wrong("GradScaler does not lower its scale after an overflow")
    return str(details)
