#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Export.h>

namespace at {

// The shape of a tensor. Not std::vector, whose header takes a third of the time of most compiles here.
class TORCH_API Sizes {
 public:
  static constexpr std::size_t kMost = 64;  // as many as NumPy and PyTorch allow

  Sizes() = default;
  Sizes(std::initializer_list<std::int64_t> sizes) : Sizes(sizes.begin(), sizes.end()) {}
  template <class Iterator>
  Sizes(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }

  void push_back(std::int64_t size);
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + size_; }
  std::int64_t back() const { return values_[size_ - 1]; }
  std::int64_t operator[](std::size_t dim) const { return values_[dim]; }
  std::size_t size() const { return size_; }
  bool operator==(const Sizes& other) const;

 private:
  std::size_t size_ = 0;
  std::int64_t values_[kMost];
};

// Contiguous float64 values and their shape. Copies share the values, as PyTorch's do.
class TORCH_API Tensor {
 public:
  Tensor(const Sizes& sizes, c10::DataPtr data) : sizes_(sizes), data_(std::move(data)) {}
  static Tensor empty(const Sizes& sizes);
  static Tensor scalar(double value);

  const Sizes& sizes() const { return sizes_; }
  std::int64_t dim() const { return static_cast<std::int64_t>(sizes_.size()); }
  std::int64_t numel() const;
  c10::ScalarType scalar_type() const { return c10::ScalarType::Double; }
  double* data() const { return static_cast<double*>(data_.get()); }
  double item() const;

 private:
  Sizes sizes_;
  c10::DataPtr data_;
};

}  // namespace at
