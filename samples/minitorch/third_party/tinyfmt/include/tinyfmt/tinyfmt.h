#pragma once

#include <initializer_list>
#include <string>

#include <tinyfmt/piece.h>

namespace tinyfmt {

// str({"row ", 3, " of ", n}): no format string, so no way to get one wrong.
inline std::string str(std::initializer_list<Piece> pieces) {
  std::string out;
  for (const Piece& each : pieces) {
    if (each.text) {
      out += each.text;
    } else {
      out += std::to_string(each.number);
    }
  }
  return out;
}

}  // namespace tinyfmt
