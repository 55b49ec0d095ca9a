"""The two files that are compiled before a build: what differs most between compilers and toolkits.

They are C++11 and older CUDA on purpose, so that every release line can be tried with them,
and include no CUB or Thrust, which would take longer than all the rest.
"""

from __future__ import annotations

from typing import Final

CPP_FILE: Final = "preflight.cpp"
KERNEL_FILE: Final = "preflight.cu"

CPP: Final = """\
// What a compiler and a standard library that do not fit each other fail in first.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

template <typename... Values>
std::tuple<Values...> pack(Values... values) {
  return std::make_tuple(std::move(values)...);
}

int preflight(int argument) {
  std::unordered_map<std::string, std::function<int(int)>> table;
  table["add"] = [argument](int other) { return argument + other; };
  auto packed = pack(std::string("add"), std::make_shared<int>(argument), 2.5);
  std::atomic<int> sum(0);
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index)
    threads.emplace_back([&] { sum += table[std::get<0>(packed)](*std::get<1>(packed)); });
  std::for_each(threads.begin(), threads.end(), [](std::thread& each) { each.join(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return sum;
}
"""

# The host's part has the headers that nvcc's own front end could not read in some pairs with gcc.
KERNEL: Final = """\
// A template kernel in half and float, and the host's headers as nvcc reads them.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

__device__ inline float load(const float* from) { return *from; }
__device__ inline float load(const __half* from) { return __half2float(*from); }
__device__ inline void store(float* to, float value) { *to = value; }
__device__ inline void store(__half* to, float value) { *to = __float2half(value); }

template <typename T, int Threads>
__global__ void scale_and_sum(T* values, float* sums, float factor, int count) {
  __shared__ float part[Threads];
  const int thread = static_cast<int>(threadIdx.x);
  const int at = static_cast<int>(blockIdx.x) * Threads + thread;
  const float value = at < count ? expf(load(values + at)) * factor : 0.0f;
  if (at < count) store(values + at, value);
  part[thread] = value;
  __syncthreads();
  for (int half = Threads / 2; half > 0; half /= 2) {
    if (thread < half) part[thread] += part[thread + half];
    __syncthreads();
  }
  if (thread == 0) atomicAdd(sums, part[0]);
}

template <typename... Values>
std::tuple<Values...> pack(Values... values) {
  return std::make_tuple(std::move(values)...);
}

cudaError_t preflight(__half* halves, float* floats, float* sums, int count) {
  std::function<void(int)> run = [=](int blocks) {
    scale_and_sum<__half, 128><<<blocks, 128>>>(halves, sums, 0.5f, count);
    scale_and_sum<float, 128><<<blocks, 128>>>(floats, sums, 2.0f, count);
  };
  auto packed = pack(std::string("scale"), std::make_shared<int>(count / 128 + 1));
  std::vector<std::function<void(int)>> all(1, run);
  for (auto& each : all) each(*std::get<1>(packed));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return cudaGetLastError();
}
"""
