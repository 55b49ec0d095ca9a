// torch.__config__
#include <torch/csrc/Module.h>

#include <ATen/ParallelInfo.h>
#include <ATen/Version.h>

namespace torch {
namespace {

template <std::string (*text)()>
PyObject* as_str(PyObject*, PyObject*) {
  return PyUnicode_FromString(text().c_str());
}

}  // namespace

PyMethodDef config_functions[] = {
    {"_show_config", as_str<at::show_config>, METH_NOARGS, nullptr},
    {"_cxx_flags", as_str<at::cxx_flags>, METH_NOARGS, nullptr},
    {"_parallel_info", as_str<at::parallel_info>, METH_NOARGS, nullptr},
    {"_cuda_getArchFlags", as_str<at::cuda_arch_flags>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace torch
