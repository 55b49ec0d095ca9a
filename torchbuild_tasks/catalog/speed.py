"""The rows of what makes builds fast and keeps them alive: memory, jobserver, caches, linkers."""

from __future__ import annotations

import msgspec


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bytes that one compile job may need at its peak, in GiB."""

    kind: str
    gib: float
    source: str


class JobserverRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which `program` (`version`: PEP 440) of a build takes its jobs from a jobserver, or why `off`."""

    source: str
    era: str = ""
    torch: str = ""
    generator: str = ""
    os: str = ""
    program: str = ""
    version: str = ""
    off: str = ""


class CacheRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a compiler cache does for one language (c++, which C is too, or cuda) on one system.

    `cold` and `warm` are the CPU time of a build that fills it and of one that finds everything, to
    the same build without (0 where nobody measured it). `bad` are versions that are not used at all,
    `remote` those that can share their results by a server (PEP 440, "" for none). `because` says
    what is wrong with the bad ones.
    """

    tool: str
    os: str
    language: str
    source: str
    cold: float = 0.0
    warm: float = 0.0
    bad: str = ""
    because: str = ""
    remote: str = ""


class LinkerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A linker, and how a compiler is asked to call it.

    `tool` is its name among the facts' tools, `command` its program's name where a compiler can find it
    by `-fuse-ld=name`, which the versions of `gcc` and `clang` can be told (PEP 440). `library` and
    `debug` are its wall time to that of GNU ld (0 where nobody measured it): linking libtorch_cpu.so, and
    100 objects with debug information. `mark` is what it leaves in what it links, `asked` why it
    is taken only where it is asked for; `refused`, which no file says, why it does not link here.
    """

    name: str
    os: str
    tool: str
    source: str
    command: str = ""
    gcc: str = ""
    clang: str = ""
    library: float = 0.0
    debug: float = 0.0
    mark: str = ""
    asked: str = ""
    refused: str = ""
    package: str = ""


class InstallerRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a package is installed where the distribution's name begins so; `{package}` is its name."""

    distribution: str
    command: str
