#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace torch {

// A reference we own. Not std::unique_ptr, for what c10/core/Allocator.h says of <memory>.
class PyRef {
 public:
  explicit PyRef(PyObject* object) : object_(object) {}
  PyRef(PyRef&& other) noexcept : object_(other.release()) {}
  PyRef& operator=(PyRef&&) = delete;
  ~PyRef() {
    if (object_) Py_DECREF(object_);
  }

  explicit operator bool() const { return object_ != nullptr; }
  PyObject* get() const { return object_; }
  PyObject* release() {
    PyObject* object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  PyObject* object_;
};

}  // namespace torch
