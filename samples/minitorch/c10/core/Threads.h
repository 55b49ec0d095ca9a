#pragma once

#include <c10/macros/Export.h>

namespace c10 {

// The number of threads the user asked for; 0 means "not asked". What is really used is decided
// where the loops are, in ATen/Parallel.cpp.
C10_API int requested_threads();
C10_API void request_threads(int count);

}  // namespace c10
