#include <ATen/Functions.h>
#include <c10/util/Exception.h>

namespace at {

// A copy, not PyTorch's view: tensors are always contiguous here.
Tensor t(const Tensor& self) {
  TORCH_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
  if (self.dim() < 2) return self;
  const std::int64_t rows = self.sizes()[0], columns = self.sizes()[1];
  Tensor result = Tensor::empty({columns, rows});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      result.data()[j * rows + i] = self.data()[i * columns + j];
  return result;
}

}  // namespace at
