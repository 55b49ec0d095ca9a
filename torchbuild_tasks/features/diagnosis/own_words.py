"""Leave out of a fix what the log's system or package manager does not know.

A fix names the ways of several systems where it cannot know which one reads it. A log that shows its system
has no use for those of the others: what only they know goes, with the part of the sentence that says it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from torchbuild_tasks.catalog.diagnosis import OwnWordRow
from torchbuild_tasks.features.diagnosis.machine import Machine

_SYSTEMS: Final = frozenset({"linux", "windows", "mac"})
# Package managers that a system has beside or instead of its own: with these nothing speaks against another.
_BESIDE: Final = ("", "conda", "conda-build", "rpmbuild", "spack", "easybuild", "bitbake")
_OF_SYSTEM: Final = {"windows": "winget", "mac": "brew"}
_ASIDE: Final = re.compile(r" \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
_WAY: Final = re.compile(r"([;,]) (?!(?:and|as|else|for|if|of|so|that|too|where|which|with)\b)")
_FIRST: Final = re.compile(r"^(?:or|else) ")
_BEHIND: Final = re.compile(r"^(?:[Oo]r|[Ee]lse|[Tt]hen|[Ii]f not,) ")


def list_surroundings(machine: Machine) -> Collection[str]:
    """Return the system and the package manager that the log shows; nothing of what it does not."""
    shown = machine.audience.system
    named = machine.manager if machine.audience.manager else _OF_SYSTEM.get(shown, "")
    manager = "" if named in _BESIDE else named.replace("yum", "dnf")
    system = shown or ("linux" if manager and manager not in _OF_SYSTEM.values() else "")
    return {each for each in (system, manager) if each}


def leave_out(text: str, around: Collection[str], rows: Sequence[OwnWordRow]) -> str:
    """Return a fix without the parts that only other systems know; the whole, where no other is left.

    Args:
        text: of a fix.
        around: the system and the package manager that are known.
        rows: of data/system_words.toml.
    """
    words = [_compiled(row.words) for row in rows if is_foreign(row, around)]

    def has_foreign(part: str) -> bool:
        return any(pattern.search(part) for pattern in words)

    kept = _ASIDE.sub(lambda aside: _keep_ways(aside[1], has_foreign), text)
    return " ".join(_keep_parts(kept, has_foreign)) or text


def is_foreign(row: OwnWordRow, around: Collection[str]) -> bool:
    """Say whether words are of another system or package manager than the one that is known."""
    known = [each for each in around if (each in _SYSTEMS) == bool(_SYSTEMS & {*row.of})]
    return bool(known) and not any(each in row.of for each in known)


def _keep_ways(aside: str, has_foreign: Callable[[str], bool]) -> str:
    """Return what stands in brackets without the ways of other systems, "" for none."""
    ways = _WAY.split(aside)  # each second one is what stands between two
    kept = [way for way in range(0, len(ways), 2) if not has_foreign(ways[way])]
    between = (f"{ways[way - 1]} " if way != kept[0] else "" for way in kept)
    text = "".join(f"{sign}{ways[way]}" for way, sign in zip(kept, between, strict=True))
    return f" ({_FIRST.sub('', text) if kept[0] else text})" if kept else ""


def _keep_parts(text: str, has_foreign: Callable[[str], bool]) -> Iterator[str]:
    """Yield the sentences without their foreign parts, each with its beginning and its end."""
    follows = True
    for sentence in _split(text, "."):
        parts = _split(sentence, ";")
        kept = [part for part in parts if not has_foreign(part)]
        if follows and len(kept) == len(parts):
            yield sentence
        elif kept:
            first = kept[0] if follows and kept[0] is parts[0] else _begin(kept[0])
            end = "." if sentence.endswith(".") else ""
            yield " ".join((first, *kept[1:])).rstrip(".;") + end
        follows = bool(kept)


def _begin(part: str) -> str:
    """Return what came behind another part as the first that is said."""
    part = _BEHIND.sub("", part)
    return f"{part[:1].upper()}{part[1:]}" if re.match(r"[a-z]+ [a-z]", part) else part


def _split(text: str, sign: str) -> list[str]:
    """Return the parts of a text that end with this sign, where it stands in no brackets."""
    parts = [""]
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == " " and depth <= 0 and index and text[index - 1] == sign:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
