#pragma once

// What a library shows to others. On Windows that has to be said twice: the library that is being
// built exports, whoever includes the header later imports. Each library defines its own
// *_BUILD_MAIN_LIB (in its CMakeLists.txt); the names are PyTorch's.
#ifdef _WIN32
#define C10_EXPORT __declspec(dllexport)
#define C10_IMPORT __declspec(dllimport)
#else
#define C10_EXPORT __attribute__((visibility("default")))
#define C10_IMPORT C10_EXPORT
#endif

#ifdef C10_BUILD_MAIN_LIB
#define C10_API C10_EXPORT
#else
#define C10_API C10_IMPORT
#endif

#ifdef CAFFE2_BUILD_MAIN_LIB  // torch_cpu; its name is older than torch_cpu
#define TORCH_API C10_EXPORT
#else
#define TORCH_API C10_IMPORT
#endif

#ifdef TORCH_CUDA_BUILD_MAIN_LIB
#define TORCH_CUDA_CU_API C10_EXPORT
#else
#define TORCH_CUDA_CU_API C10_IMPORT
#endif

#ifdef THP_BUILD_MAIN_LIB  // torch_python
#define TORCH_PYTHON_API C10_EXPORT
#else
#define TORCH_PYTHON_API C10_IMPORT
#endif
