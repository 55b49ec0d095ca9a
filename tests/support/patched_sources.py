"""Small files of the shape that PyTorch's have where our patches change them."""

from __future__ import annotations

from pathlib import Path

from torchbuild_tasks.catalog import load_catalog
from torchbuild_tasks.model import Patch

CONTEXT = "aten/src/ATen/cuda/CUDAContext.cpp"
KERNELS = "aten/src/ATen/cuda/detail/KernelUtils.h"
THCUNN = "aten/src/THCUNN/common.h"

_CONTEXT = """\
#include <ATen/cuda/CUDAContext.h>

namespace at {{ namespace cuda {{

namespace {{

void initDeviceProperty(DeviceIndex device_index) {{
  cudaDeviceProp device_prop{braces};
  AT_CUDA_CHECK(cudaGetDeviceProperties(&device_prop, device_index));
  device_properties[device_index] = device_prop;
}}

}} // anonymous namespace

int warp_size() {{
  return 32;
}}

}}}} // namespace at::cuda
"""
_KERNELS = """\
#pragma once

namespace at {{ namespace cuda {{ namespace detail {{

// Use 1024 threads per block, which requires cuda sm_2x or above
constexpr int CUDA_NUM_THREADS = 1024;

// CUDA: number of blocks for threads.
{blocks}
  return (N + CUDA_NUM_THREADS - 1) / CUDA_NUM_THREADS;
}}

}}}}}}  // namespace at::cuda::detail
"""
_THCUNN = """\
#ifndef THCUNN_COMMON_H
#define THCUNN_COMMON_H

// Use 1024 threads per block, which requires cuda sm_2x or above
const int CUDA_NUM_THREADS = 1024;

// CUDA: number of blocks for threads.
inline int GET_BLOCKS(const int N)
{
  return (N + CUDA_NUM_THREADS - 1) / CUDA_NUM_THREADS;
}

#endif
"""

# The files as they were in 1.1, from 1.10 on, and in 2.x.
SHAPES = {
    "1.1.0": {
        CONTEXT: _CONTEXT.format(braces=""),
        KERNELS: _KERNELS.format(blocks="inline int GET_BLOCKS(const int N)\n{"),
        THCUNN: _THCUNN,
    },
    "1.13.0a0": {
        CONTEXT: _CONTEXT.format(braces=""),
        KERNELS: _KERNELS.format(blocks="inline int GET_BLOCKS(const int64_t N, const int64_t max) {"),
    },
    "2.8.0a0": {
        CONTEXT: _CONTEXT.format(braces="{}"),
        KERNELS: _KERNELS.format(blocks="inline int GET_BLOCKS(const int64_t N, const int64_t max) {"),
    },
}


def lay_out(root: Path, version: str = "1.13.0a0", *, crlf: bool = False) -> Path:
    """Write the files of a version's shape below a folder."""
    for name, text in SHAPES[version].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((text.replace("\n", "\r\n") if crlf else text).encode())
    return root


def contents(root: Path) -> dict[str, bytes]:
    """Return every file of the source, without this tool's and git's own."""
    files = (path for path in (root / "aten").rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def row_patch(id: str) -> Patch:
    """The patch of a row."""
    row = next(row for row in load_catalog().patch if row.id == id)
    return Patch(id=row.id, diff=row.text, because=row.because)


def own_patch(id: str, path: str, old: str, new: str, *, before: str, after: str) -> Patch:
    """A patch of one line between two others, wherever they are but at the very beginning."""
    hunk = f"@@ -2,3 +2,3 @@\n {before}\n-{old}\n+{new}\n {after}\n"
    return Patch(id=id, diff=f"--- a/{path}\n+++ b/{path}\n{hunk}", because="a test")
