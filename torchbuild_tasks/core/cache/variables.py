"""The settings of a cache as build variables, each with its reason, and those that decide a hit.

What has to be so, and why:

* A checkout's own path is not to count (CCACHE_BASEDIR, SCCACHE_BASEDIRS), so that a second checkout
  and a worktree find what the first has made.
* sccache's direct mode is off then. With both, 0.16 hands out dependency files with the paths of the
  checkout that filled the cache, so that Ninja overlooks an edited header (seen; mozilla/sccache#2863
  is its sibling). A hit costs 0.03 of compiling instead of 0.005.
* ccache leaves the working directory out too (CCACHE_NOHASHDIR), for with -g it would count.
* A precompiled header differs in every build, so nothing that uses one is ever found.
* Python's hash seed decides the order of what PyTorch's code generation writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog.match import variable_row
from torchbuild_tasks.model import Choice
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide, is_off

LAUNCHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "c++": ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"),
    "cuda": ("CMAKE_CUDA_COMPILER_LAUNCHER",),
}
PREFIXES: Final = ("CCACHE_", "SCCACHE_")
FOLDERS: Final[Mapping[str, str]] = {"ccache": "CCACHE_DIR", "sccache": "SCCACHE_DIR"}
CHECKOUT: Final = "the checkout"

# Variables that go into what a cache compares, by tool; a change of one makes everything be compiled once.
HASHED: Final[Mapping[str, tuple[str, ...]]] = {
    "ccache": ("CCACHE_BASEDIR", "CCACHE_NOHASHDIR", "PYTHONHASHSEED"),
    "sccache": ("SCCACHE_BASEDIRS", "SCCACHE_DIRECT", "PYTHONHASHSEED"),
}


def setting_choices(question: Question, tools: tuple[str, ...]) -> tuple[Choice, ...]:
    """What the chosen caches need set; a variable that another layer decides is not among it."""
    root, values = question.facts.tree.root, dict[str, tuple[str, str]]()
    if "ccache" in tools:
        values |= {
            "CCACHE_BASEDIR": (root, "another checkout finds what this one has compiled"),
            "CCACHE_NOHASHDIR": ("true", "the same with debug information"),
        }
    if "sccache" in tools:
        values |= {
            "SCCACHE_BASEDIRS": (root, "another checkout finds what this one has compiled"),
            "SCCACHE_DIRECT": ("false", "with it, dependency files would name another checkout's headers"),
            "SCCACHE_IGNORE_SERVER_IO_ERROR": ("1", "a compile goes on when the cache's server is lost"),
        }
    if tools:
        values["PYTHONHASHSEED"] = ("0", "code generation repeats itself, so its files are found again")
        values |= _of_pytorch(question, tools)
    folder = question.value("cache_dir", "")
    if folder:
        separator = question.separator
        for tool in tools:
            values[FOLDERS[tool]] = (f"{folder.rstrip(separator)}{separator}{tool}", "--cache-dir")
    return tuple(
        Choice(name=name, value=value, because=because)
        for name, (value, because) in values.items()
        if decide(question, name) is None
    )


def _of_pytorch(question: Question, tools: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """PyTorch's own switches; the sample has none."""
    if question.facts.tree.sample:
        return {}
    values = {}
    if variable_row(question.catalog, "USE_PRECOMPILED_HEADERS", question.era, question.version):
        values["USE_PRECOMPILED_HEADERS"] = ("0", "what uses a precompiled header is never found in a cache")
    if question.facts.host.os != "windows" and tools != ("ccache",):
        values["USE_CCACHE"] = ("0", "older trees put ccache in front by themselves where they find one")
    return values


def hashed_settings(
    tool: str, values: Mapping[str, str], compiler: str, version: str, root: str
) -> dict[str, str]:
    """The settings of a cache that decide a hit, without what only differs between checkouts.

    Args:
        tool: ccache or sccache.
        values: the build variables as decided.
        compiler: path and version of the C++ compiler.
        version: the cache's own; a new one may compare otherwise.
        root: the checkout.
    """
    settings = {name: values.get(name, "") for name in HASHED[tool]}
    shown = {name: CHECKOUT if value == root else value for name, value in settings.items()}
    return {**shown, "compiler": compiler, "version": version}


def is_precompiled(question: Question) -> bool:
    """Whether the user wants precompiled headers, which no cache can keep."""
    asked = decide(question, "USE_PRECOMPILED_HEADERS")
    return bool(asked and asked.value and not is_off(asked.value))
