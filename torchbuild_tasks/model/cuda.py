"""Facts about CUDA: toolkits, GPUs and the driver, each with its source."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final

import msgspec

# Libraries that may be outside of a toolkit, and the variables of PyTorch's CMake modules and setup.py:
# roots, then folders for headers, then folders or files of libraries (Find*.cmake of 1.10.0 to 2.6.0).
NOTE: Final = ("info", "torchbuild.json")  # in a helper built from source: its target
LIBRARIES: Final = ("cudnn", "nccl", "magma", "cusparselt", "cudss")
ROOTS: Final = ("{}_ROOT", "{}_ROOT_DIR", "{}_PATH", "{}_HOME")
INCLUDES: Final = ("{}_INCLUDE_DIR", "{}_INCLUDE_PATH")
FILES: Final = ("{}_LIBRARY", "{}_LIB_DIR", "{}_LIBRARY_PATH", "{}_LIBRARY_DIR")
_PCI: Final = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})\.([0-7])", re.IGNORECASE)


@functools.cache
def names_of(library: str) -> tuple[str, ...]:
    """Return the variables that can name the folder of a library."""
    return tuple(text.format(library.upper()) for text in (*ROOTS, *INCLUDES, *FILES))


def pci_address(text: str | None) -> str | None:
    """Return a PCI address as the kernel writes it: 0000:01:00.0 for 00000000:01:00.0 and 01:00.0."""
    match = _PCI.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function}"


class Toolkit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One folder with a CUDA toolkit, complete or not.

    `version` is the toolkit's ("12.4.1" or "12.4"), `version_via` what said it (version.json,
    nvcc, cuda.h), `nvcc_version` that of the compiler ("12.4.131"). `nvcc` is None in a root
    that only has headers or libraries: such a one compiles nothing. `headers` says whether
    cuda_runtime.h is there, `libraries` is the folder with the CUDA runtime to link. `archs`
    are the compute capabilities that this nvcc compiles for ("8.6"), as it lists them itself.
    `gcc` and `clang` are the newest majors that its host_config.h takes, `msc` the range of
    _MSC_VER (first, and first no more). `cudnn` and `nccl` are versions found inside it;
    `parts` tells which libraries are there ("cublas": its file), `lacks` which of those that torch links with
    cannot be linked (None where that was not looked at). `aliases` are other
    paths to it; `managed` marks one that this tool put together. `problem` says why it cannot be used.
    `noexcept` are the functions of the C library that its math_functions.h declares as glibc does.
    """

    path: str
    found_via: str
    version: str | None = None
    version_via: str | None = None
    nvcc: str | None = None
    nvcc_version: str | None = None
    headers: bool = False
    libraries: str | None = None
    archs: tuple[str, ...] = ()
    gcc: int | None = None
    clang: int | None = None
    msc: tuple[int, int] | None = None
    cudnn: str | None = None
    nccl: str | None = None
    cuobjdump: str | None = None
    parts: Mapping[str, str] = msgspec.field(default_factory=dict)
    lacks: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()
    managed: bool = False
    problem: str | None = None
    noexcept: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return what to call it in a sentence."""
        return f"CUDA {self.version or 'of unknown version'}"


class BuiltFor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a built helper: a CUDA version ("13.0"), architectures ("8.0", "9.0+PTX") …"""

    helper: str
    version: str
    cuda: str
    archs: tuple[str, ...]
    configuration: str
    system: str
    key: str = ""


class Library(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A library outside of any toolkit (`LIBRARIES`); the folders of its headers and of its files.

    `built_for` is the target of a helper that we built.
    """

    name: str
    version: str | None = None
    include: str | None = None
    library: str | None = None
    found_via: str
    built_for: BuiltFor | None = None


class GpuSeen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One GPU as one probe saw it; `plan` merges what several probes report.

    `probe` is nvml, nvidia-smi, pci, proc or device tree. `bus` is its PCI address
    ("0000:01:00.0"), `pci_id` vendor and device ("10de:2204"), `capability` its compute
    capability ("8.6"), `chip` what pci.ids calls the chip ("GA102"), `memory` bytes. `mig`
    is true when it is split into instances.
    """

    probe: str
    bus: str | None = None
    pci_id: str | None = None
    name: str | None = None
    chip: str | None = None
    capability: str | None = None
    memory: int | None = None
    uuid: str | None = None
    mig: bool = False


class Driver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The NVIDIA driver: `module` is the loaded kernel module's version, `library` that of the
    user-space library; they must be the same. `cuda` is the newest CUDA that it runs ("13.0").
    `problem` is the driver's own error message.
    """

    version: str | None = None
    found_via: str = ""
    module: str | None = None
    library: str | None = None
    cuda: str | None = None
    problem: str | None = None


class Tegra(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Jetson board: its `model` and `compatible` names (device tree), and its L4T release ("35.4.1")."""

    model: str
    compatible: tuple[str, ...] = ()
    l4t: str | None = None


class Cuda(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything about CUDA on the machine.

    `looked` lists where toolkits were looked for, `probes` how each probe for GPUs ended,
    by its name. `visible` is CUDA_VISIBLE_DEVICES (None when it is not set: an empty one
    hides every device), `wsl` whether this is Linux within Windows. `paths` are the variables by which loader
    and compilers find other folders first.
    """

    toolkits: tuple[Toolkit, ...] = ()
    looked: tuple[str, ...] = ()
    libraries: tuple[Library, ...] = ()
    gpus: tuple[GpuSeen, ...] = ()
    driver: Driver | None = None
    tegra: Tegra | None = None
    wsl: bool = False
    visible: str | None = None
    probes: Mapping[str, str] = msgspec.field(default_factory=dict)
    paths: Mapping[str, str] = msgspec.field(default_factory=dict)
