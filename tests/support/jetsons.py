"""Jetson boards with the system software of different years, as facts.

The names of the device trees are those that NVIDIA's software gives them; the figures of memory
and disk are those of the boards as they come.
"""

from __future__ import annotations

from typing import Any

from tests.support.machines import ROOT, base_python, linux_facts, tool, tree
from torchbuild_tasks.catalog import GIB
from torchbuild_tasks.model import (
    Cpu,
    Cuda,
    Disk,
    Driver,
    Facts,
    GpuSeen,
    Host,
    Library,
    Memory,
    Tegra,
    Toolkit,
)
from torchbuild_tasks.values import replace


def tx2(**changes: Any) -> Facts:
    """A TX2 with JetPack 4.6: Ubuntu 18.04, gcc 7, CUDA 10.2, no other swap than zram."""
    return _board(
        tegra=Tegra(
            model="quill",
            compatible=("nvidia,quill", "nvidia,p2597-0000+p3310-1000", "nvidia,tegra186"),
            l4t="32.6.1",
        ),
        system=("Ubuntu 18.04.6 LTS", "4.9.253-tegra", "glibc 2.27", "7.5.0"),
        cuda=("10.2", ("5.3", "6.2", "7.2"), 8),
        cudnn="8.2.1",
        python="3.6.9",
        cores=6,
        memory=Memory(total=int(7.7 * GIB), available=int(6.4 * GIB), swap_free=int(3.8 * GIB)),
        tree=tree(version="1.10.0a0"),
        changes=changes,
    )


def nano(**changes: Any) -> Facts:
    """A Nano with 4 GB and JetPack 4.6.1, its desktop running; Python 3.8 from Ubuntu's packages."""
    return _board(
        tegra=Tegra(
            model="NVIDIA Jetson Nano Developer Kit",
            compatible=("nvidia,p3449-0000-b00+p3448-0000-b00", "nvidia,jetson-nano", "nvidia,tegra210"),
            l4t="32.7.1",
        ),
        system=("Ubuntu 18.04.6 LTS", "4.9.253-tegra", "glibc 2.27", "7.5.0"),
        cuda=("10.2", ("5.3", "6.2", "7.2"), 8),
        cudnn="8.2.1",
        python="3.8.0",
        cores=4,
        memory=Memory(total=int(3.9 * GIB), available=int(2.6 * GIB), swap_free=int(1.9 * GIB)),
        tree=tree(version="1.13.0a0"),
        changes=changes,
    )


def xavier_nx(**changes: Any) -> Facts:
    """A Xavier NX with JetPack 5.1: Ubuntu 20.04, CUDA 11.4."""
    return _board(
        tegra=Tegra(
            model="NVIDIA Jetson Xavier NX Developer Kit",
            compatible=("nvidia,p3509-0000+p3668-0000", "nvidia,tegra194"),
            l4t="35.2.1",
        ),
        system=("Ubuntu 20.04.6 LTS", "5.10.104-tegra", "glibc 2.31", "9.4.0"),
        cuda=("11.4", ("5.3", "6.2", "7.2", "8.7"), 11),
        cudnn="8.6.0",
        python="3.8.10",
        cores=6,
        memory=Memory(total=int(6.7 * GIB), available=int(5.4 * GIB), swap_free=int(3.3 * GIB)),
        tree=tree(version="2.1.0a0"),
        changes=changes,
    )


def orin_nano(**changes: Any) -> Facts:
    """An Orin Nano with JetPack 6.2: Ubuntu 22.04, CUDA 12.6."""
    return _board(
        tegra=Tegra(
            model="NVIDIA Jetson Orin Nano Engineering Reference Developer Kit Super",
            compatible=("nvidia,p3768-0000+p3767-0005-super", "nvidia,p3767-0005", "nvidia,tegra234"),
            l4t="36.4.3",
        ),
        system=("Ubuntu 22.04.5 LTS", "5.15.148-tegra", "glibc 2.35", "11.4.0"),
        cuda=("12.6", ("5.3", "6.2", "7.2", "8.7"), 13),
        cudnn="9.3.0",
        python="3.10.12",
        cores=6,
        memory=Memory(total=int(7.4 * GIB), available=int(5.1 * GIB), swap_free=int(3.7 * GIB)),
        tree=tree(version="2.8.0a0"),
        changes=changes,
    )


def thor(**changes: Any) -> Facts:
    """An AGX Thor with JetPack 7.0: Ubuntu 24.04, CUDA 13.0."""
    return _board(
        tegra=Tegra(
            model="NVIDIA Jetson AGX Thor Developer Kit",
            compatible=("nvidia,p3971-0080+p3834-0008", "nvidia,p3834-0008", "nvidia,tegra264"),
            l4t="38.2.0",
        ),
        system=("Ubuntu 24.04.3 LTS", "6.8.12-tegra", "glibc 2.39", "13.3.0"),
        cuda=("13.0", ("7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0"), 15),
        cudnn="9.12.0",
        python="3.12.3",
        cores=14,
        memory=Memory(total=int(122.8 * GIB), available=int(117.0 * GIB), swap_free=0),
        tree=tree(version="2.9.0a0"),
        changes=changes,
    )


BOARDS = {"tx2": tx2, "nano": nano, "xavier_nx": xavier_nx, "orin_nano": orin_nano, "thor": thor}


def with_cuda(facts: Facts, **changes: Any) -> Facts:
    """The same board with something else about its CUDA."""
    assert facts.cuda is not None
    return replace(facts, cuda=replace(facts.cuda, **changes))


def with_tegra(facts: Facts, **changes: Any) -> Facts:
    """The same machine with another board's names or release."""
    assert facts.cuda is not None
    assert facts.cuda.tegra is not None
    return with_cuda(facts, tegra=replace(facts.cuda.tegra, **changes))


def jetpack_toolkit(version: str, archs: tuple[str, ...], gcc: int) -> Toolkit:
    """The toolkit as JetPack's packages lay it out."""
    root = f"/usr/local/cuda-{version}"
    return Toolkit(
        path=root,
        found_via="/usr/local",
        version=version,
        version_via="nvcc",
        nvcc=f"{root}/bin/nvcc",
        nvcc_version=f"{version}.1",
        headers=True,
        libraries=f"{root}/lib64",
        archs=archs,
        gcc=gcc,
        clang=gcc,
        cuobjdump=f"{root}/bin/cuobjdump",
        aliases=("/usr/local/cuda",),
    )


def _board(
    *,
    tegra: Tegra,
    system: tuple[str, str, str, str],
    cuda: tuple[str, tuple[str, ...], int],
    cudnn: str,
    python: str,
    cores: int,
    memory: Memory,
    tree: Any,
    changes: dict[str, Any],
) -> Facts:
    distribution, kernel, libc, gcc = system
    series = ".".join(python.split(".")[:2])
    own = base_python(
        executable=f"/usr/bin/python{series}",
        version=python,
        abi=f"cpython-{series.replace('.', '')}-aarch64-linux-gnu",
        include=f"/usr/include/python{series}",
        externally_managed=False,
    )
    library = Library(
        name="cudnn",
        version=cudnn,
        include="/usr/include",
        library="/usr/lib/aarch64-linux-gnu",
        found_via="system",
    )
    values: dict[str, Any] = {
        "host": Host(os="linux", arch="aarch64", distribution=distribution, kernel=kernel, libc=libc),
        "cpu": Cpu(cores=cores),
        "memory": memory,
        "disk": Disk(path=ROOT, mount="/", free=60 * GIB, total=117 * GIB),
        "compilers": (tool("g++", gcc), tool("gcc", gcc)),
        "tools": (tool("cmake", "3.28.1"), tool("ninja", "1.11.1"), tool("git", "2.34.1")),
        "pythons": (own,),
        "tree": tree,
        "cuda": Cuda(
            toolkits=(jetpack_toolkit(*cuda),),
            looked=("PATH", "/usr/local"),
            libraries=(library,),
            gpus=(GpuSeen(probe="device tree", name=tegra.model),),
            driver=Driver(found_via="nv_tegra_release", cuda=cuda[0]),
            tegra=tegra,
            probes={"device tree": tegra.model},
        ),
    }
    return linux_facts(**{**values, **changes})
