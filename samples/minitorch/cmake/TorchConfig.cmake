# find_package(Torch): the target `torch` and PyTorch's variables for it.
#   TORCH_INCLUDE_DIRS  TORCH_LIBRARIES  TORCH_INSTALL_PREFIX
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TORCH_INCLUDE_DIRS "${TORCH_INSTALL_PREFIX}/include")

add_library(torch INTERFACE IMPORTED)
foreach(name IN ITEMS torch_cpu c10)
  find_library(${name}_LIBRARY ${name} PATHS "${TORCH_INSTALL_PREFIX}/lib" NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(torch INTERFACE "${${name}_LIBRARY}")
endforeach()
target_include_directories(torch INTERFACE "${TORCH_INCLUDE_DIRS}")
target_compile_features(torch INTERFACE cxx_std_17)

set(TORCH_LIBRARIES torch)
set(Torch_FOUND TRUE)
