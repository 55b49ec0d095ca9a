#pragma once

#include <string>

#include <c10/macros/Export.h>

namespace at {

TORCH_API std::string openmp_version();  // empty without OpenMP
TORCH_API std::string parallel_info();   // torch.__config__.parallel_info(), in PyTorch's own format

}  // namespace at
