// The device, as torch/cuda shows it. Compiled with USE_CUDA only.
#include <torch/csrc/Module.h>

#include <ATen/cuda/add.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Tensor.h>

namespace torch {
namespace {

PyObject* device_count(PyObject*, PyObject*) { return PyLong_FromLong(at::cuda::device_count()); }

// Known without a device, as in PyTorch.
PyObject* arch_flags(PyObject*, PyObject*) { return PyUnicode_FromString(TORCH_CUDA_ARCH_FLAGS); }

PyObject* add(PyObject*, PyObject* args) {
  PyObject *self, *other;
  if (!PyArg_ParseTuple(args, "O!O!", tensor_type(), &self, tensor_type(), &other)) return nullptr;
  return guarded([&] { return wrap(at::cuda::add(unwrap(self), unwrap(other))); });
}

}  // namespace

PyMethodDef cuda_functions[] = {
    {"_cuda_getDeviceCount", device_count, METH_NOARGS, nullptr},
    {"_cuda_getArchFlags", arch_flags, METH_NOARGS, nullptr},
    {"_cuda_add", add, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace torch
