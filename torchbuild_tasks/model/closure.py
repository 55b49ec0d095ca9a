"""Values about the libraries that `import torch` loads, and how a process's loader finds them.

Only `verify --closure` and a failed import make these, so `model` does not import them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

System = Literal["linux", "windows"]
Kind = Literal["missing", "damaged", "other machine", "version", "symbol", "twice", "shadowed", "old runtime"]
State = Literal["found", "missing", "damaged", "other machine", "api set", "on demand"]


class Image(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The header of a library.

    `real` is its path without links, `name` the SONAME. `versions` are those it defines, `wants`
    those it needs of each library. `delayed` is what Windows loads at the first call. `linker` and
    `release` are versions on Windows: of the linker that made it, and its own. `damage` says what is wrong
    with the file, `cut_off` that only what the loader does not read is lacking, so that it is not known what
    it needs; `passed_over` that the loader goes on searching all the same.
    """

    real: str
    machine: str = ""
    name: str = ""
    needed: tuple[str, ...] = ()
    delayed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()
    no_defaults: bool = False
    versions: frozenset[str] = frozenset()
    wants: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    linker: tuple[int, int] = (0, 0)
    release: tuple[int, int] = (0, 0)
    damage: str = ""
    cut_off: bool = False
    passed_over: bool = False


class Symbol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function or variable that one library imports from another.

    On Linux `library` and `version` are set only where it is versioned; on Windows `library` is the DLL.
    """

    name: str
    version: str = ""
    library: str = ""


class Loader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The loader of one process: the settings of its search for libraries.

    Args:
        machine: what the process runs: x86_64, aarch64 ...
        roots: what `import torch` loads, in order; the first `shared` of them for all to see.
        loaded: libraries that are in the process before that.
        preloaded: those of LD_PRELOAD.
        search_path: LD_LIBRARY_PATH; PATH on Windows, after torch has put its folders before it.
        cache: /etc/ld.so.cache by name, best first; on Windows the known DLLs.
        defaults: the folders of the system, where the loader looks last; System32 and Windows there.
        extra: where torch itself looks: NVIDIA's wheels; what it gives to AddDllDirectory on Windows.
        levels: subfolders for this processor, best first: glibc-hwcaps/x86-64-v3.
        lib: the value of $LIB.
    """

    system: System
    machine: str
    executable: str = ""
    roots: tuple[str, ...] = ()
    shared: int = 0
    loaded: tuple[str, ...] = ()
    preloaded: tuple[str, ...] = ()
    search_path: tuple[str, ...] = ()
    cache: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    defaults: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    lib: str = "lib"


class FoundLibrary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One library of the closure: its path, the rule that found it, and the library that needs it."""

    name: str
    state: State
    path: str = ""
    how: str = ""
    by: str = ""


class Break(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A missing or broken library of the closure (an error), or a possibly wrong one (a warning).

    `library` is the leaf, `chain` the files from a root down to what needs it. `wanted` are versions
    or functions that are lacking, at most a few of `count`. `looked` are the folders that were searched,
    `better` is another copy that would do. `packages` bring it, by package manager.
    """

    kind: Kind
    status: Literal["error", "warn"]
    library: str
    path: str = ""
    how: str = ""
    chain: tuple[str, ...] = ()
    detail: str = ""
    wanted: tuple[str, ...] = ()
    count: int = 0
    looked: tuple[str, ...] = ()
    better: str = ""
    text: str = ""
    fix: str = ""
    packages: Mapping[str, str] = msgspec.field(default_factory=dict)


class Closure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All libraries that `import torch` needs, with their paths and problems.

    `problem` says why there is nothing to walk, "" where there is. `seconds` is the time it took.
    """

    python: str
    problem: str = ""
    libraries: tuple[FoundLibrary, ...] = ()
    breaks: tuple[Break, ...] = ()
    seconds: float = 0.0
