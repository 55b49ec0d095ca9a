#pragma once

namespace c10 {

// The number of threads the user asked for; 0 means "not asked". What is really used is decided
// where the loops are, in ATen/Parallel.cpp.
int requested_threads();
void request_threads(int count);

}  // namespace c10
