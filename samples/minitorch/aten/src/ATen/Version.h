#pragma once

#include <string>

namespace at {

std::string show_config();      // torch.__config__.show(), in PyTorch's own format
std::string cxx_flags();
std::string cuda_arch_flags();  // "sm_80 sm_90 compute_90"; empty without CUDA

}  // namespace at
