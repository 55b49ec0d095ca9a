"""Parse unified diffs: the section of each file, and what prevents their application."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NOWHERE: Final = "/dev/null"
# Lines of git's extended header, and why such a change is not supported.
_REFUSED: Final = (
    ("rename ", "renames a file; make it with git diff --no-renames"),
    ("copy ", "copies a file; make it with git diff --no-renames"),
    ("GIT binary patch", "changes a binary file"),
    ("Binary files", "changes a binary file"),
    ("old mode ", "changes the mode of a file"),
    ("new file mode 1007", "makes a program, whose mode would be lost"),
    ("new file mode 12", "makes a symbolic link"),
    ("Subproject ", "moves a submodule; switch that itself"),
)


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a diff for one file; `path` is relative to the checkout, with `/`."""

    path: str
    text: str
    creates: bool = False


def sections(diff: str) -> tuple[Section, ...]:
    found = []
    lines = re.findall(r"[^\n]*\n|[^\n]+", diff)
    start = 0
    while start < len(lines) - 1:
        if not (lines[start].startswith("--- ") and lines[start + 1].startswith("+++ ")):
            start += 1
            continue
        end = start + 2
        while end < len(lines) and (hunk := _HUNK.match(lines[end])):
            end = _after(lines, end + 1, int(hunk[1] or 1), int(hunk[2] or 1))
        old, new = (_name(line) for line in lines[start : start + 2])
        path = old if new == _NOWHERE else new
        found.append(Section(path=path, text="".join(lines[start:end]), creates=old == _NOWHERE))
        start = end
    return tuple(found)


def _after(lines: list[str], at: int, old: int, new: int) -> int:
    """Return the end of a hunk, by the counts in its header: a line in it may look like a header."""
    while at < len(lines) and (old > 0 or new > 0):
        kind = lines[at][:1]
        old -= kind not in "+\\"
        new -= kind not in "-\\"
        at += 1
    while at < len(lines) and lines[at].startswith("\\"):  # "No newline at end of file"
        at += 1
    return at


def _name(line: str) -> str:
    """Return the name after `--- ` or `+++ `, without its time and first folder (a/, b/)."""
    name = line[4:].rstrip("\n").partition("\t")[0].rstrip()
    return name if name == _NOWHERE else name.partition("/")[2]


def problem(diff: str) -> str:
    """Return why a diff cannot be applied to any checkout; "" if it may be.

    An unsupported change refuses the whole diff, since a part of it would be a different patch.
    """
    parts = sections(diff)
    for line in _between(diff, parts):
        for start, reason in _REFUSED:
            if line.startswith(start):
                return reason
    if not parts:
        return "contains no change of a file (--- a/FILE, +++ b/FILE)"
    names = [part.path for part in parts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        return f"changes {twice} twice; give each commit a file of its own"
    return next((reason for part in parts if (reason := _path_problem(part))), "")


def _path_problem(part: Section) -> str:
    names = part.path.split("/")
    if part.text.startswith('--- "') or '+++ "' in part.text.split("\n")[1]:
        return "names a file in quotes; such names are not supported"
    if not part.path or "" in names:
        return "names its files without a/ and b/ before them"
    if {"..", "."}.intersection(names) or re.search(r"[:\\]", part.path):
        return f"leads out of the checkout: {part.path}"
    if names[0].lower() in (".git", ".torchbuild"):
        return f"changes {part.path}, which is not source"
    old, new = (_name(line) for line in part.text.split("\n")[:2])
    if _NOWHERE not in (old, new) and old != new:
        return f"renames {old} to {new}; make it with git diff --no-renames"
    return ""


def _between(diff: str, parts: tuple[Section, ...]) -> Iterator[str]:
    """Yield the lines of git's extended headers between the sections."""
    rest = diff
    for part in parts:
        before, _, rest = rest.partition(part.text)
        yield from _headers(before)
    yield from _headers(rest)


def _headers(text: str) -> Iterator[str]:
    """Yield the lines from `diff --git` on; before that may be the message of a commit."""
    _, separator, headers = text.partition("diff --git ")
    if separator:
        yield from headers.split("\n")
