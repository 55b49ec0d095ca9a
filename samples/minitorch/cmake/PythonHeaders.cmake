# Python::Module and the name of an extension module, also on a machine without Python's headers:
# on Debian and Ubuntu they are a package of their own (python3-dev).
find_package(Python COMPONENTS Interpreter REQUIRED OPTIONAL_COMPONENTS Development.Module)

if(NOT USE_PYTHON_HEADERS OR NOT Python_Development.Module_FOUND)
  message(STATUS "Python.h: our own declarations of the stable ABI (torch/csrc/abi3)")
  add_library(torch_python_abi3 INTERFACE)
  target_include_directories(torch_python_abi3 INTERFACE "${PROJECT_SOURCE_DIR}/torch/csrc/abi3")
  set(TORCH_PYTHON_API torch_python_abi3)
else()
  set(TORCH_PYTHON_API Python::Module)
endif()

execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
  OUTPUT_VARIABLE TORCH_EXTENSION_SUFFIX
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
