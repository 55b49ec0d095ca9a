"""The rows about linkers and how a package is installed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LinkerRow:
    """A linker, and how a compiler is asked to call it.

    `tool` is its name among the facts' tools, `command` its program's name where a compiler can find it
    by `-fuse-ld=name`, which the versions of `gcc` and `clang` can be told (PEP 440). `library` and
    `debug` are its wall time to that of GNU ld (0 where nobody measured it): linking libtorch_cpu.so, and
    300 objects with debug information. `mark` is what it leaves in what it links, `asked` why it
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


@dataclass(frozen=True, kw_only=True)
class InstallerRow:
    """How a package is installed where the distribution's name begins so; `{package}` is its name."""

    distribution: str
    command: str
