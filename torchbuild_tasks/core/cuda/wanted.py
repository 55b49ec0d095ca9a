"""Whether a build has CUDA at all."""

from __future__ import annotations

from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.variables import decide, is_off


def is_cuda(question: Question) -> bool:
    """Whether CUDA is built: --cuda, USE_CUDA, torchbuild.toml or the preset say so.

    An empty USE_CUDA is false for CMake.
    """
    asked = decide(question, "USE_CUDA")
    return asked is not None and asked.value != "" and not is_off(asked.value)
