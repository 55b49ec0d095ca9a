"""What a linker is tried on before a build: a library and a program, in a second or two.

Debug information, an exception that crosses the library's border, a vtable and a thread-local across it:
what linkers get wrong when they do not fit the compiler, its runtime or the flags (`-flto` for one).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from packaging.version import Version

from torchbuild_tasks.features.helpers.choose import helper_check
from torchbuild_tasks.model import Freshness, LinkerPlan, LinkTrial, Preflight, Trial
from torchbuild_tasks.plan.compiler import MSVC_LIKE
from torchbuild_tasks.plan.cuda.variables import nvcc_of
from torchbuild_tasks.plan.decisions import Decisions
from torchbuild_tasks.text.words import flag_words
from torchbuild_tasks.values import replace

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


# ---------------- what is compiled before a build, so that a compiler that cannot is known in seconds


_ENTRY: Final = re.compile(r"(\d+)\.(\d)([a-z]?)(\+PTX)?")
_CODES: Final = re.compile(r"\bcode=\[?([\w,]+)")
# The first nvcc with -forward-unknown-to-host-compiler, which CMake passes to it.
FORWARDS = Version("10.2")


def choose_preflight(decisions: Decisions, freshness: Freshness) -> Preflight | None:
    """Two small files with exactly the planned compilers and flags.

    None without CUDA, with --no-preflight, and where the last build with these inputs went well.
    """
    question, compilers, variables = decisions.question, decisions.compilers, decisions.variables
    if decisions.toolkit.choice is None or compilers.cxx is None or decisions.archs.choice is None:
        return None
    if question.given("no_preflight") or freshness.needs == "nothing":
        return None
    tool = compilers.tool
    nvcc = variables.get("CUDA_NVCC_EXECUTABLE") or variables.get("CUDACXX")
    cxx, *options = compilers.command
    return plan_preflight(
        cxx=cxx,
        cxx_flags=(*options, *flag_words(variables.get("CXXFLAGS") or variables.get("CFLAGS", ""))),
        nvcc=nvcc or nvcc_of(question, decisions.toolkit),
        host=variables.get("CUDAHOSTCXX", ""),
        nvcc_flags=flag_words(variables.get("TORCH_NVCC_FLAGS", "")),
        archs=tuple(map(str, decisions.archs.archs)),
        launcher=variables.get("CMAKE_CXX_COMPILER_LAUNCHER", ""),
        cuda_launcher=variables.get("CMAKE_CUDA_COMPILER_LAUNCHER", ""),
        cuobjdump=_cuobjdump(decisions),
        cxx_standard=question.row.cxx,
        msvc=bool(tool and tool.name in MSVC_LIKE),
        forwards=decisions.toolkit.version is None or decisions.toolkit.version >= FORWARDS,
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
        nvcc: the CUDA compiler; `nvcc_flags` are TORCH_NVCC_FLAGS.
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
    """The toolkit's own, else the helper, else that of another toolkit; it reads cubins of any version."""
    chosen = decisions.toolkit.toolkit
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
    """The flags of one entry, as PyTorch's select_compute_arch.cmake makes them."""
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise ValueError(f"no entry of TORCH_CUDA_ARCH_LIST: {entry}")
    number = f"{match[1]}{match[2]}{match[3]}"
    codes = [f"sm_{number}", *([f"compute_{number}"] if match[4] else [])]
    return tuple(word for code in codes for word in ("-gencode", f"arch=compute_{number},code={code}"))


def _codes(words: str) -> tuple[str, ...]:
    """What these flags make code for, the user's own too; link-time code is not listed by any program."""
    named = [code for codes in _CODES.findall(words) for code in codes.split(",")]
    return tuple(dict.fromkeys(code for code in named if code.startswith(("sm_", "compute_"))))


def _list(launcher: str) -> tuple[str, ...]:
    """A launcher as CMake reads it: a list with semicolons."""
    return tuple(word for word in launcher.split(";") if word)


# ---------------- reads what a pre-flight's programs said: an object's architectures, a cache's answer


# What makes each cache compile anew and keep the result: the first pass has to compile really.
ANEW: Final[Mapping[str, str]] = {"ccache": "CCACHE_RECACHE", "sccache": "SCCACHE_RECACHE"}
CCACHE_LOG: Final = "CCACHE_LOGFILE"

_LISTED: Final = re.compile(r"^(ELF|PTX) file +\d+: .*\bsm_(\w+)\.(?:cubin|ptx)\s*$", re.MULTILINE)
# 3.x: "Result: cache hit (direct)"; 4.x: "Result: direct_cache_hit", and lines about its storage.
_RESULT: Final = re.compile(r"\] Result: (?!local_|remote_|primary_|secondary_)(.+)$", re.MULTILINE)
_HIT: Final = re.compile(r"(direct|preprocessed)_cache_hit|cache hit \(")


class Answer(NamedTuple):
    """Whether a cache had the object; `reason` is why not, in the cache's own words."""

    hit: bool
    reason: str = ""


# ---------------------------------------------------------------- architectures


def listed_archs(listing: str) -> tuple[str, ...]:
    """What `cuobjdump --list-elf --list-ptx` lists: "sm_86" for machine code, "compute_90" for PTX."""
    found = _LISTED.findall(listing)
    kinds = {"ELF": "sm", "PTX": "compute"}
    named = [f"{prefix}_{name}" for each, prefix in kinds.items() for kind, name in found if kind == each]
    return tuple(dict.fromkeys(named))


def same_archs(planned: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """Whether an object holds what was planned, and nothing else.

    Machine code of sm_120f is listed as sm_120; cuobjdump 12.4 also lists sm_90a of nvcc 13.0 as sm_90.
    """
    return all(_in(code, found) for code in planned) and set(found) <= {
        each for code in planned for each in (code, _bare(code))
    }


def _in(code: str, found: tuple[str, ...]) -> bool:
    return code in found or _bare(code) in found


def _bare(code: str) -> str:
    return code.rstrip("af") if code.startswith("sm_") else code


# ---------------------------------------------------------------- caches


def cache_of(launcher: tuple[str, ...]) -> str:
    """The cache that a launcher is, if its hits can be told: ccache, sccache or ""."""
    program = re.split(r"[/\\]", launcher[0])[-1].lower() if launcher else ""
    name = program.removesuffix(".exe")
    return name if name in ANEW else ""


def ccache_answer(log: str) -> Answer:
    """What ccache's log of one command says."""
    results = _RESULT.findall(log)
    if any(_HIT.match(result) for result in results):
        return Answer(hit=True)
    return Answer(hit=False, reason=", ".join(dict.fromkeys(results)) or "its log says nothing")


def sccache_answer(before: str, after: str) -> Answer:
    """What two answers of `sccache --show-stats --stats-format json` say of the command in between.

    One nvcc command is several entries in that cache, and all of them must be there.
    """
    try:
        old, new = (json.loads(text)["stats"] for text in (before, after))
        hits, misses = (_count(new, name) - _count(old, name) for name in ("cache_hits", "cache_misses"))
        refused = {k: v for k, v in new["not_cached"].items() if v > old["not_cached"].get(k, 0)}
    except (ValueError, TypeError, KeyError, AttributeError):
        return Answer(hit=False, reason="its statistics cannot be read")
    if hits and not misses and not refused:
        return Answer(hit=True)
    reason = f"{hits} hits and {misses} misses" if hits or misses else "it was not asked for anything"
    return Answer(hit=False, reason=", ".join(refused) or reason)


def _count(stats: Mapping[str, Mapping[str, Mapping[str, int]]], name: str) -> int:
    return sum(stats[name]["counts"].values())


# ----------------


LIBRARY: Final = "libtorchbuild_trial.so"
PROGRAM: Final = "trial"
HEADER: Final = """\
#pragma once
#include <string>
struct Shape {
  virtual ~Shape();
  virtual int corners() const;
};
extern thread_local int calls;
int half(int number);
"""
LIBRARY_SOURCE: Final = """\
#include "trial.h"
#include <stdexcept>
Shape::~Shape() {}
int Shape::corners() const { return 0; }
thread_local int calls = 0;
int half(int number) {
  ++calls;
  if (number % 2) throw std::invalid_argument("odd: " + std::to_string(number));
  return number / 2;
}
"""
PROGRAM_SOURCE: Final = """\
#include "trial.h"
#include <stdexcept>
struct Square : Shape {
  int corners() const override { return half(8); }
};
int main() {
  Square square;
  const Shape& shape = square;
  try {
    half(3);
  } catch (const std::invalid_argument& error) {
    return shape.corners() == 4 && calls == 2 && error.what() == std::string("odd: 3") ? 0 : 2;
  }
  return 1;
}
"""


def plan_linker(decisions: Decisions, freshness: Freshness) -> LinkerPlan | None:
    """The linker to use; with its trial where the last build has not proved it, unless --no-preflight."""
    question, compilers, flags = decisions.question, decisions.compilers, decisions.variables
    plan, previous = decisions.linker.plan, question.facts.tree.previous
    if plan is None or compilers.cxx is None:
        return None
    proved = previous is not None and previous.result == "ok" and freshness.needs in ("nothing", "build")
    if proved or question.given("no_preflight"):
        return plan
    compiler = flag_words(flags.get("CXXFLAGS") or flags.get("CFLAGS", ""))
    linker = flag_words(flags.get("LDFLAGS", ""))
    words = (*compilers.command, *compiler, f"-std=c++{question.row.cxx}", "-g", "-fPIC", *linker)
    mark = next((row.mark for row in question.catalog.linker if row.name == plan.name), "")
    trial = LinkTrial(
        sources={"trial.h": HEADER, "library.cpp": LIBRARY_SOURCE, "program.cpp": PROGRAM_SOURCE},
        commands=(
            (*words, "-shared", "-o", LIBRARY, "library.cpp"),
            (*words, "-o", PROGRAM, "program.cpp", f"./{LIBRARY}"),
        ),
        run=(f"./{PROGRAM}",),
        library=LIBRARY,
        mark=mark,
    )
    return replace(plan, trial=trial)
