"""A command in a text for a person can be pasted: no words of a sentence follow it as if it had them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.everywhere import PACKAGE

ROOMS = ("plan", "features/doctor", "features/wheel_overlay")
VERBS = (
    "brings?|changes?|does|fetch(?:es)?|gets?|has|installs|lists?|makes?|puts?|removes?|says?|shows?|tells?"
)
# A program and its words up to a mark that ends a clause, with the verb of a sentence among them.
FOLLOWED = re.compile(rf"\b(?:torchbuild|sudo) [a-z][^;.:,`()]*? (?:{VERBS}) \w(?!\S*[=/])")
COMMANDS_WITH_THEM = ("torchbuild source get ",)


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every text, with X for what is filled in; docstrings are for other readers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(each.value) if isinstance(each, ast.Constant) else "X" for each in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
            yield node.lineno, node.value


def goes_on(text: str) -> bool:
    for command in COMMANDS_WITH_THEM:
        text = text.replace(command, "torchbuild source X ")
    return FOLLOWED.search(text) is not None


def test_what_goes_on_is_seen() -> None:
    assert goes_on("torchbuild source update --source X gets each at the commit that it has")
    assert goes_on("torchbuild source get X --source X gets a checkout; then build that one")
    assert not goes_on("get a checkout: torchbuild source get X --source X; then build that one")
    assert not goes_on("Do without it, or make one: torchbuild helpers build magma")


def test_no_sentence_goes_on_behind_a_command() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if goes_on(text)
    ]
    assert not found, "\n".join(found)
