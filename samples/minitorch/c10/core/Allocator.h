#pragma once

#include <cstddef>
#include <utility>

#include <c10/macros/Export.h>

namespace c10 {

// Memory together with the way to give it back, so that a tensor may borrow memory it did not
// allocate (from_numpy does).
// Copies share it, and the last one gives it back. Not std::shared_ptr: with C++20 libstdc++ 12 takes half
// of the time of a compile for <memory>.
class C10_API DataPtr {
 public:
  using Deleter = void (*)(void* context);

  DataPtr(void* data, void* context, Deleter deleter);
  DataPtr(const DataPtr& other) noexcept;
  DataPtr(DataPtr&& other) noexcept : data_(other.data_), owner_(other.owner_) { other.owner_ = nullptr; }
  DataPtr& operator=(DataPtr other) noexcept {
    std::swap(data_, other.data_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~DataPtr();

  void* get() const { return data_; }

 private:
  struct Owner;
  void* data_;
  Owner* owner_;
};

C10_API DataPtr allocate(std::size_t bytes);

}  // namespace c10
