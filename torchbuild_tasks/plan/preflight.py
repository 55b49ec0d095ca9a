"""The pre-flight of a CUDA build: one C++ file and one kernel, compiled before anything else.

They get exactly the compilers and flags of the plan, so what cannot work fails in seconds instead of hours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from torchbuild_tasks.features.helpers.choose import helper_check
from torchbuild_tasks.model import Freshness, Preflight, Trial
from torchbuild_tasks.plan.compiler import MSVC_LIKE
from torchbuild_tasks.plan.cuda.variables import nvcc_of
from torchbuild_tasks.text.words import flag_words

if TYPE_CHECKING:
    from torchbuild_tasks.plan.decisions import Decisions

_ENTRY: Final = re.compile(r"(\d+)\.(\d)([a-z]?)(\+PTX)?")
_CODES: Final = re.compile(r"\bcode=\[?([\w,]+)")
# The first nvcc with -forward-unknown-to-host-compiler, which CMake passes to it.
FORWARDS = Version("10.2")

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


def choose_preflight(decisions: Decisions, freshness: Freshness) -> Preflight | None:
    """Plan two small files with exactly the planned compilers and flags.

    None without CUDA, with --no-preflight, and where the last build with these inputs went well.
    """
    question, compilers, variables = decisions.question, decisions.compilers, decisions.variables
    if decisions.cuda.toolkit.choice is None or compilers.cxx is None or decisions.cuda.archs.choice is None:
        return None
    if question.given("no_preflight") or freshness.needs == "nothing":
        return None
    tool = compilers.tool
    nvcc = variables.get("CUDA_NVCC_EXECUTABLE") or variables.get("CUDACXX")
    cxx, *options = compilers.command
    return plan_preflight(
        cxx=cxx,
        cxx_flags=(*options, *flag_words(variables.get("CXXFLAGS") or variables.get("CFLAGS", ""))),
        nvcc=nvcc or nvcc_of(question, decisions.cuda.toolkit),
        host=variables.get("CUDAHOSTCXX", ""),
        nvcc_flags=(
            *flag_words(variables.get("CMAKE_CUDA_FLAGS") or variables.get("CUDAFLAGS", "")),
            *flag_words(variables.get("TORCH_NVCC_FLAGS", "")),
        ),
        archs=tuple(map(str, decisions.cuda.archs.archs)),
        launcher=variables.get("CMAKE_CXX_COMPILER_LAUNCHER", ""),
        cuda_launcher=variables.get("CMAKE_CUDA_COMPILER_LAUNCHER", ""),
        cuobjdump=_cuobjdump(decisions),
        cxx_standard=question.row.cxx,
        msvc=bool(tool and tool.name in MSVC_LIKE),
        forwards=decisions.cuda.toolkit.version is None or decisions.cuda.toolkit.version >= FORWARDS,
    )


def plan_preflight(
    *,
    cxx: str,
    cxx_flags: tuple[str, ...],
    nvcc: str,
    host: str,
    nvcc_flags: tuple[str, ...],
    archs: tuple[str, ...],
    launcher: str,
    cuda_launcher: str,
    cuobjdump: str,
    cxx_standard: int,
    msvc: bool,
    forwards: bool = True,
) -> Preflight:
    """Plan one C++ file and one kernel with exactly what the build will use.

    Args:
        cxx: the C++ compiler; `cxx_flags` are CXXFLAGS.
        nvcc: the CUDA compiler; `nvcc_flags` are CUDAFLAGS and TORCH_NVCC_FLAGS.
        host: the compiler that nvcc calls, or "" for the one it finds itself.
        archs: entries of TORCH_CUDA_ARCH_LIST: "8.6", "9.0+PTX", "9.0a".
        launcher: CMAKE_CXX_COMPILER_LAUNCHER, or ""; `cuda_launcher` the same for CUDA.
        cuobjdump: the program that lists an object's architectures, or "".
        cxx_standard: 14 for C++14.
        msvc: whether the host's compiler is cl or clang-cl.
        forwards: whether this nvcc has -forward-unknown-to-host-compiler (10.2 and later).
    """
    suffix = "obj" if msvc else "o"
    plain, cubin = f"preflight_cpp.{suffix}", f"preflight_cuda.{suffix}"
    words = ["-forward-unknown-to-host-compiler"] if forwards else []
    words += [f"-ccbin={host}"] if host else []
    words += [*nvcc_flags, *(word for entry in archs for word in _gencode(entry)), f"-std=c++{cxx_standard}"]
    words += ["-Xcompiler=/EHsc" if msvc else "-Xcompiler=-fPIC", "-x", "cu", "-c", KERNEL_FILE, "-o", cubin]
    return Preflight(
        sources={CPP_FILE: CPP, KERNEL_FILE: KERNEL},
        trials=(
            Trial(
                argv=(cxx, *_cpp_words(cxx_flags, cxx_standard, plain, msvc)),
                output=plain,
                launcher=_list(launcher),
            ),
            Trial(argv=(nvcc, *words), output=cubin, launcher=_list(cuda_launcher)),
        ),
        cubin=cubin,
        archs=_codes(" ".join(words)),
        cuobjdump=cuobjdump,
    )


def _cuobjdump(decisions: Decisions) -> str:
    """Return the toolkit's cuobjdump, else the helper, else another's: it reads cubins of any version."""
    chosen = decisions.cuda.toolkit.toolkit
    helper = next((h for h in decisions.helpers.chosen if h.row.name == "cuobjdump"), None)
    if chosen and chosen.cuobjdump:
        return chosen.cuobjdump
    if helper is not None:
        return helper_check(decisions.question, helper)[0]
    return next((t.cuobjdump for t in decisions.question.cuda.toolkits if t.cuobjdump), "")


def _cpp_words(flags: tuple[str, ...], standard: int, output: str, msvc: bool) -> tuple[str, ...]:
    if msvc:  # knows nothing below C++14
        return ("/nologo", "/EHsc", *flags, f"/std:c++{max(standard, 14)}", f"/Fo{output}", "/c", CPP_FILE)
    return (*flags, f"-std=c++{standard}", "-fPIC", "-o", output, "-c", CPP_FILE)


def _gencode(entry: str) -> tuple[str, ...]:
    """Return the flags of one entry, as PyTorch's select_compute_arch.cmake makes them."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"no entry of TORCH_CUDA_ARCH_LIST: {entry}")
    number = f"{match[1]}{match[2]}{match[3]}"
    codes = [f"sm_{number}", *([f"compute_{number}"] if match[4] else [])]
    return tuple(word for code in codes for word in ("-gencode", f"arch=compute_{number},code={code}"))


def _codes(words: str) -> tuple[str, ...]:
    """Return what all these flags make code for; link-time code is not listed by any program."""
    named = [code for codes in _CODES.findall(words) for code in codes.split(",")]
    return tuple(dict.fromkeys(code for code in named if code.startswith(("sm_", "compute_"))))


def _list(launcher: str) -> tuple[str, ...]:
    """Return a launcher as CMake reads it: a list with semicolons."""
    return tuple(word for word in launcher.split(";") if word)
