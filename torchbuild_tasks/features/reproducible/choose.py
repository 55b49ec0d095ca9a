"""Decide the settings of a reproducible build: equal bytes on other machines and at other times."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final

from torchbuild_tasks.model import BuildPlan, Choice, Finding, Python
from torchbuild_tasks.model.plan import Status
from torchbuild_tasks.plan.question import Question
from torchbuild_tasks.plan.variables import decide
from torchbuild_tasks.values import replace

INCLUDE: Final = "CMAKE_PROJECT_Torch_INCLUDE"
MAPS: Final = "TORCHBUILD_PREFIX_MAPS"
FILE: Final = "reproducible.cmake"  # in .torchbuild of the checkout
# The first time that a zip can hold; used without the time of a commit.
FIRST: Final = 315_532_800  # seconds: 1980-01-01
_ERROR: Final[Status] = "error"
_WARN: Final[Status] = "warn"
_SHARED: Final = ("/usr/",)  # the same on every machine of a distribution: left as it is


def is_requested(question: Question) -> bool:
    """Say whether a reproducible build is requested."""
    return question.given("reproducible") is not None


def is_reproducible(plan: BuildPlan) -> bool:
    """Say whether a plan is reproducible."""
    return plan.inputs.get(f"variable {INCLUDE}", "").endswith(FILE)


def repeat_choices(
    question: Question, python: Python | None, toolkit: str | None, cc: Choice | None
) -> tuple[Choice, ...]:
    """Return the variables of a reproducible build; `python` and `toolkit` are in folders of this machine."""
    if not is_requested(question):
        return ()
    epoch, because = _epoch(question)
    cmake = question.join(".torchbuild", FILE)
    maps = path_maps(question, python, toolkit)
    chosen = [
        Choice(name="SOURCE_DATE_EPOCH", value=str(epoch), because=because),
        Choice(name="PYTHONHASHSEED", value="0", because="generated code comes in the same order each time"),
        Choice(name=INCLUDE, value=cmake, because="paths of this machine stay out of what is compiled"),
        Choice(name=MAPS, value=";".join(maps), because="these paths, and what replaces them"),
        Choice(
            name="CMAKE_BUILD_RPATH_USE_ORIGIN",
            value="ON",
            because="the length of the build tree's path would otherwise stay in every library",
        ),
    ]
    if question.era == "setuptools":
        # For the stub torch._C, which setuptools compiles without CMake. Not CFLAGS: CMake takes those, and
        # upstream's setup for C++ as well, so torch.__config__ would show them (setup_helpers/env.py).
        before = decide(question, "CPPFLAGS")
        words = shlex.join(
            f"-ffile-prefix-map={each}" for each in maps
        )  # setuptools reads it as a shell does
        flags_text = f"{before.value} {words}" if before and before.value else words
        flags = before or Choice(name="CPPFLAGS", value="", because="torch._C is compiled without CMake")
        linker = f"{cc.value if cc else 'cc'} -shared"
        because = "Python's own would write the folder of its libraries into torch._C"
        chosen += [replace(flags, value=flags_text), Choice(name="LDSHARED", value=linker, because=because)]
    return tuple(chosen)


def forced_flags(choices: Iterable[Choice]) -> tuple[Choice, ...]:
    """Return the flags that must be appended to the user's value, so that they take precedence."""
    return tuple(choice for choice in choices if choice.name == "CPPFLAGS")


def _epoch(question: Question) -> tuple[int, str]:
    committed = question.facts.tree.committed
    if committed is None:
        return FIRST, "no commit says a time here, so it is 1980-01-01, the first that a zip holds"
    return committed, "when the commit was made"


def path_maps(question: Question, python: Python | None, toolkit: str | None) -> tuple[str, ...]:
    """Return OLD=NEW for every folder of this machine, the longest last: compilers use the last match."""
    store = question.facts.store
    include = (python.include if python else None) or ""
    named = {
        include.partition("/include")[0]: "/python",
        toolkit or "": "/cuda",
        store.folder if store else "": "/store",
        question.facts.tree.root: ".",
    }
    paths = (path for path in named if path.startswith("/") and not f"{path}/".startswith(_SHARED))
    return tuple(f"{path}={named[path]}" for path in sorted(paths, key=len))


def lead_from_here(name: str, text: bytes, root: str) -> bytes:
    """Return the text of a wheel's CMake file with relative paths instead of paths into the checkout.

    So `ATenConfig.cmake` of PyTorch names the folder of its headers (aten/src/ATen/CMakeLists.txt of 2.6.0).
    """
    here = "/".join(("${CMAKE_CURRENT_LIST_DIR}", *(".." for _ in name.split("/")[:-1])))
    return re.sub(re.escape(root.encode()) + rb'(?=[/";\s)]|$)', lambda _: here.encode(), text)


def check_repeat(question: Question, mode: str) -> tuple[Finding, ...]:
    """Return findings about whether the build can be reproducible, and on what that depends."""
    if not is_requested(question):
        return ()
    tree = question.facts.tree
    epoch = decide(question, "SOURCE_DATE_EPOCH")
    return tuple(
        Finding(id="reproducible", status=status, text=f"--reproducible: {text}", fix=fix)
        for applies, status, text, fix in (
            (
                mode != "wheel",
                _ERROR,
                "only a wheel can be reproducible, and this is an editable install",
                "Add --mode wheel.",
            ),
            (
                question.facts.host.os == "windows",
                _ERROR,
                "known for GCC and Clang on Linux; not tried with MSVC",
                "Build on Linux, or leave it out.",
            ),
            (
                decide(question, INCLUDE) is not None,
                _ERROR,
                f"{INCLUDE} is set, and the build needs it",
                f"Unset {INCLUDE}.",
            ),
            (
                epoch is not None and not re.fullmatch("[0-9]{1,10}", epoch.value),
                _ERROR,
                "SOURCE_DATE_EPOCH is no number of seconds since 1970",
                "Leave it out, or say the number that this prints: git log -1 --format=%ct",
            ),
            (
                bool(tree.dirty),
                _WARN,
                "tracked files differ from the commit, so who has the commit gets other bytes",
                "Commit them.",
            ),
            (
                tree.committed is None and epoch is None,
                _WARN,
                "no commit says what time to write into the wheel; it is 1980-01-01",
                "Build in a clone, or say the time: --set SOURCE_DATE_EPOCH=SECONDS",
            ),
        )
        if applies
    )
