#pragma once

#include <cstddef>

#include <c10/macros/Export.h>

namespace c10 {

enum class ScalarType { Double };

C10_API const char* name(ScalarType type);           // as Python prints it
C10_API const char* buffer_format(ScalarType type);  // as the struct module spells it
C10_API std::size_t element_size(ScalarType type);

}  // namespace c10
