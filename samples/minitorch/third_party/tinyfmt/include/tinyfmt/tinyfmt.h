#pragma once

#include <cstdio>
#include <string>
#include <type_traits>

#include <tinyassert/tinyassert.h>

namespace tinyfmt {

inline void append(std::string& out, const std::string& text) { out += text; }

inline void append(std::string& out, const char* text) {
  TINYASSERT(text != nullptr);
  out += text;
}

template <class Number, class = std::enable_if_t<std::is_arithmetic<Number>::value>>
void append(std::string& out, Number value) {
  if constexpr (std::is_floating_point<Number>::value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%g", static_cast<double>(value));
    out += digits;
  } else {
    out += std::to_string(value);
  }
}

// str("row ", 3, " of ", n): no format string, so no way to get one wrong.
template <class... Args>
std::string str(const Args&... args) {
  std::string out;
  (append(out, args), ...);
  return out;
}

}  // namespace tinyfmt
