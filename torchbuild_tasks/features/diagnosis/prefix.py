"""Learn what a logger, a service or a shell wrote before every line of a log, from its first lines.

Prefixes that are known by their look `decode` takes off line by line. Any other is found here that is the
same in all lines but for numbers and levels.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from torchbuild_tasks.features.diagnosis.decode import without_colours
from torchbuild_tasks.features.diagnosis.kinds import PROGRAM

_SAMPLE: Final = 64 * 1024  # bytes of a log's start
_LINES: Final = 200
_LEAST: Final = 3  # lines: two may be alike by chance
_SHARE: Final = 0.95
_FEW: Final = 8  # lines, of which the last may be the launcher's own, which had labelled the others
_LONGEST: Final = 160
_LEVEL: Final = (
    r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
    r"|trace|debug|info|warn(?:ing)?|error|critical)"
)
_TIME: Final = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d| [AP]M)?"
# Where a prefix may end: behind a time, a colon, a bracket, a bar, an arrow or a dash, and a blank.
_END: Final = re.compile(rf"(?:{_TIME}|:|\]|\)|\||│|>| -| \*|^ *\+?\d+(?:\.\d+)?|\w(?=\t))(?: |\t|$)")
_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(rf"\b{_LEVEL}\b *")
# The name of a program that reports something, a level alone, and text with a meaning are no prefixes.
_REPORTS: Final = re.compile(
    rf"(?:{PROGRAM.pattern}(?: (?:fatal )?(?:error|warning) ?:)?"
    rf"|(?!(?i:info|debug|trace)\b){_LEVEL}\s?:|>+)\s*$"
)
# The same behind a time or a bracket.
_THEN_REPORTS: Final = re.compile(rf"(?:\]|\d|Z|\||>) {PROGRAM.pattern}\s*$")
_ALONE: Final = re.compile(rf"{_LEVEL}\s?:\s*$")
# The progress of a build is no part of a prefix: it shows that the build goes on.
_PROGRESS: Final = re.compile(r"\[ *\d+(?:/\d+|%)\]")
_FENCE: Final = re.compile(r"```\w*$")  # of the page where a log was posted
_TIMED: Final = re.compile(_TIME)
_HAS_MEANING: Final = re.compile(
    r"(?:^|[\s\"'(])[.~]{0,2}/\w|[A-Za-z]:[\\/]"
    r"|\.(?:c|cc|cpp|cu|cuh|h|hpp|o|obj|py|so|lib|a|txt|cmake|proto|f90|rs)\b"
    r"|\bld\b|^make|^--|^CMake|^E +|^\s*File|^\[ *\d+(?:/\d+|%)\]"
)
_FAILS: Final = re.compile(r"[Ee]rror|[Ff]ail|fatal|FAILED|[Ww]arning|Traceback|undefined|FAIL|LNK")


def common_prefix(start: bytes) -> re.Pattern[str] | None:
    """Return a pattern for what stands before (nearly) every line of a log; None where nothing does."""
    text = start[:_SAMPLE].replace(b"\0", b"").decode(errors="replace").splitlines()
    lines = [without_colours(line) for line in text[:_LINES] if line.strip() and not _FENCE.match(line)]
    if len(lines) < _LEAST:
        return None
    common = _common(lines) or (_common(lines[:-1]) if _FEW <= len(lines) < _LINES else [])
    return re.compile(rf"^(?:{max(common, key=len)})") if common else None


def _common(lines: Sequence[str]) -> Sequence[str]:
    """Return the patterns that nearly all lines begin with."""
    shapes = Counter(shape for line in lines for shape in _shapes(line))
    return [shape for shape, times in shapes.items() if times >= _SHARE * len(lines)]


def _shapes(line: str) -> Sequence[str]:
    """Return the pattern of each beginning of a line that may be a prefix, once."""
    heads = (line[: match.end()] for match in _END.finditer(line[:_LONGEST]))
    return tuple(dict.fromkeys(_shape(head) for head in heads if _has_no_meaning(head)))


def _has_no_meaning(head: str) -> bool:
    """Return whether this can stand before any line, and has no meaning of its own."""
    if _FAILS.search(_WORD.sub("", head)) or head.startswith("{") or _REPORTS.match(head):
        return False
    if _THEN_REPORTS.search(head):
        return False
    if _PROGRESS.search(head):
        return False
    return _TIMED.search(head) is not None or _HAS_MEANING.search(head) is None


def _shape(head: str) -> str:
    """Return the pattern of a prefix: numbers and levels may differ, but not one that stands alone."""
    if _ALONE.match(head):
        return rf"{re.escape(head.rstrip())}(?: |\t|$)"
    parts = re.split(rf"(\b{_LEVEL}\b *|\d+)", head.rstrip())
    if _NUMBER.match(head.lstrip()):
        parts[0] = parts[0].lstrip(" ")
    text = "".join(_part(part, index) for index, part in enumerate(parts))
    blanks = " *" if _NUMBER.match(head.lstrip()) else ""
    return rf"{blanks}{text}(?: |\t|$)"


def _part(part: str, index: int) -> str:
    if index % 2 == 0:
        return re.escape(part)
    return r"\d+" if _NUMBER.fullmatch(part) else rf"{_LEVEL} *"
