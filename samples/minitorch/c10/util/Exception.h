#pragma once

#include <exception>
#include <initializer_list>

#include <c10/macros/Export.h>
#include <tinyfmt/piece.h>

namespace c10 {

// A caller's mistake; the Python side turns it into a RuntimeError.
class C10_API Error : public std::exception {
 public:
  explicit Error(std::initializer_list<tinyfmt::Piece> message);
  const char* what() const noexcept override;

 private:
  char message_[256];
};

[[noreturn]] C10_API void fail(std::initializer_list<tinyfmt::Piece> message);

}  // namespace c10

#define TORCH_CHECK(condition, ...)               \
  do {                                            \
    if (!(condition)) ::c10::fail({__VA_ARGS__}); \
  } while (false)
