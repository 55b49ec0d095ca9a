"""NVIDIA's archives of nvcc 12.4.131, rebuilt from the packages of Debian and the package index.

The archives themselves lie on a host that not every test machine reaches. Debian's package
has the same programs, at other places; NVIDIA's wheels have the headers and the libraries.
What comes out has the archives' names and layout, and of their content what compiles an
object: cudart is without its static libraries, which are in no wheel of that version.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

URL: Final = (
    "http://deb.debian.org/debian/pool/non-free/n/nvidia-cuda-toolkit/"
    "nvidia-cuda-toolkit_12.4.131~12.4.1-2_amd64.deb"
)
SHA256: Final = "cd5fe85aee38d108b315f408a688641478f2402622a10c677478eb7a6c4e5319"
# Where downloads are kept between runs; a test's own home is empty each time.
CACHE: Final = Path(os.environ.get("TORCHBUILD_TEST_CACHE") or Path.home() / ".cache" / "torchbuild-tests")

# NVIDIA's own: Debian's points to Debian's places.
PROFILE: Final = """
TOP              = $(_HERE_)/..

NVVMIR_LIBRARY_DIR = $(TOP)/$(_NVVM_BRANCH_)/libdevice

LD_LIBRARY_PATH += $(TOP)/lib:
PATH            += $(TOP)/$(_NVVM_BRANCH_)/bin:$(_HERE_):

INCLUDES        +=  "-I$(TOP)/$(_TARGET_DIR_)/include" $(_SPACE_)

LIBRARIES        =+ $(_SPACE_) "-L$(TOP)/$(_TARGET_DIR_)/lib$(_TARGET_SIZE_)"

CUDAFE_FLAGS    +=
PTXAS_FLAGS     +=
"""

_LIB: Final = "./usr/lib/nvidia-cuda-toolkit"
# Where each file of the package lies in the archives.
NVCC: Final = {
    f"{_LIB}/bin/nvcc": "bin/nvcc",
    f"{_LIB}/bin/cicc": "nvvm/bin/cicc",
    f"{_LIB}/bin/crt/link.stub": "bin/crt/link.stub",
    f"{_LIB}/bin/crt/prelink.stub": "bin/crt/prelink.stub",
    "./usr/bin/cudafe++": "bin/cudafe++",
    "./usr/bin/fatbinary": "bin/fatbinary",
    "./usr/bin/nvlink": "bin/nvlink",
    "./usr/bin/bin2c": "bin/bin2c",
}
CUOBJDUMP: Final = {"./usr/bin/cuobjdump": "bin/cuobjdump"}
_PROGRAMS: Final = frozenset(
    ("nvcc", "cicc", "cudafe++", "fatbinary", "nvlink", "bin2c", "cuobjdump", "ptxas")
)


def debian_package() -> Path:
    """Debian's package, downloaded once (87 MB); skips where it is not available."""
    path = CACHE / URL.rpartition("/")[2]
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with urllib.request.urlopen(URL, timeout=60) as answer:  # http is fine: the hash decides
                data = answer.read()
        except OSError as error:
            pytest.skip(f"no network to {URL}: {error}")
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.write_bytes(data)
        partial.replace(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256, f"{path} is another file; remove it"
    return path


def archives(mirror: Path, urls: Mapping[str, str], nvcc: Path, runtime: Path) -> dict[str, tuple[str, int]]:
    """Write the archives of nvcc, cudart and cuobjdump where a mirror has them.

    Args:
        mirror: the folder that stands for https://developer.download.nvidia.com/.
        urls: the address of each archive by the part's name.
        nvcc: the folder `nvidia/cuda_nvcc` of NVIDIA's wheel, `runtime` that of cuda_runtime.

    Returns:
        The sha256 and the size of each, by the part's name.
    """
    wanted = {**NVCC, **CUOBJDUMP}
    files = {wanted[name]: data for name, data in _package(debian_package(), frozenset(wanted))}
    assert len(files) == len(wanted)
    content = {
        "nvcc": {**_folder(nvcc), **{name: files[name] for name in NVCC.values()}},
        "cudart": _folder(runtime),
        "cuobjdump": {name: files[name] for name in CUOBJDUMP.values()},
    }
    content["nvcc"]["bin/nvcc.profile"] = PROFILE.encode()
    made = {}
    for name, files in content.items():
        path = mirror / urls[name].split("/", 3)[3]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_packed(path.name.removesuffix(".tar.xz"), files))
        made[name] = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    return made


def _package(path: Path, wanted: frozenset[str]) -> Iterator[tuple[str, bytes]]:
    """These files of a Debian package: an `ar` archive that holds data.tar.xz."""
    data, at = path.read_bytes(), 8
    while at < len(data):
        name, size = data[at : at + 16].decode().strip(), int(data[at + 48 : at + 58])
        body = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
        if name.rstrip("/") == "data.tar.xz":
            with tarfile.open(fileobj=io.BytesIO(body), mode="r:xz") as opened:
                for member in opened:
                    if member.name in wanted and (file := opened.extractfile(member)):
                        yield member.name, file.read()


def _folder(root: Path) -> dict[str, bytes]:
    """Return the files of a part of a wheel, without those for Python."""
    every = (path for path in root.rglob("*") if path.is_file() and path.name != "__init__.py")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in every}


def _packed(top: str, files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mode = len(data), 0o755 if name.rpartition("/")[2] in _PROGRAMS else 0o644
            archive.addfile(info, io.BytesIO(data))
    return lzma.compress(out.getvalue(), preset=0)
