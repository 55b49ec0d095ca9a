#include <c10/util/Exception.h>

#include <cstdio>

#include <tinyfmt/tinyfmt.h>

namespace c10 {

Error::Error(std::initializer_list<tinyfmt::Piece> message) {
  std::snprintf(message_, sizeof message_, "%s", tinyfmt::str(message).c_str());
}

// Out of line, so that the type lives in one library and can be caught in all of them.
const char* Error::what() const noexcept { return message_; }

void fail(std::initializer_list<tinyfmt::Piece> message) { throw Error(message); }

}  // namespace c10
