"""What a checkout asks its builders to install: its group `dev` (from 2.9), else requirements.txt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from torchbuild_tasks.facts.probe import Probe

GROUP: Final = "dev"
FILE: Final = "requirements.txt"

_INCLUDES: Final = re.compile(r"(?:-r|--requirement)[\s=]*(\S.*)")


def asked_for(probe: Probe, root: str, pyproject: Mapping[str, object]) -> tuple[str, ...]:
    """The requirements (PEP 508 texts) in their order, each once.

    Args:
        probe: reads requirements.txt and what it includes.
        root: the checkout.
        pyproject: its pyproject.toml.
    """
    groups = pyproject.get("dependency-groups")
    if isinstance(groups, dict) and GROUP in groups:
        return tuple(dict.fromkeys(_of_group(groups, GROUP, ())))
    return tuple(dict.fromkeys(_of_file(probe, root, FILE, ())))


def _of_group(groups: Mapping[str, object], name: str, above: tuple[str, ...]) -> list[str]:
    """PEP 735; a group that includes itself is not followed."""
    items = groups.get(name)
    found: list[str] = []
    for item in items if isinstance(items, list) and name not in above else ():
        if isinstance(item, str):
            found.append(item.strip())
        elif isinstance(item, dict) and isinstance(other := item.get("include-group"), str):
            found += _of_group(groups, other, (*above, name))
    return found


def _of_file(probe: Probe, root: str, name: str, above: tuple[str, ...]) -> list[str]:
    """pip's format; of its options only `-r FILE` says what to install."""
    found: list[str] = []
    text = "" if name in above else probe.read(probe.join(root, name)) or ""
    for line in text.splitlines():
        words = re.sub(r"(^|\s)#.*", "", line).strip()
        if included := _INCLUDES.fullmatch(words):
            found += _of_file(probe, root, included[1], (*above, name))
        elif words and not words.startswith("-"):
            found.append(words.partition(" --")[0].strip())
    return found
