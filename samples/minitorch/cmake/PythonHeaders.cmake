# What the bindings are compiled with, and the name of an extension module. Our own declarations of the
# stable ABI (torch/csrc/abi3) unless Python.h is asked for, or a free-threaded Python needs it: with them
# the bindings compile in half of the time, and where there are no headers, which on Debian and Ubuntu are
# a package of their own (python3-dev).
find_package(Python COMPONENTS Interpreter REQUIRED)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
  OUTPUT_VARIABLE TORCH_EXTENSION_SUFFIX
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY)
if(TORCH_EXTENSION_SUFFIX MATCHES "[0-9]t[-.]")
  set(USE_PYTHON_HEADERS ON)
endif()
if(USE_PYTHON_HEADERS)
  find_package(Python COMPONENTS Interpreter REQUIRED OPTIONAL_COMPONENTS Development.Module)
endif()

if(NOT USE_PYTHON_HEADERS OR NOT Python_Development.Module_FOUND)
  message(STATUS "Python.h: our own declarations of the stable ABI (torch/csrc/abi3)")
  add_library(torch_python_abi3 INTERFACE)
  target_include_directories(torch_python_abi3 INTERFACE "${PROJECT_SOURCE_DIR}/torch/csrc/abi3")
  if(WIN32)  # where a module must link what it imports; a venv has no libs of its own
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c "import sys; print(sys.base_exec_prefix)"
      OUTPUT_VARIABLE base_prefix
      OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND_ERROR_IS_FATAL ANY)
    file(TO_CMAKE_PATH "${base_prefix}/libs" python_libs)
    find_library(TORCH_PYTHON3_LIBRARY python3 PATHS "${python_libs}" NO_DEFAULT_PATH REQUIRED)
    target_link_libraries(torch_python_abi3 INTERFACE "${TORCH_PYTHON3_LIBRARY}")
  endif()
  set(TORCH_PYTHON_API torch_python_abi3)
else()
  set(TORCH_PYTHON_API Python::Module)
endif()
