#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cstdlib>

namespace at {

bool allclose(const Tensor& self, const Tensor& other, double rtol, double atol) {
  TORCH_CHECK(self.sizes() == other.sizes(), "the shapes of the operands differ");
  for (std::int64_t i = 0; i < self.numel(); ++i) {
    const double a = self.data()[i], b = other.data()[i];
    // Equal first: it is the only way infinities agree (their difference is NaN). NaN never does.
    const bool close = b - b == 0 && std::abs(a - b) <= atol + rtol * std::abs(b);
    if (a != b && !close) return false;
  }
  return true;
}

}  // namespace at
