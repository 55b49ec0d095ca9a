"""The rows about CUDA: toolkits, drivers, GPUs, boards, and the parts of a toolkit."""

from __future__ import annotations

import msgspec

from torchbuild_tasks.catalog.rows import Unpack


class CudaRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One toolkit series: what its nvcc compiles, which host compilers it takes, which driver it wants.

    `archs` are compute capabilities; `deprecated` ones still compile, with a warning. `gcc`
    and `clang` are the newest majors taken; MSVC has rows of its own (`MsvcRow`). The drivers
    are those that the release came with ("" where not known).
    """

    version: str
    archs: tuple[str, ...]
    gcc: int
    clang: int
    source: str
    deprecated: tuple[str, ...] = ()
    driver_linux: str = ""
    driver_windows: str = ""
    note: str = ""


class CudaDriverRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The oldest driver that runs programs of a whole major release (minor-version compatibility)."""

    cuda: str
    linux: str
    windows: str
    source: str


class CudaTorchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which CUDA toolkits a torch series builds with (`cuda`, `torch`: PEP 440), and cuDNN's versions.

    A toolkit outside of `cuda` is refused where `refuse` is true (the build stops by itself),
    else warned about. `best` is the series that upstream builds its own binaries with. `os`
    limits the row to linux or windows.
    """

    torch: str
    cuda: str
    source: str
    os: str = ""
    cudnn: str = ""
    best: str = ""
    refuse: bool = False
    because: str = ""


class GpuRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One chip: its compute capability, and its PCI device ids as hexadecimal ranges ("2203-2238").

    `datacenter` ids are those of cards for servers, on which forward compatibility works.
    """

    chip: str
    capability: str
    family: str
    ids: tuple[str, ...] = ()
    datacenter: tuple[str, ...] = ()
    source: str = ""


class FamilyRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name for architectures in TORCH_CUDA_ARCH_LIST, as torch versions of `torch` read it.

    `archs` is what the build itself makes of it (its CMake files), `ptx` what "+PTX" after the
    name adds to that, `extension` what building an extension makes of it ("" where it takes no such name).
    """

    name: str
    archs: str
    ptx: str = ""
    extension: str = ""
    torch: str = ""
    source: str = ""


class ArchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A compute capability: the torch versions that know it, and what it is called before or after a rename.

    `torch` are those whose extensions take it, `build` those whose own build can read it ("" for all).
    `cuda` limits the row to toolkits; `renamed` is the capability that those use instead.
    """

    capability: str
    torch: str
    source: str
    build: str = ""
    cuda: str = ""
    renamed: str = ""
    note: str = ""


class BoardRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Jetson board, or what is known of any board with its chip (the last row of the chip).

    `compatible` are patterns (fnmatch) of the names in the device tree, `models` parts of its model's
    text; `capability` is that of the chip. `launch_bounds` says that its registers do not
    suffice for blocks of 1024 threads, `sbsa` that it runs NVIDIA's software for Arm servers (the
    wheels, NCCL); older boards have packages of their own.
    """

    name: str
    compatible: tuple[str, ...]
    capability: str
    source: str
    models: tuple[str, ...] = ()
    launch_bounds: bool = False
    sbsa: bool = False
    note: str = ""


class JetpackRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A JetPack release: its L4T (PEP 440 on "35.4.1"), the CUDA it carries, and the boards it runs on.

    `newer_cuda` says whether later toolkits run on it with NVIDIA's package cuda-compat.
    """

    name: str
    l4t: str
    cuda: str
    boards: tuple[str, ...]
    source: str
    newer_cuda: bool = False


class PatchRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to the source for some machines; `diff` is a file of `data/patches/`, `text` what it holds.

    It is for torch versions of `torch`, on `os` and `arch`, where `needs` says: launch-bounds
    (boards whose registers do not suffice for 1024 threads).
    """

    id: str
    diff: str
    torch: str
    because: str
    source: str
    os: str = ""
    arch: str = ""
    needs: str = ""
    text: str = ""


class PartRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One part of the toolkit of `cuda`: a wheel by `project` and `version`, or a file by `urls`.

    `cuda` is the release ("12.4.1"), or "12" for a part that fits all of them. `needed` is
    compile (nvcc and what every compilation needs) or torch (libraries that PyTorch links);
    `torch` limits it to versions of torch. `folder` is the folder inside the archive whose
    content belongs into the toolkit, `holds` are paths inside the archive.
    """

    cuda: str
    name: str
    version: str
    needed: str
    folder: str
    source: str
    project: str = ""
    tag: str = ""
    os: str = ""
    arch: str = ""
    torch: str = ""
    urls: tuple[str, ...] = ()
    unpack: Unpack = "zip"
    sha256: str = ""
    size: int = 0
    holds: tuple[str, ...] = ()
