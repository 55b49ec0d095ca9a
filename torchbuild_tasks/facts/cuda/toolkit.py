"""Reading one folder that may be a CUDA toolkit."""

from __future__ import annotations

import json
import re
from typing import Any

from torchbuild_tasks.facts.cuda import nvcc
from torchbuild_tasks.facts.cuda.folders import (
    DEBIAN,
    Folders,
    find_header,
    find_library,
    folders_of,
    runtime_folder,
)
from torchbuild_tasks.facts.cuda.headers import define_in, version_from
from torchbuild_tasks.facts.cuda.limits import limits_in
from torchbuild_tasks.facts.probe import Probe
from torchbuild_tasks.model import Toolkit

# Part -> its library (None: headers only) and its header.
PARTS: dict[str, tuple[str | None, str]] = {
    "cublas": ("cublas", "cublas_v2.h"),
    "cusparse": ("cusparse", "cusparse.h"),
    "cusolver": ("cusolver", "cusolverDn.h"),
    "cufft": ("cufft", "cufft.h"),
    "curand": ("curand", "curand.h"),
    "cupti": ("cupti", "cupti.h"),
    "nvrtc": ("nvrtc", "nvrtc.h"),
    "nvtx3": (None, "nvtx3/nvToolsExt.h"),
    "cudnn": ("cudnn", "cudnn.h"),
    "nccl": ("nccl", "nccl.h"),
    "cusparselt": ("cusparseLt", "cusparseLt.h"),
    "cufile": ("cufile", "cufile.h"),
    "nvjitlink": ("nvJitLink", "nvJitLink.h"),
}

_TEXT = re.compile(r"CUDA Version (\d+(?:\.\d+)+)")
_NUMBERS = re.compile(r"\d+(?:\.\d+)+")


def looks_like_one(probe: Probe, root: str) -> bool:
    """Whether there is an nvcc, or the header of the CUDA runtime."""
    nvcc_there = probe.program_at(probe.join(root, "bin/nvcc")) is not None
    return nvcc_there or find_header(probe, folders_of(probe, root), "cuda_runtime.h") is not None


def read_toolkit(
    probe: Probe,
    root: str,
    found_via: str,
    *,
    aliases: tuple[str, ...] = (),
    managed: bool = False,
    version: str | None = None,
) -> Toolkit:
    """Everything about the toolkit at `root`.

    Args:
        probe: the machine.
        root: the folder, without links.
        found_via: what led to it.
        aliases: what else it is called.
        managed: whether it was put together by this tool.
        version: what to believe when nothing in the folder says a version.
    """
    named: dict[str, Any] = {"path": root, "found_via": found_via, "aliases": aliases, "managed": managed}
    if not probe.is_dir(root):
        problem = "it is a file, not the folder of a toolkit" if probe.exists(root) else "it does not exist"
        return Toolkit(**named, problem=problem)
    folders = folders_of(probe, root)
    program = probe.program_at(probe.join(root, "bin/nvcc"))
    said = nvcc.ask(probe, program) if program else nvcc.Said()
    host_config = find_header(probe, folders, "crt/host_config.h", "host_config.h")
    runtime = find_header(probe, folders, "cuda_runtime.h")
    limits = limits_in(probe.read(host_config) or "" if host_config else "")
    known, via = _version(probe, root, folders, said.release)
    return Toolkit(
        **named,
        version=known or version,
        version_via=via or ("the mark of this tool" if version else None),
        nvcc=program,
        nvcc_version=said.version or said.release,
        headers=bool(runtime and host_config),
        libraries=runtime_folder(folders),
        archs=said.archs,
        gcc=limits.gcc,
        clang=limits.clang,
        msc=limits.msc,
        cudnn=version_from(probe, folders, "cudnn")[0],
        nccl=version_from(probe, folders, "nccl")[0],
        cuobjdump=_cuobjdump(probe, root),
        parts=_parts(probe, folders),
        problem=said.problem or _problem(probe, root, program, runtime),
    )


def _problem(probe: Probe, root: str, program: str | None, runtime: str | None) -> str | None:
    """What is wrong with a folder whose nvcc (if any) answers; one without nvcc is no fault by itself."""
    if program:
        return None
    there = probe.join(root, "bin/nvcc")
    if probe.exists(there):
        return f"{there} is not a program that this user may start"
    return None if runtime else "holds neither bin/nvcc nor the CUDA headers"


def _version(probe: Probe, root: str, folders: Folders, release: str | None) -> tuple[str | None, str | None]:
    """The toolkit's version and what said it."""
    if version := _version_in_json(probe.read(probe.join(root, "version.json"))):
        return version, "version.json"
    if match := _TEXT.search(probe.read(probe.join(root, "version.txt")) or ""):
        return match[1], "version.txt"
    if release:
        return release, "nvcc"
    header = find_header(probe, folders, "cuda.h")
    number = define_in(probe.read(header) or "", "CUDA_VERSION") if header else None
    return (f"{number // 1000}.{number % 1000 // 10}", "cuda.h") if number else (None, None)


def _version_in_json(text: str | None) -> str | None:
    """cuda.version of a version.json; None for one that is broken."""
    try:
        version = json.loads(text or "")["cuda"]["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return version if isinstance(version, str) and _NUMBERS.fullmatch(version) else None


def _cuobjdump(probe: Probe, root: str) -> str | None:
    found = probe.program_at(probe.join(root, "bin/cuobjdump"))
    return found or (probe.program_at("/usr/bin/cuobjdump") if root in DEBIAN else None)


def _parts(probe: Probe, folders: Folders) -> dict[str, str]:
    """The parts that are there: the file of the library, else the header."""
    found = {}
    for part, (library, header) in PARTS.items():
        path = find_library(probe, folders, library) if library else None
        if path := path or find_header(probe, folders, header):
            found[part] = path
    return found
