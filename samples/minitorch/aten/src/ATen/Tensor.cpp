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

void Sizes::push_back(std::int64_t size) {
  TORCH_CHECK(size_ < kMost, "a tensor has at most ", kMost, " dimensions");
  values_[size_++] = size;
}

bool Sizes::operator==(const Sizes& other) const {
  if (size_ != other.size_) return false;
  for (std::size_t i = 0; i < size_; ++i)
    if (values_[i] != other.values_[i]) return false;
  return true;
}

Tensor Tensor::empty(const Sizes& sizes) {
  const auto bytes = static_cast<std::size_t>(product(sizes)) * sizeof(double);
  return Tensor(sizes, c10::allocate(bytes));
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
