#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>

namespace torch {

struct Decref {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};

using PyRef = std::unique_ptr<PyObject, Decref>;  // a reference we own

}  // namespace torch
