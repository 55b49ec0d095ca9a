"""What each further architecture costs: the same file compiled for 3 and for 6 as ratio of one.

Two files, as PyTorch has both kinds: CUB's radix sort and reduction by key, where the templates
of the toolkit's own headers take nearly all the time, and an elementwise template over eight
operations and six types, where the code for the device does.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Command, pairs, show
from tests.support.preflight import CXX, NVCC

SORT = """\
#include <cub/cub.cuh>
struct Add {
  template <typename T>
  __host__ __device__ T operator()(T one, T other) const { return one + other; }
};
template <typename Key, typename Value>
cudaError_t sort_and_reduce(void* room, size_t& bytes, const Key* keys, Key* sorted, const Value* values,
                            Value* moved, Key* unique, Value* sums, int* runs, int count) {
  cub::DeviceRadixSort::SortPairs(room, bytes, keys, sorted, values, moved, count);
  return cub::DeviceReduce::ReduceByKey(room, bytes, sorted, unique, moved, sums, runs, Add(), count);
}
template cudaError_t sort_and_reduce(void*, size_t&, const int*, int*, const float*, float*, int*, float*,
                                     int*, int);
"""

ELEMENTWISE = """\
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdint>
template <int Op, typename A>
__device__ A apply(A a, A b) {
  switch (Op) {
    case 0: return a + b;
    case 1: return a * b;
    case 2: return a > b ? a : b;
    case 3: return A(expf(float(a))) / (A(1) + b);
    case 4: return A(erff(float(a))) * b;
    case 5: return A(powf(fabsf(float(a)), float(b)));
    case 6: return A(lgammaf(float(a))) + b;
    default: return A(tanhf(float(a))) - b;
  }
}
template <int Op, typename T, typename A, int PerThread>
__global__ void elementwise(T* out, const T* one, const T* other, int64_t count) {
  const int64_t start = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * PerThread;
#pragma unroll
  for (int i = 0; i < PerThread; ++i)
    if (start + i < count) out[start + i] = T(apply<Op, A>(A(one[start + i]), A(other[start + i])));
}
template <int Op, typename T, typename A>
void launch(void* out, void* one, void* other, int64_t count) {
  elementwise<Op, T, A, 4><<<(count + 511) / 512, 128>>>((T*)out, (T*)one, (T*)other, count);
}
template <int Op>
void every_type(void* out, void* one, void* other, int64_t count) {
  launch<Op, float, float>(out, one, other, count);
  launch<Op, double, double>(out, one, other, count);
  launch<Op, __half, float>(out, one, other, count);
  launch<Op, __nv_bfloat16, float>(out, one, other, count);
  launch<Op, int32_t, int32_t>(out, one, other, count);
  launch<Op, int64_t, int64_t>(out, one, other, count);
}
void every_operation(void* out, void* one, void* other, int64_t count) {
  every_type<0>(out, one, other, count);
  every_type<1>(out, one, other, count);
  every_type<2>(out, one, other, count);
  every_type<3>(out, one, other, count);
  every_type<4>(out, one, other, count);
  every_type<5>(out, one, other, count);
  every_type<6>(out, one, other, count);
  every_type<7>(out, one, other, count);
}
"""


def main(runs: int = 3) -> None:
    """Measure both files for the oldest architectures that this nvcc compiles for."""
    if not (NVCC and CXX):
        print("archs: no nvcc and C++ compiler here")
        return
    numbers = architectures()
    print(f"{NVCC}, in this order: {' '.join(numbers[:6])}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in (("sort.cu", SORT), ("elementwise.cu", ELEMENTWISE)):
            (Path(scratch) / name).write_text(text, "utf-8")
            one = compilation(Path(scratch), name, numbers[:1])
            for count in (3, 6):
                several = compilation(Path(scratch), name, numbers[:count])
                costs = pairs(several, one, runs, warm_up=0)
                title = f"{name} for {count} architectures"
                show(f"{title}, wall", several, one, [a.wall / b.wall for a, b in costs], "none")
                show(f"{title}, CPU", several, one, [a.cpu / b.cpu for a, b in costs], "none")


def architectures() -> list[str]:
    """The plain architectures that this nvcc lists, oldest first: "75" for sm_75."""
    said = subprocess.run([NVCC, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    return sorted(re.findall(r"^sm_(\d+)$", said, re.MULTILINE), key=int)


def compilation(folder: Path, name: str, numbers: Sequence[str]) -> Command:
    """One file compiled for these architectures, one after the other as nvcc does it by itself."""
    codes = [word for each in numbers for word in ("-gencode", f"arch=compute_{each},code=sm_{each}")]
    flags = ["-ccbin", CXX, "-std=c++17", "-O3", *codes]
    return Command(argv=[NVCC, *flags, "-c", name, "-o", "out.o"], cwd=folder)
