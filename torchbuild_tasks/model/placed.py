"""What lies where an editable install reads from, and what it was made from, as file times and names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Size in bytes and time of modification in ns.
Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Folder:
    """One folder of sources: when entries came or went (ns), its files that count, its folders."""

    changed: int
    names: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One look at it. Paths are absolute, or relative to the checkout with `/`.

    `installed` is what CMake put in place and `sources` what its install rules copy from;
    `made` is what the Python front end left, `carried` (path to digest of the content) what it
    copies on; `folders` are those whose files CMake lists.
    """

    installed: Mapping[str, Stamp] = field(default_factory=dict)
    sources: Mapping[str, Stamp] = field(default_factory=dict)
    made: Mapping[str, Stamp] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Folder] = field(default_factory=dict)
