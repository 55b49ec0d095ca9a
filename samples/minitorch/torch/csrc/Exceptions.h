#pragma once

#include <exception>

#include <torch/csrc/PyRef.h>

namespace torch {

// "The interpreter already holds an error": unwinds C++ without a message of its own.
struct PythonError : std::exception {};

// The owned result of a C-API call, or PythonError when it failed.
PyRef own(PyObject* result);

void translate_exception() noexcept;  // the C++ exception in flight becomes a Python one

// Every function Python calls goes through here: no C++ exception may reach the interpreter.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

}  // namespace torch
