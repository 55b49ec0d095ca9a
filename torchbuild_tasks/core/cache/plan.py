"""The cache's part of a plan: what the stages need to run it beside the build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.core.cache.choose import ChosenCache
from torchbuild_tasks.core.cache.variables import FOLDERS, hashed_settings
from torchbuild_tasks.errors import UsageError
from torchbuild_tasks.model import CachePlan, CacheTool, Distribution
from torchbuild_tasks.plan.question import Question

# A whole PyTorch is 0.7 GB in sccache (1.13.1, CPU); debug information and CUDA are some times that.
SIZE: Final = 20 * GIB
MEMORY: Final = "cache-settings.json"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": GIB, "T": 1 << 40}


def plan_cache(
    question: Question,
    chosen: ChosenCache,
    variables: Mapping[str, str],
    compiler: str,
    distribution: Distribution | None = None,
) -> CachePlan | None:
    """What runs beside the build; None without a cache.

    Args:
        question: its `cache_size` is the least size of a cache ("20G").
        chosen: the decision.
        variables: all build variables as decided.
        compiler: path and version of the C++ compiler.
        distribution: where sccache sends compiles.

    Raises:
        UsageError: the size cannot be read.
    """
    if not chosen.tools:
        return None
    root, store = question.facts.tree.root, question.facts.store
    return CachePlan(
        tools=tuple(
            CacheTool(
                name=tool.name,
                program=tool.program,
                version=tool.version,
                folder=variables.get(FOLDERS[tool.name], ""),
                settings=hashed_settings(tool.name, variables, compiler, tool.version, root),
            )
            for tool in chosen.tools
        ),
        remotes=chosen.remotes,
        read_only=chosen.read_only,
        size=read_size(question.value("cache_size", "")) or SIZE,
        distribution=distribution,
        memory=f"{store.folder.rstrip(question.separator)}{question.separator}{MEMORY}" if store else "",
    )


def read_size(text: str) -> int:
    """Bytes of "20G", "500M", "1T" or a plain number; 0 of nothing.

    Raises:
        UsageError: it is no size.
    """
    number, unit = text.upper().removesuffix("IB").removesuffix("B"), ""
    if number[-1:] in _UNITS and number:
        number, unit = number[:-1], number[-1]
    if not text:
        return 0
    if not number.isdecimal() or not int(number):
        raise UsageError(f"--cache-size cannot be {text!r}", next_step="Write for example: --cache-size 20G")
    return int(number) * _UNITS[unit]
