"""The blocks of the documentation's pages, and which of them are run.

A block without a language, or with `sh`, holds commands. A test runs them in their order on a copy of the
built sample, unless a comment before the block says what it would need:

    <!-- needs: a GPU -->

Readers see none of these comments. The others are `first:` (commands that are run before the block, for what
its page takes for granted), `ends: 3` (the exit code of one command) and `slow` (run with `--slow` only).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

COMMANDS: Final = ("", "sh", "bat")
OTHERS: Final = ("text", "toml", "python", "cmake", "{toctree}")
# What a machine that runs the tests need not have.
NEEDS: Final = (
    *("a CUDA toolkit", "a GPU", "a Jetson", "Windows", "root", "another machine", "several Pythons"),
    *("the package index", "github.com", "a server", "a container engine", "real PyTorch", "an extension"),
    *("a second terminal", "a terminal", "gdb", "conda", "hours", "a bare machine: .ci/run"),
)
_FOUND: Final = re.compile(
    r"<!-- (?P<mark>needs|first|ends|slow)(?:: (?P<said>.*?))? -->"
    r"|^ *```(?P<language>\S*)\n(?P<fenced>.*?)^ *```$"
    r"|(?<=\n\n)(?P<plain>(?:(?: {4}[^\n]*)?\n)+)",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of a page, with the conditions in the comments before it."""

    line: int
    language: str
    text: str
    marks: Mapping[str, str]

    @property
    def is_run(self) -> bool:
        """Say whether a test runs it."""
        return self.language in COMMANDS and "needs" not in self.marks


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced and the indented blocks of a page in their order."""
    text = page.read_text("utf-8")
    marks: dict[str, str] = {}
    for each in _FOUND.finditer(text):
        if each["mark"]:
            marks[each["mark"]] = each["said"] or ""
            continue
        body = each["fenced"] if each["plain"] is None else each["plain"]
        if body.strip():
            line = text.count("\n", 0, each.start()) + 1
            yield Block(line, each["language"] or "", textwrap.dedent(body).strip("\n"), marks)
            marks = {}


def script(page: Path, *, slow: bool) -> str:
    """Return the blocks of a page that are run as one script of bash; it ends at the first that fails."""
    lines = ["set -Eeo pipefail", "trap 'echo \"failed: $BASH_COMMAND\" >&2' ERR", "cd ~/pytorch"]
    for block in blocks(page):
        if not block.is_run or ("slow" in block.marks and not slow):
            continue
        ends = block.marks.get("ends")
        lines += [block.marks.get("first", ""), f"echo '== line {block.line}' >&2"]
        lines += [block.text] if ends is None else [f"code=0; {block.text} || code=$?; [ $code = {ends} ]"]
    return "\n".join(lines) + "\n"
