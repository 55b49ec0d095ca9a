#pragma once

#include <exception>
#include <string>
#include <utility>

#include <c10/macros/Export.h>
#include <tinyfmt/tinyfmt.h>

namespace c10 {

// A caller's mistake; the Python side turns it into a RuntimeError.
class C10_API Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override;

 private:
  std::string message_;
};

[[noreturn]] C10_API void fail(std::string message);

}  // namespace c10

#define TORCH_CHECK(condition, ...)                               \
  do {                                                            \
    if (!(condition)) ::c10::fail(::tinyfmt::str(__VA_ARGS__));   \
  } while (false)
