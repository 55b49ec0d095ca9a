# The environment's wishes become cache entries: BUILD_*, USE_*, CMAKE_* and a few more names
# (tools/forwarded_env.py has the rule). An entry that exists is left alone, so a variable changed
# after the first configure has no effect until build/CMakeCache.txt is gone. That is PyTorch 2.14's
# behaviour, and a trap a build tool must know.

if(NOT DEFINED Python_EXECUTABLE)
  find_program(Python_EXECUTABLE NAMES python3 python REQUIRED)
endif()

# CMake cannot list the environment. Names are all it asks Python for: they need no quoting.
execute_process(
  COMMAND "${Python_EXECUTABLE}" "${CMAKE_CURRENT_LIST_DIR}/../tools/forwarded_env.py"
  OUTPUT_VARIABLE forwarded_names
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "tools/forwarded_env.py failed: ${failed}")
endif()

string(REGEX REPLACE "\r?\n" ";" forwarded_names "${forwarded_names}")
foreach(name IN LISTS forwarded_names)
  if(NOT DEFINED ${name})
    set(${name} "$ENV{${name}}" CACHE STRING "From the environment")
  endif()
endforeach()
