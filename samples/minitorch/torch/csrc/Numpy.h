#pragma once

#include <torch/csrc/PyRef.h>

namespace torch {

// Memory is shared through the buffer protocol, so NumPy's own C-API is not needed to build.
PyObject* tensor_to_numpy(PyObject* self, PyObject*);
int tensor_get_buffer(PyObject* self, Py_buffer* view, int flags);
void tensor_release_buffer(PyObject* self, Py_buffer* view);

extern PyMethodDef numpy_functions[];

}  // namespace torch
