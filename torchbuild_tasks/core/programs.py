"""What the programs of a build do, by their names: compilers, linkers, generators."""

from __future__ import annotations

import re
from typing import Final

# The program that does the work, not the driver that waits for it: gcc runs cc1plus, nvcc runs cicc.
# clang and cl.exe do it themselves. Kinds are those of the steps (ninja_log.kind_of).
_KINDS: Final = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"cc1plus|clang(\+\+)?(-\d+)?|cl|clang-cl", "C++"),
        (r"cc1", "C"),
        (r"cicc|ptxas|cudafe\+\+|fatbinary|nvlink", "CUDA"),
        (r"ld(\.\w+)?|ld64\.lld|lld|mold|link|lld-link|lto1|lto-wrapper|dlltool", "link"),
        (r"python[\d.]*|pip[\d.]*", "Python"),
    )
)


def program_kind(name: str) -> str:
    """The kind of work that a program of this name does; "" for one that says nothing, such as a shell."""
    name = name.lower().removesuffix(".exe")
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), "")
