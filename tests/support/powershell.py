"""Parse PowerShell scripts by tree-sitter's grammar, where there is no PowerShell to run them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter
import tree_sitter_powershell


def strings(script: str) -> list[str]:
    """Return the single-quoted strings of a script in their order, as PowerShell reads them.

    Raises:
        SyntaxError: it is no PowerShell; the text says where.
    """
    source = script.encode()
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language())).parse(source)
    found = []
    for node in _walk(tree.root_node):
        text = source[node.start_byte : node.end_byte].decode()
        if node.is_error or node.is_missing:
            raise SyntaxError(f"line {node.start_point[0] + 1}: {text[:200]!r}")
        if node.type == "verbatim_string_characters":
            found.append(re.sub(r"(['\u2018\u2019\u201a\u201b])\1", r"\1", text[1:-1]))
    return found


def _walk(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    yield node
    for child in node.children:
        yield from _walk(child)
