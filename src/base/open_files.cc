#include "base/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace sotto {

int64_t raise_open_files_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  const rlim_t now = ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
  return static_cast<int64_t>(std::min<rlim_t>(now, std::numeric_limits<int64_t>::max()));
}

}  // namespace sotto
