#pragma once

#include <cstdint>

#include <c10/macros/Export.h>

namespace at {

// The threads a loop will use: 1 without OpenMP, whatever was requested.
TORCH_API int get_num_threads();

// What parallel_for calls: a function, and the body that it is for. Not std::function, whose header takes
// a quarter of the time of a compile.
struct LoopBody {
  void (*call)(const void* body, std::int64_t begin, std::int64_t end);
  const void* body;
};

TORCH_API void parallel_loop(std::int64_t size, std::int64_t grain, LoopBody body);

// Calls body(begin, end) for the parts of [0, size), in threads when size is worth it.
template <class Body>
void parallel_for(std::int64_t size, std::int64_t grain, const Body& body) {
  const auto call = [](const void* it, std::int64_t begin, std::int64_t end) {
    (*static_cast<const Body*>(it))(begin, end);
  };
  parallel_loop(size, grain, {call, &body});
}

}  // namespace at
