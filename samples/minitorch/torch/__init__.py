"""minitorch: a sample with PyTorch's build contract. It is not PyTorch.

It builds, installs and reports on itself as PyTorch does, so that a build tool has something small
to try its hands on. What it computes with is float64 tensors and a handful of operations.
"""

import sys

if sys.platform == "win32":
    from torch._dlls import load_dlls

    load_dlls()

from torch import __config__, _C, cuda, distributed, utils, version
from torch._C import Tensor, add, allclose, matmul, mul, relu, sum, t
from torch._C import from_numpy, get_num_threads, set_num_threads
from torch.serialization import load, save
from torch.version import __version__

__sample__ = "minitorch"

__all__ = ["Tensor", "float64", "tensor", "from_numpy", "save", "load"]
__all__ += ["add", "allclose", "matmul", "mul", "relu", "sum", "t"]
__all__ += ["get_num_threads", "set_num_threads", "cuda", "distributed", "utils", "version"]
__all__ += ["__config__", "__sample__", "__version__"]

float64 = "torch.float64"  # the only dtype, and no more than its name


def tensor(data, *, dtype=float64):
    """Nested lists of numbers, all of one length per level, as a Tensor."""
    if dtype != float64:
        raise TypeError(f"minitorch has no dtype but float64, got {dtype!r}")
    return _C.tensor(data)
