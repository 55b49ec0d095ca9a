"""The site of the documentation: `nox -s docs` writes it to build/site/."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/torchbuild/torchbuild-tasks/blob/main"  # [project.urls] of pyproject.toml
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")

project = "torchbuild_tasks"
copyright = "the torchbuild_tasks developers"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "torchbuild_tasks"
html_theme_options = {"source_repository": REPOSITORY.partition("/blob/")[0], "source_branch": "main"}
myst_heading_anchors = 3
# The anchors of failures.md are HTML, which MyST does not look into; tests/test_docs.py checks every one.
suppress_warnings = ["myst.xref_missing"]
exclude_patterns = ["Thumbs.db"]


def lead_outside(app: Any, name: str, source: list[str]) -> None:
    """Let links to files of the repository that are no pages of the site lead to the repository."""

    def target(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), found[2]))
        is_page = path.startswith("docs/") and (path.endswith(".md") or "/img/" in path)
        return found[0] if is_page else f"{found[1]}{REPOSITORY}/{path}{found[3]}"

    source[0] = LINK.sub(target, source[0])


def setup(app: Any) -> None:
    """Called by Sphinx: https://www.sphinx-doc.org/en/master/extdev/event_callbacks.html"""
    app.connect("source-read", lead_outside)
