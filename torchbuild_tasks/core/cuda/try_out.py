"""The pre-flight of a plan: what is tried before hours are spent on it."""

from __future__ import annotations

import re
import shlex

from packaging.version import Version

from torchbuild_tasks.core.compiler import MSVC_LIKE
from torchbuild_tasks.core.cuda.parts import nvcc_of
from torchbuild_tasks.core.cuda.preflight import plan_preflight
from torchbuild_tasks.core.decisions import Decisions
from torchbuild_tasks.core.helpers import helper_check
from torchbuild_tasks.model import Freshness, Preflight

# The first nvcc with -forward-unknown-to-host-compiler, which CMake passes to it.
FORWARDS = Version("10.2")


def preflight(decisions: Decisions, freshness: Freshness) -> Preflight | None:
    """Two small files with exactly the planned compilers and flags.

    None without CUDA, with --no-preflight, and where the last build with these inputs went well.
    """
    question, compilers, variables = decisions.question, decisions.compilers, decisions.variables
    if decisions.toolkit.choice is None or compilers.cxx is None or decisions.archs.choice is None:
        return None
    if question.given("no_preflight") or freshness.needs == "nothing":
        return None
    tool = compilers.tool
    nvcc = variables.get("CUDA_NVCC_EXECUTABLE") or variables.get("CUDACXX")
    cxx, options = (
        (tool.path, ()) if tool and tool.path == compilers.cxx.value else _compiler(compilers.cxx.value)
    )
    return plan_preflight(
        cxx=cxx,
        cxx_flags=(*options, *_words(variables.get("CXXFLAGS") or variables.get("CFLAGS", ""))),
        nvcc=nvcc or nvcc_of(question, decisions.toolkit),
        host=variables.get("CUDAHOSTCXX", ""),
        nvcc_flags=_words(variables.get("TORCH_NVCC_FLAGS", "")),
        archs=tuple(map(str, decisions.archs.archs)),
        launcher=variables.get("CMAKE_CXX_COMPILER_LAUNCHER", ""),
        cuda_launcher=variables.get("CMAKE_CUDA_COMPILER_LAUNCHER", ""),
        cuobjdump=_cuobjdump(decisions),
        cxx_standard=question.row.cxx,
        msvc=bool(tool and tool.name in MSVC_LIKE),
        forwards=decisions.toolkit.version is None or decisions.toolkit.version >= FORWARDS,
    )


def _cuobjdump(decisions: Decisions) -> str:
    """The toolkit's own, else the helper, else that of another toolkit; it reads cubins of any version."""
    chosen = decisions.toolkit.toolkit
    helper = next((h for h in decisions.helpers.chosen if h.row.name == "cuobjdump"), None)
    if chosen and chosen.cuobjdump:
        return chosen.cuobjdump
    if helper is not None:
        return helper_check(decisions.question, helper)[0]
    return next((t.cuobjdump for t in decisions.question.cuda.toolkits if t.cuobjdump), "")


def _compiler(value: str) -> tuple[str, tuple[str, ...]]:
    """What CXX says: the compiler, and options behind it. A launcher before it is planned apart."""
    words = _words(value)
    if len(words) > 1 and re.fullmatch(r"(.*/)?s?ccache", words[0]):
        words = words[1:]
    return (words[0], words[1:]) if words else (value, ())


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # an open quote; the build itself will say so
        return tuple(text.split())
