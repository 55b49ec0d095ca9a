#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <c10/macros/Export.h>

namespace at {

// The threads a loop will use: 1 without OpenMP, whatever was requested.
TORCH_API int get_num_threads();

// Calls body(begin, end) for the parts of [0, size), in threads when size is worth it.
TORCH_API void parallel_for(std::int64_t size, std::int64_t grain,
                            const std::function<void(std::int64_t, std::int64_t)>& body);

TORCH_API std::string openmp_version();  // empty without OpenMP
TORCH_API std::string parallel_info();

}  // namespace at
