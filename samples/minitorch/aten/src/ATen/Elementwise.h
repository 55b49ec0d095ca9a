#pragma once

#include <ATen/Parallel.h>
#include <ATen/Tensor.h>
#include <c10/util/Exception.h>

namespace at {

// One loop for every operation on pairs of elements. A 0-d operand is repeated; there is no other
// broadcasting here.
template <class Op>
Tensor elementwise(const Tensor& a, const Tensor& b, Op op) {
  const std::int64_t step_a = a.dim() ? 1 : 0;
  const std::int64_t step_b = b.dim() ? 1 : 0;
  TORCH_CHECK(!step_a || !step_b || a.sizes() == b.sizes(), "the shapes of the operands differ");
  Tensor result = Tensor::empty(step_a ? a.sizes() : b.sizes());
  const double* x = a.data();
  const double* y = b.data();
  double* out = result.data();
  parallel_for(result.numel(), 1 << 15, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = op(x[i * step_a], y[i * step_b]);
  });
  return result;
}

}  // namespace at
