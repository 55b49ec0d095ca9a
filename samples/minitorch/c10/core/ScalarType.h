#pragma once

#include <cstddef>

namespace c10 {

enum class ScalarType { Double };

const char* name(ScalarType type);           // as Python prints it
const char* buffer_format(ScalarType type);  // as the struct module spells it
std::size_t element_size(ScalarType type);

}  // namespace c10
