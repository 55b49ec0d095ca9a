"""Reads the links of an HTML page; apart, because its parser is needed for few indexes only."""

from __future__ import annotations

from html.parser import HTMLParser


class Anchors(HTMLParser):
    """Collects the attributes of every <a>, and the address in <base>."""

    def __init__(self) -> None:
        """Nothing is read yet; `feed` reads."""
        super().__init__()
        self.anchors: list[dict[str, str | None]] = []
        self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        attributes = dict(attrs)
        if tag == "a" and attributes.get("href"):
            self.anchors.append(attributes)
        elif tag == "base":
            self.base = attributes.get("href") or ""
