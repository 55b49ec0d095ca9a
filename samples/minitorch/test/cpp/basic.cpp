// The libraries without Python: does the result of the operations hold?
#include <cstdio>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

namespace {

int failures = 0;

void expect(bool held, const char* what) {
  std::printf("%s  %s\n", held ? "ok  " : "FAIL", what);
  failures += !held;
}

bool rejects_bad_shapes(const at::Tensor& matrix) {
  try {
    at::matmul(matrix, at::Tensor::empty({3, 3}));
  } catch (const c10::Error&) {
    return true;
  }
  return false;
}

}  // namespace

int main() {
  at::Tensor a = at::Tensor::empty({2, 2});
  for (int i = 0; i < 4; ++i) a.data()[i] = i + 1;
  expect(at::sum(a).item() == 10, "sum");
  expect(at::allclose(at::add(a, a), at::mul(a, at::Tensor::scalar(2))), "a + a == 2 * a");
  expect(at::sum(at::matmul(a, at::t(a))).item() == 52, "matmul, t");
  expect(at::allclose(at::relu(a), a), "relu");
  expect(rejects_bad_shapes(a), "an error crosses the libraries");
  expect(at::get_num_threads() >= 1, "threads");
  return failures != 0;
}
