#pragma once

#include <ATen/Tensor.h>
#include <c10/macros/Export.h>

namespace at::cuda {

TORCH_CUDA_CU_API int device_count();  // 0 without a driver or a device
// Computed on the device, returned on the host.
TORCH_CUDA_CU_API Tensor add(const Tensor& self, const Tensor& other);

}  // namespace at::cuda
