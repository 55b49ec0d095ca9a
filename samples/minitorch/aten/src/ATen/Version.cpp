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

const char* setting(const char* name) {
  for (const BuildSetting& each : kBuildSettings)
    if (std::strcmp(each.name, name) == 0) return each.value;
  return "";
}

// Into one text: what would be made on the way takes most of the time of this file's compile.
void add_line(std::string& out, const char* text, const char* more = "") {
  for (const char* part : {"  - ", text, more, "\n"}) out.append(part);
}

}  // namespace

std::string show_config() {
  std::string out = "PyTorch built with:\n";
  add_line(out, compiler().c_str());
  add_line(out, tinyfmt::str({"C++ Version: ", cxx_version()}).c_str());
  const std::string openmp = openmp_version();
  if (!openmp.empty()) add_line(out, openmp.c_str());
  if (*setting("CUDA_VERSION")) {
    add_line(out, "CUDA Runtime ", setting("CUDA_VERSION"));
    add_line(out, "NVCC architecture flags: ", kNvccArchFlags);
  }
  std::string settings;
  for (const BuildSetting& each : kBuildSettings)
    if (*each.value)
      for (const char* part : {each.name, "=", each.value, ", "}) settings.append(part);
  add_line(out, "Build settings: ", settings.c_str());
  return out;
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
