"""Say what is known of an option that a compiler refuses: since when it is known, and for whom it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.features.diagnosis.kinds import Kind

NO_OPTION: Final[Mapping[str, str]] = dict.fromkeys(
    ("known since", "earlier", "asked", "language standard", "host option", "modifier since"), ""
)
_FAMILIES: Final = (
    ("nvcc", "nvcc", re.compile(r"nvcc$")),
    ("clang", "clang", re.compile(r"(?:.*-)?clang(?:\+\+|-cl)?$")),
    ("gcc", "g++", re.compile(r"(?:.*-)?(?:g\+\+|gcc|c\+\+|cc|cc1plus|cc1)$")),
    ("cl", "MSVC", re.compile(r"cl(?:\.exe)?$")),
)
# Clang's parts speak without their name, in words that GCC has not.
_CLANGS: Final = re.compile(r"invalid value '.*' in '-|unknown target CPU|unknown argument: '")
# What is for the host's compiler: nvcc has none that begins so.
_OF_HOST: Final = re.compile(
    r"-{0,2}((?:W[a-z]|f(?:no-|PIC\b|pic\b|openmp|visibility|permissive|sanitize|stack|exceptions|abi|lto|diagnostics)"
    r"|m(?:arch|tune|cpu|avx|sse|fma|f16c|amx|no-)|pthread)[\w+=,.-]{0,60})$"
)


def read_option(kind: Kind, catalog: Catalog) -> Mapping[str, str]:
    """Return since when an option is known, what it was called before, and whether it is the host's."""
    if kind.row.id not in ("unknown-option", "bad-value"):
        return NO_OPTION
    family, name = _family(kind)
    asked = _asked(kind)
    plain = asked.replace("=gnu++", "=c++")
    rows = (row for row in catalog.compiler_option if family in row.programs and plain in row.options)
    row = next(rows, None)
    host = _OF_HOST.match(asked) if family == "nvcc" else None
    return {
        "known since": f"{name} {row.since}" if row else "",
        "modifier since": "" if row else _modifier_since(asked, family, name, catalog),
        "earlier": row.earlier if row else "",
        "asked": asked,
        "language standard": asked if re.match(r"[-/]std[=:]", asked) else "",
        "host option": f"-{host[1]}" if host else "",
    }


def _modifier_since(asked: str, family: str, name: str, catalog: Catalog) -> str:
    """Return the first release that knows each part of -march=armv8.2-a+fp16+bf16 that has a row."""
    parts = re.findall(r"\+\w+", asked) if asked.startswith(("-march=", "-mcpu=")) else []
    known = (row for row in catalog.compiler_option if family in row.programs)
    rows = [row for row in known if {*parts} & {*row.options}]
    return f"{name} {max((row.since for row in rows), key=int)}" if rows else ""


def _family(kind: Kind) -> tuple[str, str]:
    if _CLANGS.search(kind.line.text):
        return "clang", "clang"
    return next(((family, name) for family, name, form in _FAMILIES if form.match(kind.program)), ("", ""))


def _asked(kind: Kind) -> str:
    """Return the whole option, where value and name are told apart."""
    option = kind.groups.get("subject", "")
    value = kind.groups.get("value", "")
    if "unknown target CPU" in kind.line.text:
        option = "-march="
    return f"{option}{value}" if value and option.endswith(("=", ":")) else option
