"""The folders that --with names, looked at."""

from __future__ import annotations

from torchbuild_tasks.catalog import Catalog
from torchbuild_tasks.core.companions import read_with
from torchbuild_tasks.facts.companions import look_at_companions
from torchbuild_tasks.model import Facts
from torchbuild_tasks.values import replace


def with_companions(facts: Facts, words: tuple[str, ...], catalog: Catalog) -> Facts:
    """The facts with what lies in the folders that the words of --with name.

    Raises:
        UsageError: a word cannot be understood.
    """
    folders = [(each.row.name, each.path) for each in read_with(words, catalog) if each.path]
    return replace(facts, companions=look_at_companions(folders))
