/* All of torch._C: the rest is in libtorch_python, which C++ programs can link without Python's
   naming of extension modules. */
#include <Python.h>

extern PyObject* torch_module(void);

PyMODINIT_FUNC PyInit__C(void) { return torch_module(); }
