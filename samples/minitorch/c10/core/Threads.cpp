#include <c10/core/Threads.h>

#include <c10/util/Exception.h>

namespace c10 {
namespace {
int requested = 0;  // guarded by the lock of Python's interpreter
}

int requested_threads() { return requested; }

void request_threads(int count) {
  TORCH_CHECK(count > 0, "set_num_threads expects a positive number, got ", count);
  requested = count;
}

}  // namespace c10
