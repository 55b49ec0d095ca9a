"""Which host compilers an nvcc takes, read out of the header with which it refuses the others."""

from __future__ import annotations

import re
from typing import NamedTuple

# Seen in the headers of CUDA 11.7 to 13.5:
#     #if __GNUC__ > 15
#     #if defined(__clang__) && !defined(__ibmxl_vrm__) ...
#     #if (__clang_major__ >= 21) || (__clang_major__ < 3) || ...
#     #if _MSC_VER < 1920 || _MSC_VER >= 1950
_GCC = re.compile(r"^#\s*if\s+\(?\s*__GNUC__\s*(>=?)\s*(\d+)", re.MULTILINE)
# Only under this condition: special clangs (Horizon's, Grace's) have limits of their own.
_CLANG = re.compile(
    r"^#\s*if\s+defined\(__clang__\)[^\n]*\s+#\s*if\s+\(*\s*__clang_major__\s*(>=?)\s*(\d+)", re.MULTILINE
)
_MSC = re.compile(r"^#\s*if\s+\(?\s*_MSC_VER\s*<\s*(\d+)\s*\|\|\s*_MSC_VER\s*>=\s*(\d+)", re.MULTILINE)


class Limits(NamedTuple):
    """The newest gcc and clang majors taken, and _MSC_VER: the first, and the first no more."""

    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None


def limits_in(text: str) -> Limits:
    """The limits of a crt/host_config.h; None for those that it does not hold."""
    msc = _MSC.search(text)
    return Limits(
        gcc=_newest(_GCC.search(text)),
        clang=_newest(_CLANG.search(text)),
        msc=(int(msc[1]), int(msc[2])) if msc else None,
    )


def _newest(refused: re.Match[str] | None) -> int | None:
    """The newest version that passes a test such as `> 15` or `>= 21`."""
    if refused is None:
        return None
    return int(refused[2]) - (1 if refused[1] == ">=" else 0)
