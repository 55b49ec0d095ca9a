#include <c10/core/Allocator.h>

#include <new>

namespace c10 {
namespace {
constexpr std::align_val_t kCacheLine{64};
}

struct DataPtr::Owner {
  void* context;
  Deleter deleter;
  long copies = 1;  // guarded by the lock of Python's interpreter: the threads of a loop copy no tensor
};

DataPtr::DataPtr(void* data, void* context, Deleter deleter) : data_(data), owner_(nullptr) {
  try {
    owner_ = new Owner{context, deleter};
  } catch (...) {
    deleter(context);
    throw;
  }
}

DataPtr::DataPtr(const DataPtr& other) noexcept : data_(other.data_), owner_(other.owner_) {
  if (owner_) ++owner_->copies;
}

DataPtr::~DataPtr() {
  if (!owner_ || --owner_->copies) return;
  owner_->deleter(owner_->context);
  delete owner_;
}

DataPtr allocate(std::size_t bytes) {
  void* data = ::operator new(bytes, kCacheLine);
  return {data, data, [](void* p) { ::operator delete(p, kCacheLine); }};
}

}  // namespace c10
