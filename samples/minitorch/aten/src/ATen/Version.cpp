#include <ATen/Version.h>

#include <cstring>

#include <ATen/ParallelInfo.h>
#include <caffe2/core/macros.h>
#include <tinyfmt/tinyfmt.h>

namespace at {
namespace {

std::string compiler() {
#if defined(__clang__)
  return tinyfmt::str({"clang ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__});
#elif defined(__GNUC__)
  return tinyfmt::str({"GCC ", __GNUC__, ".", __GNUC_MINOR__});
#elif defined(_MSC_FULL_VER)
  return tinyfmt::str({"MSVC ", _MSC_FULL_VER});
#else
  return "an unknown compiler";
#endif
}

long cxx_version() {
#if defined(_MSVC_LANG)
  return _MSVC_LANG;
#else
  return __cplusplus;
#endif
}

std::string setting(const char* name) {
  for (const BuildSetting& each : kBuildSettings)
    if (std::strcmp(each.name, name) == 0) return each.value;
  return "";
}

std::string line(const std::string& text) { return "  - " + text + "\n"; }

}  // namespace

std::string show_config() {
  std::string out = "PyTorch built with:\n";
  out += line(compiler());
  out += line(tinyfmt::str({"C++ Version: ", cxx_version()}));
  if (!openmp_version().empty()) out += line(openmp_version());
  if (!setting("CUDA_VERSION").empty()) {
    out += line("CUDA Runtime " + setting("CUDA_VERSION"));
    out += line(tinyfmt::str({"NVCC architecture flags: ", kNvccArchFlags}));
  }
  std::string settings;
  for (const BuildSetting& each : kBuildSettings)
    if (*each.value) settings += tinyfmt::str({each.name, "=", each.value, ", "});
  return out + line("Build settings: " + settings);
}

std::string cxx_flags() { return setting("CXX_FLAGS"); }

std::string cuda_arch_flags() {
  std::string out;
  const std::string flags = kNvccArchFlags;  // -gencode;arch=compute_80,code=sm_80;...
  for (std::size_t i = flags.find("code="); i != std::string::npos; i = flags.find("code=", i)) {
    i += std::strlen("code=");
    if (!out.empty()) out += ' ';
    out += flags.substr(i, flags.find(';', i) - i);
  }
  return out;
}

}  // namespace at
