#include <ATen/Tensor.h>

#include <c10/util/Exception.h>

namespace at {
namespace {

std::int64_t product(const Sizes& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t size : sizes) n *= size;
  return n;
}

}  // namespace

Tensor Tensor::empty(Sizes sizes) {
  const auto bytes = static_cast<std::size_t>(product(sizes)) * sizeof(double);
  return Tensor(std::move(sizes), c10::allocate(bytes));
}

Tensor Tensor::scalar(double value) {
  Tensor result = empty({});
  *result.data() = value;
  return result;
}

std::int64_t Tensor::numel() const { return product(sizes_); }

double Tensor::item() const {
  TORCH_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
  return *data();
}

}  // namespace at
