#include "base/fault_points.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

namespace sotto {
namespace {

struct Target {
  std::string name;
  int visits = 1;
};

Target read_target() {
  const char* value = std::getenv("SOTTO_KILL_AT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (value == nullptr) return {};
  const char* colon = std::strrchr(value, ':');
  if (colon == nullptr) return {value, 1};
  return {std::string(value, colon), std::atoi(colon + 1)};
}

}  // namespace

void fault_point(const char* name) {
  static const Target target = read_target();
  static std::atomic<int> visits = 0;
  if (target.name.empty() || target.name != name) return;
  if (++visits == target.visits) std::raise(SIGKILL);
}

}  // namespace sotto
