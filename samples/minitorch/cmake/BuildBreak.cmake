# BUILD_BREAK=aten/src/ATen/matmul.cpp: that file gets a line the compiler must refuse. It exists to
# show what a failed build looks like; PyTorch has no such thing.
get_filename_component(BUILD_BREAK_FILE "${BUILD_BREAK}" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}")
configure_file(cmake/build_break.h.in build_break.h)
set(options -include "${PROJECT_BINARY_DIR}/build_break.h")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT BUILD_BREAK MATCHES "\\.cu$")
  list(APPEND options -fno-diagnostics-show-caret)  # there is no line of the file to show
elseif(MSVC)
  set(options "/FI${PROJECT_BINARY_DIR}/build_break.h")
endif()

set(compiled "")
foreach(folder IN ITEMS c10 aten torch test)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${PROJECT_SOURCE_DIR}/${folder}")
      list(APPEND compiled "${source}")
      if(source STREQUAL BUILD_BREAK_FILE)
        set_property(SOURCE "${source}" TARGET_DIRECTORY ${target}
          APPEND PROPERTY COMPILE_OPTIONS "${options}")
      endif()
    endforeach()
  endforeach()
endforeach()

if(NOT BUILD_BREAK_FILE IN_LIST compiled)
  message(FATAL_ERROR "BUILD_BREAK=${BUILD_BREAK}: this build compiles no such file")
endif()
message(STATUS "BUILD_BREAK: ${BUILD_BREAK} will not compile")
