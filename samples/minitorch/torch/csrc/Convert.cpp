// Nested Python lists to tensors and back.
#include <torch/csrc/Convert.h>

#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Tensor.h>

namespace torch {
namespace {

bool is_nested(PyObject* data) { return PyList_Check(data) || PyTuple_Check(data); }

// Follows the first element of each level; fill() then insists that the others agree.
at::Sizes shape_of(PyObject* data) {
  at::Sizes sizes;
  while (is_nested(data)) {
    sizes.push_back(PySequence_Fast_GET_SIZE(data));
    if (sizes.back() == 0) break;
    data = PySequence_Fast_GET_ITEM(data, 0);
  }
  return sizes;
}

double* fill(double* out, PyObject* data, const at::Sizes& sizes, std::size_t level) {
  if (level == sizes.size()) {
    *out = PyFloat_AsDouble(data);
    if (*out == -1.0 && PyErr_Occurred()) throw PythonError();
    return out + 1;
  }
  if (!is_nested(data) || PySequence_Fast_GET_SIZE(data) != sizes[level]) {
    PyErr_Format(PyExc_ValueError, "expected sequence of length %zd at dim %zu",
                 static_cast<Py_ssize_t>(sizes[level]), level);
    throw PythonError();
  }
  for (Py_ssize_t i = 0; i < sizes[level]; ++i)
    out = fill(out, PySequence_Fast_GET_ITEM(data, i), sizes, level + 1);
  return out;
}

PyRef nested(const double*& values, const at::Sizes& sizes, std::size_t level) {
  if (level == sizes.size()) return own(PyFloat_FromDouble(*values++));
  PyRef list = own(PyList_New(sizes[level]));
  for (Py_ssize_t i = 0; i < sizes[level]; ++i)
    PyList_SET_ITEM(list.get(), i, nested(values, sizes, level + 1).release());
  return list;
}

}  // namespace

at::Tensor tensor_from_nested(PyObject* data) { return tensor_from_nested(data, shape_of(data)); }

at::Tensor tensor_from_nested(PyObject* data, const at::Sizes& sizes) {
  at::Tensor result = at::Tensor::empty(sizes);
  fill(result.data(), data, result.sizes(), 0);
  return result;
}

PyRef nested_from_tensor(const at::Tensor& tensor) {
  const double* values = tensor.data();
  return nested(values, tensor.sizes(), 0);
}

PyRef tuple_from_sizes(const at::Sizes& sizes) {
  PyRef tuple = own(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, own(PyLong_FromLongLong(sizes[i])).release());
  return tuple;
}

}  // namespace torch
