// The only file that knows OpenMP.
#include <ATen/Parallel.h>

#include <cstdlib>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef _WIN32
#include <thread>
#else
#include <unistd.h>  // <thread> is half of the time of a compile
#endif

#include <ATen/ParallelInfo.h>
#include <c10/core/Threads.h>
#include <tinyfmt/tinyfmt.h>

namespace at {
namespace {

#ifdef _OPENMP
const char* release_name() {
  switch (_OPENMP) {
    case 200203: return "2.0";
    case 201107: return "3.1";
    case 201307: return "4.0";
    case 201511: return "4.5";
    case 201811: return "5.0";
    case 202011: return "5.1";
    default: return "unknown";
  }
}
#endif

unsigned hardware_concurrency() {
#ifdef _WIN32
  return std::thread::hardware_concurrency();
#else
  return static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN));  // as std::thread of libstdc++ and libc++
#endif
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return tinyfmt::str({"\t", name, " : ", value ? value : "[not set]", "\n"});
}

}  // namespace

int get_num_threads() {
#ifdef _OPENMP
  const int requested = c10::requested_threads();
  return requested ? requested : omp_get_max_threads();
#else
  return 1;
#endif
}

void parallel_loop(std::int64_t size, std::int64_t grain, LoopBody body) {
#ifdef _OPENMP
  if (size > grain && get_num_threads() > 1) {
    const int parts = get_num_threads();
#pragma omp parallel for num_threads(parts) schedule(static)
    for (int i = 0; i < parts; ++i) body.call(body.body, size * i / parts, size * (i + 1) / parts);
    return;
  }
#else
  static_cast<void>(grain);
#endif
  body.call(body.body, 0, size);
}

std::string openmp_version() {
#ifdef _OPENMP
  return tinyfmt::str({"OpenMP ", _OPENMP, " (a.k.a. OpenMP ", release_name(), ")"});
#else
  return "";
#endif
}

std::string parallel_info() {
  std::string out = "ATen/Parallel:\n";
  out += tinyfmt::str({"\tat::get_num_threads() : ", get_num_threads(), "\n"});
#ifdef _OPENMP
  out += openmp_version();
  out += tinyfmt::str({"\n\tomp_get_max_threads() : ", omp_get_max_threads(), "\n"});
#else
  out += "OpenMP not found\n";
#endif
  out += tinyfmt::str({"std::thread::hardware_concurrency() : ", hardware_concurrency(), "\n"});
  out += "Environment variables:\n" + environment("OMP_NUM_THREADS") + environment("MKL_NUM_THREADS");
#ifdef _OPENMP
  out += "ATen parallel backend: OpenMP\n";
#else
  out += "ATen parallel backend: none, one thread\n";
#endif
  return out;
}

}  // namespace at
