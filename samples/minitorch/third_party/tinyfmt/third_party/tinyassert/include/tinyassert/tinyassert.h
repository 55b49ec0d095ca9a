#pragma once

#include <cstdio>
#include <cstdlib>

// Unlike assert(), checked in release builds too.
#define TINYASSERT(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);      \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
