#pragma once

#include <ATen/Tensor.h>
#include <torch/csrc/PyRef.h>

namespace torch {

PyTypeObject* tensor_type();   // torch.Tensor
bool add_tensor_type(PyObject* module);

PyObject* wrap(at::Tensor value);
PyObject* wrap(bool value);
const at::Tensor& unwrap(PyObject* tensor);  // must be a torch.Tensor

}  // namespace torch
