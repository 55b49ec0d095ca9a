"""Versions in the headers of CUDA's libraries."""

from __future__ import annotations

import re

from torchbuild_tasks.facts.cuda.folders import Folders, find_header
from torchbuild_tasks.facts.probe import Probe

# The headers that hold the version, newest layout first, and its numbers.
_DEFINES = {
    "cudnn": (
        ("cudnn_version.h", "cudnn_version_v8.h", "cudnn.h"),
        ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
    ),
    "nccl": (("nccl.h",), ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH")),
    "magma": (
        ("magma_types.h",),
        ("MAGMA_VERSION_MAJOR", "MAGMA_VERSION_MINOR", "MAGMA_VERSION_MICRO"),
    ),
}


def define_in(text: str, name: str) -> int | None:
    """The number that a header defines `name` as."""
    match = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def version_from(probe: Probe, folders: Folders, library: str) -> tuple[str | None, str | None]:
    """The version of a library and the header that says so; (None, None) when there is no such header.

    A header without the numbers (cudnn.h of cuDNN 8) gives its own path only.
    """
    headers, names = _DEFINES[library]
    seen = None
    for header in headers:
        if path := find_header(probe, folders, header):
            seen = seen or path
            numbers = [define_in(probe.read(path) or "", name) for name in names]
            if None not in numbers:
                return ".".join(map(str, numbers)), path
    return None, seen
