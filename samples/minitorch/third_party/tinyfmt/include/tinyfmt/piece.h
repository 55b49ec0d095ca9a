#pragma once

#include <type_traits>

#include <tinyassert/tinyassert.h>

namespace tinyfmt {

// A piece of a message: text or a number. Without <string>, which is half of the time of a compile.
struct Piece {
  Piece(const char* text) : text(text), number(0) { TINYASSERT(text != nullptr); }
  template <class Number, class = std::enable_if_t<std::is_integral<Number>::value>>
  Piece(Number number) : text(nullptr), number(static_cast<long long>(number)) {}

  const char* text;
  long long number;
};

}  // namespace tinyfmt
