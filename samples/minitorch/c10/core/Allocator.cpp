#include <c10/core/Allocator.h>

#include <new>

namespace c10 {
namespace {
constexpr std::align_val_t kCacheLine{64};
}

DataPtr allocate(std::size_t bytes) {
  return {::operator new(bytes, kCacheLine), [](void* p) { ::operator delete(p, kCacheLine); }};
}

}  // namespace c10
