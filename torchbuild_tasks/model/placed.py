"""What lies where an editable install reads from, and what it was made from, as file times and names."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

# Size in bytes and time of modification in ns.
Stamp = tuple[int, int]


class Folder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One folder of sources: when entries came or went (ns), its files that count, its folders."""

    changed: int
    names: tuple[str, ...]
    folders: tuple[str, ...]


class Placed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One look at it. Paths are absolute, or relative to the checkout with `/`.

    `installed` is what CMake put in place and `sources` what its install rules copy from;
    `made` is what the Python front end left, `carried` (path to digest of the content) what it
    copies on; `folders` are those whose files CMake lists.
    """

    installed: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    sources: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    made: Mapping[str, Stamp] = msgspec.field(default_factory=dict)
    carried: Mapping[str, str] = msgspec.field(default_factory=dict)
    folders: Mapping[str, Folder] = msgspec.field(default_factory=dict)
