"""Whether a build has CUDA at all."""

from __future__ import annotations

from collections.abc import Mapping

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.core.question import Question
from torchbuild_tasks.core.settings import Settings
from torchbuild_tasks.core.variables import decide, is_off
from torchbuild_tasks.request import BuildRequest


def is_cuda(question: Question) -> bool:
    """Whether CUDA is built: --cuda, USE_CUDA, torchbuild.toml or the preset say so.

    An empty USE_CUDA is false for CMake.
    """
    asked = decide(question, "USE_CUDA")
    return asked is not None and asked.value != "" and not is_off(asked.value)


def may_be_cuda(
    request: BuildRequest, settings: Settings, environ: Mapping[str, str], catalog: Catalog
) -> bool:
    """Whether anybody at all speaks of CUDA, known before the machine is looked at.

    Looking for GPUs and toolkits is the longest of the looks.
    """
    flags = (request.cuda, request.cuda_toolkit, request.arch)
    variables = (*environ, *settings.variables, *(word.partition("=")[0] for word in request.set))
    presets = (name for row in catalog.preset for name in row.variables)
    return (
        any(flags)
        or any(settings.values.get(name) for name in ("cuda", "cuda_toolkit", "arch"))
        or "USE_CUDA" in {*variables, *presets}
    )
