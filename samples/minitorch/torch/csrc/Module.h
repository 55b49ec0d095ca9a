#pragma once

#include <torch/csrc/PyRef.h>

namespace torch {

// One table per file; Module.cpp puts those of this build into torch._C.
extern PyMethodDef config_functions[];
extern PyMethodDef thread_functions[];
extern PyMethodDef cuda_functions[];
extern PyMethodDef distributed_functions[];

}  // namespace torch
