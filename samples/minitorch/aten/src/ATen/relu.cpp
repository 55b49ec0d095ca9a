#include <ATen/Elementwise.h>
#include <ATen/Functions.h>

namespace at {

Tensor relu(const Tensor& self) {
  // Written so that NaN stays NaN, as in PyTorch.
  return elementwise(self, Tensor::scalar(0), [](double a, double zero) { return a < zero ? zero : a; });
}

}  // namespace at
