// torch._C. The module itself is a stub (stub.c) that calls torch_module() here.
#include <torch/csrc/Module.h>

#include <c10/macros/Export.h>
#include <c10/macros/cmake_macros.h>
#include <torch/csrc/Convert.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Numpy.h>
#include <torch/csrc/Ops.h>
#include <torch/csrc/Tensor.h>

namespace torch {
namespace {

at::Sizes sizes_from_tuple(PyObject* tuple) {
  at::Sizes sizes;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
  if (PyErr_Occurred()) throw PythonError();
  return sizes;
}

PyObject* tensor(PyObject*, PyObject* args) {
  PyObject *data, *sizes = nullptr;
  if (!PyArg_ParseTuple(args, "O|O!:tensor", &data, &PyTuple_Type, &sizes)) return nullptr;
  return guarded([&] {
    return wrap(sizes ? tensor_from_nested(data, sizes_from_tuple(sizes)) : tensor_from_nested(data));
  });
}

PyMethodDef functions[] = {{"tensor", tensor, METH_VARARGS, "tensor(data[, shape])"},
                           {nullptr, nullptr, 0, nullptr}};

PyMethodDef* const tables[] = {
    functions,
    op_functions,
    config_functions,
    thread_functions,
    numpy_functions,
#ifdef C10_USE_CUDA
    cuda_functions,
#endif
#ifdef C10_USE_DISTRIBUTED
    distributed_functions,
#endif
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "torch._C", "minitorch's native half", -1,
                          nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace torch

extern "C" TORCH_PYTHON_API PyObject* torch_module() {
  torch::PyRef module(PyModule_Create(&torch::definition));
  if (!module || !torch::add_tensor_type(module.get())) return nullptr;
  for (PyMethodDef* table : torch::tables)
    if (PyModule_AddFunctions(module.get(), table) != 0) return nullptr;
  return module.release();
}
