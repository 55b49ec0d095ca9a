#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

namespace at {

Tensor matmul(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.dim() == 2 && other.dim() == 2, "matmul expects two matrices, got ", self.dim(),
              "D and ", other.dim(), "D");
  const std::int64_t rows = self.sizes()[0], inner = self.sizes()[1], columns = other.sizes()[1];
  TORCH_CHECK(inner == other.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (", rows, "x",
              inner, " and ", other.sizes()[0], "x", columns, ")");
  Tensor result = Tensor::empty({rows, columns});
  const double* a = self.data();
  const double* b = other.data();
  double* out = result.data();
  parallel_for(rows, 32, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * columns; i < end * columns; ++i) out[i] = 0.0;
    // i, k, j: the inner loop walks both matrices along their rows.
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = 0; k < inner; ++k)
        for (std::int64_t j = 0; j < columns; ++j)
          out[i * columns + j] += a[i * inner + k] * b[k * columns + j];
  });
  return result;
}

}  // namespace at
