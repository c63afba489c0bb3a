#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace sotto {

void internal_bug(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "sotto: internal error: %s does not hold (%s:%d). Please report this.\n", condition, file, line);
  std::abort();
}

}  // namespace sotto
