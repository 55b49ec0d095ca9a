#include <torch/csrc/Exceptions.h>

#include <new>

#include <c10/util/Exception.h>

namespace torch {

PyRef own(PyObject* result) {
  if (!result) throw PythonError();
  return PyRef(result);
}

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const c10::Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_SystemError, error.what());
  }
}

}  // namespace torch
