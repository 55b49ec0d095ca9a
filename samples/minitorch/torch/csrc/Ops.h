#pragma once

#include <torch/csrc/PyRef.h>

namespace torch {

// Written by tools/codegen.py: each operation as a function of torch and a method of Tensor.
extern PyMethodDef op_functions[];
extern PyMethodDef op_methods[];

inline PyCFunction with_keywords(PyCFunctionWithKeywords function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// tensor.op(...) is op(tensor, ...).
template <PyCFunctionWithKeywords op>
PyObject* as_method(PyObject* self, PyObject* args, PyObject* kwargs) {
  const PyRef first(PyTuple_Pack(1, self));
  if (!first) return nullptr;
  const PyRef all(PySequence_Concat(first.get(), args));
  return all ? op(nullptr, all.get(), kwargs) : nullptr;
}

}  // namespace torch
