#include <c10/util/Exception.h>

namespace c10 {

// Out of line, so that the type lives in one library and can be caught in all of them.
const char* Error::what() const noexcept { return message_.c_str(); }

void fail(std::string message) { throw Error(std::move(message)); }

}  // namespace c10
