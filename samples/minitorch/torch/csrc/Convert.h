#pragma once

#include <ATen/Tensor.h>
#include <torch/csrc/PyRef.h>

namespace torch {

at::Tensor tensor_from_nested(PyObject* data);
at::Tensor tensor_from_nested(PyObject* data, const at::Sizes& sizes);  // when data cannot show its shape
PyRef nested_from_tensor(const at::Tensor& tensor);
PyRef tuple_from_sizes(const at::Sizes& sizes);

}  // namespace torch
