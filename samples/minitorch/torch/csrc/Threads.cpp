#include <torch/csrc/Module.h>

#include <ATen/Parallel.h>
#include <c10/core/Threads.h>
#include <torch/csrc/Exceptions.h>

namespace torch {
namespace {

PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(at::get_num_threads()); }

PyObject* set_num_threads(PyObject*, PyObject* number) {
  return guarded([&]() -> PyObject* {
    const long count = PyLong_AsLong(number);
    if (count == -1 && PyErr_Occurred()) throw PythonError();
    c10::request_threads(static_cast<int>(count));
    Py_RETURN_NONE;
  });
}

}  // namespace

PyMethodDef thread_functions[] = {
    {"get_num_threads", get_num_threads, METH_NOARGS, "the threads a loop will use"},
    {"set_num_threads", set_num_threads, METH_O, "ask for a number of threads"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace torch
