// Compiled with USE_DISTRIBUTED only. Its presence is all that torch.distributed looks at.
#include <torch/csrc/Module.h>

namespace torch {
namespace {

PyObject* c10d_init(PyObject*, PyObject*) { Py_RETURN_TRUE; }

}  // namespace

PyMethodDef distributed_functions[] = {
    {"_c10d_init", c10d_init, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace torch
