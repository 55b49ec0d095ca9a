"""The decisions of a build with CUDA as values; the empty ones are those of a CPU build.

They have a page of their own, so that a CPU build reads no module that decides about CUDA.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec
from packaging.version import Version

from torchbuild_tasks.catalog.match import parse_version
from torchbuild_tasks.model import Artifact, Choice, EnvOp, GpuSeen, ManagedToolkit, Tool, Toolkit

_GCC: Final = ("g++", "gcc")
_CLANG: Final = ("clang++", "clang")


class ChosenToolkit(msgspec.Struct, frozen=True, kw_only=True):
    """The toolkit as a choice; everything is empty in a CPU build.

    `toolkit` is what was found in its folder; None for one that is still to be put together
    (`managed`, from `artifacts`). `root` and `version` are set for both. `problem` says why the requested
    one is not available, `passed_over` why others were not chosen. `broken` are those that were meant and
    cannot be used.
    """

    choice: Choice | None = None
    toolkit: Toolkit | None = None
    managed: ManagedToolkit | None = None
    artifacts: tuple[Artifact, ...] = ()
    version: Version | None = None
    problem: str = ""
    passed_over: tuple[str, ...] = ()
    broken: tuple[Toolkit, ...] = ()

    @property
    def name(self) -> str:
        """Return its name for a sentence."""
        return f"CUDA {self.version or 'of unknown version'}"

    @property
    def root(self) -> str:
        """Return its folder; empty without a toolkit."""
        return self.toolkit.path if self.toolkit else self.managed.folder if self.managed else ""

    @property
    def kept(self) -> frozenset[str]:
        """Return the names in the store of its parts and of its own folder."""
        if self.managed is None:
            return frozenset()
        return frozenset((*self.managed.parts, re.split(r"[/\\]", self.managed.folder)[-1]))


class HostLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The newest GCC and clang ("10", "11.2.0"), and the range of _MSC_VER, that the nvcc of `cuda` takes.

    All are empty where nothing is known, and without CUDA. `msc` is from the header; without it the rows
    of msvc.toml apply. `allowed`: the user passes -allow-unsupported-compiler.
    """

    cuda: Version | None = None
    gcc: str = ""
    clang: str = ""
    msc: tuple[int, int] | None = None
    allowed: bool = False

    def refusal(self, tool: Tool) -> str:
        """Say why nvcc does not take a GCC or clang; "" when it does, or when nothing is known."""
        version = parse_version(tool.version)
        newest = self.gcc if tool.name in _GCC else self.clang if tool.name in _CLANG else ""
        if version is None or not newest:
            return ""
        limit = Version(newest).release
        if version.release[: len(limit)] <= limit:
            return ""
        compiler = "GCC" if tool.name in _GCC else "clang"
        return f"CUDA {self.cuda} takes {compiler} up to {newest}"


NO_LIMITS: Final = HostLimits()

# Placeholders in the fix of a finding, for the toolkit with which it is gone (advice.py): a sentence of its
# own, or one more alternative, which is left out where there is none.
ADVISED: Final = "{a fitting toolkit}"
OR_ADVISED: Final = "{or a fitting toolkit}"
OR_OTHERS: Final = "{or what else is to be had}"  # where the one that is asked for is not
OTHER_TORCH: Final = "{Take another torch}"
ARCHIVE: Final = "https://developer.nvidia.com/cuda-toolkit-archive"


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU.

    `via` is where the capability is from, `datacenter` whether it is a card on which forward
    compatibility works (None where no row knows), `disagreement` tells what contradicts, or "".
    """

    name: str
    capability: str | None = None
    via: str = ""
    bus: str | None = None
    uuid: str | None = None
    mig: bool = False
    datacenter: bool | None = None
    answers: tuple[GpuSeen, ...] = ()
    disagreement: str = ""


class Capability(NamedTuple):
    """A compute capability as numbers, so that 10.3 comes after 9.0; `kind` is "", "a" or "f"."""

    major: int
    minor: int
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.kind}"

    @property
    def plain(self) -> Capability:
        """Return the same without its letter."""
        return Capability(self.major, self.minor)


class Arch(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list: a cubin for `capability`, and with `ptx` also its PTX."""

    capability: Capability
    ptx: bool = False

    def __str__(self) -> str:
        return f"{self.capability}{'+PTX' if self.ptx else ''}"


class ChosenArchs(msgspec.Struct, frozen=True, kw_only=True):
    """The list as a choice and as values; `problem` says why it cannot be read or decided."""

    choice: Choice | None = None
    archs: tuple[Arch, ...] = ()
    problem: str = ""
    guessed: bool = False


class ChosenCuda(msgspec.Struct, frozen=True, kw_only=True):
    """All decisions about CUDA, and what follows from them for the environment of the build.

    `variables` stand above what the user's environment says, `open_variables` below every layer of the
    user's; `path` puts nvcc's folder in front of PATH.
    """

    toolkit: ChosenToolkit = ChosenToolkit()
    gpus: tuple[Device, ...] = ()
    archs: ChosenArchs = ChosenArchs()
    limits: HostLimits = NO_LIMITS
    variables: tuple[Choice, ...] = ()
    open_variables: tuple[Choice, ...] = ()
    path: tuple[EnvOp, ...] = ()


class OtherTorch(msgspec.Struct, frozen=True, kw_only=True):
    """Another torch that fits: its series, whether the Python that is here builds it, and the advice."""

    version: str
    keeps_python: bool
    words: str
