"""Which CUDA version a build is planned for, as far as that is known."""

from __future__ import annotations

import re

from packaging.version import Version

from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.rows import parse_version
from torchbuild_tasks.core.variables import decide, is_off

# The variables that name the toolkit; on Windows the installer sets CUDA_PATH, and PyTorch
# reads CUDA_HOME first in both systems (torch/utils/cpp_extension.py).
ROOTS = ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR")
_IN_PATH = re.compile(r"(?:[\\/]v|cuda-)(\d+\.\d+)(?:[\\/]|$)", re.IGNORECASE)


def is_cuda(question: Question) -> bool:
    """Whether CUDA is built at all."""
    asked = decide(question, "USE_CUDA")
    return asked is not None and not is_off(asked.value)


def cuda_version(question: Question) -> Version | None:
    """The version that the folder of the toolkit is named after; None without CUDA, or when it says none."""
    if not is_cuda(question):
        return None
    for name in ROOTS:
        root = decide(question, name)
        if root and (found := _IN_PATH.search(root.value)):
            return parse_version(found[1])
    return None
