"""Which host compilers nvcc takes: what the toolkit's own header says, else the row of its version.

NVIDIA's header (crt/host_config.h) is what stops the compilation, so it beats every table;
PyTorch's own, for one, takes GCC 13 for CUDA 12.3, which NVIDIA's refuses.
"""

from __future__ import annotations

import msgspec
from packaging.version import Version

from torchbuild_tasks.core.cuda.toolkit import ChosenToolkit, cuda_row
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import parse_version
from torchbuild_tasks.core.variables import decide
from torchbuild_tasks.model import Tool

# nvcc's own switch; whoever sets it has been told what may happen.
ALLOW = "-allow-unsupported-compiler"
_GCC = ("g++", "gcc", "c++", "cc")
_CLANG = ("clang++", "clang")


class HostLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The newest GCC and clang majors, and the range of _MSC_VER, that the nvcc of `cuda` takes.

    All None where nothing is known, and without CUDA. `msc` is what the header says; without
    one the rows of msvc.toml hold. `allowed` is true when the user has told
    nvcc to take any.
    """

    cuda: Version | None = None
    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None
    allowed: bool = False


NO_LIMITS = HostLimits()


def host_limits(question: Question, chosen: ChosenToolkit) -> HostLimits:
    """The limits of the chosen toolkit."""
    row, found = cuda_row(question, chosen.version), chosen.toolkit
    return HostLimits(
        cuda=chosen.version,
        gcc=(found.gcc if found else None) or (row.gcc if row else None),
        clang=(found.clang if found else None) or (row.clang if row else None),
        msc=found.msc if found else None,
        allowed=_allowed(question),
    )


def refusal(limits: HostLimits, tool: Tool) -> str:
    """Why nvcc does not take a GCC or clang; empty when it does, or when nothing is known."""
    version = parse_version(tool.version)
    newest = limits.gcc if tool.name in _GCC else limits.clang if tool.name in _CLANG else None
    if version is None or newest is None or version.major <= newest:
        return ""
    family = "GCC" if tool.name in _GCC else "clang"
    return f"CUDA {limits.cuda} takes {family} up to {newest}"


def _allowed(question: Question) -> bool:
    flags = (decide(question, name) for name in ("TORCH_NVCC_FLAGS", "CMAKE_CUDA_FLAGS", "NVCC_APPEND_FLAGS"))
    return any(ALLOW in choice.value for choice in flags if choice)
