#include <c10/core/ScalarType.h>

namespace c10 {

const char* name(ScalarType) { return "torch.float64"; }

const char* buffer_format(ScalarType) { return "d"; }

std::size_t element_size(ScalarType) { return sizeof(double); }

}  // namespace c10
