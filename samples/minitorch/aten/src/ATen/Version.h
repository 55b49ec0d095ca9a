#pragma once

#include <string>

#include <c10/macros/Export.h>

namespace at {

TORCH_API std::string show_config();      // torch.__config__.show(), in PyTorch's own format
TORCH_API std::string cxx_flags();
TORCH_API std::string cuda_arch_flags();  // "sm_80 sm_90 compute_90"; empty without CUDA

}  // namespace at
