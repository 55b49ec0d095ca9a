"""The rows about source: submodules, their commits in releases, companions, and recipes of helpers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec


class SubmoduleRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A submodule, and the settings for which a build takes it; submodules.toml explains the columns."""

    path: str
    torch: str = ""
    needs: Mapping[str, str] = msgspec.field(default_factory=dict)
    any: Mapping[str, str] = msgspec.field(default_factory=dict)
    system: tuple[str, ...] = ()
    os: str = ""
    unused: str = ""
    checked: str = ""
    source: str


class HelperSourceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The source of a helper on `os`: an archive at `urls`, or the commit `ref` of a git `url`.

    `archive` is what the built one is called ("{cuda}": 130), and `holds` are the paths that it must hold.
    """

    name: str
    os: str
    version: str
    archive: str
    unpack: Literal["7z", "tar.bz2"]
    holds: tuple[str, ...]
    source: str
    urls: tuple[str, ...] = ()
    sha256: str = ""
    url: str = ""
    ref: str = ""


class RecipeRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The build of a source of the helper `name` whose CMakeLists.txt contains the word `reads`.

    `options` are CMake's; {archs} are the architectures, each by `cubin` and `ptx` ({0}: 90), with
    `separator` between. Where the file `generated` is missing, `generate` makes it and the other precisions,
    once `settings` (files by name) are there. `target` is built.
    """

    name: str
    reads: str
    options: tuple[str, ...]
    cubin: str
    ptx: str
    separator: str
    target: str
    source: str
    generated: str = ""
    generate: tuple[str, ...] = ()
    settings: Mapping[str, str] = msgspec.field(default_factory=dict)


class PinRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The commit of a submodule that a release of torch has, and the repository that holds it."""

    torch: str
    path: str
    url: str
    commit: str
    source: str


class CompanionRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One project; `set` are variables of its build, in which `{torch}` is the version of the built torch.

    `{cuda}` is 1 or 0, `{device}` cuda or cpu, `{archs}` the GPU architectures as "80;90". An `extension` is
    released for no one torch, so its own metadata say what it asks for; `sdist` is its name on the package
    index, `module` what it is imported as. `job` is the kind of memory.toml that its heaviest compile is,
    `before` what is run in its fetched source, and `cuda` that there is none of it for a CPU.
    `makes` are files that its build writes among its source, `archs` what its build has code for, `oldest`
    the first compute capability that its kernels run on, `toolkit` the CUDA that it builds with, `os` the one
    system that it is for, `without` are projects that it asks for and a build for torch does not need.
    `switches` are those that must be on in the torch that it is imported with.
    """

    name: str
    url: str
    source: str
    requires: tuple[str, ...] = ()
    set: Mapping[str, str] = msgspec.field(default_factory=dict)
    extension: bool = False
    sdist: str = ""
    module: str = ""
    job: str = ""
    before: tuple[str, ...] = ()
    cuda: bool = False
    archs: tuple[str, ...] = ()
    oldest: str = ""
    toolkit: str = ""
    os: str = ""
    switches: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class BuilderSettingRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables without which the torch.utils.cpp_extension of `torch` stops where nothing is wrong."""

    torch: str
    set: Mapping[str, str]
    because: str
    source: str
    os: str = ""
    cuda: bool = False


class CompanionReleaseRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release of a project and the torch versions (PEP 440) that it builds against.

    `wheel` is what its wheel asks of torch, which is what pip goes by. A `stable` one uses the stable ABI
    only, so that one build runs with all of them.
    """

    name: str
    version: str
    torch: str
    source: str
    wheel: str = ""
    stable: bool = False
