#pragma once

#include <cstddef>
#include <memory>

#include <c10/macros/Export.h>

namespace c10 {

// Memory together with the way to give it back, so that a tensor may borrow memory it did not
// allocate (from_numpy does).
using DataPtr = std::shared_ptr<void>;

C10_API DataPtr allocate(std::size_t bytes);

}  // namespace c10
