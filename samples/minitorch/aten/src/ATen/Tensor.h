#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/core/ScalarType.h>
#include <c10/macros/Export.h>

namespace at {

using Sizes = std::vector<std::int64_t>;

// Contiguous float64 values and their shape. Copies share the values, as PyTorch's do.
class TORCH_API Tensor {
 public:
  Tensor(Sizes sizes, c10::DataPtr data) : sizes_(std::move(sizes)), data_(std::move(data)) {}
  static Tensor empty(Sizes sizes);
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
