#include "artifacts/environment.h"

#include "base/parallel.h"
#include "base/text.h"

#include <torch/version.h>

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include <fstream>
#include <string>

namespace sotto::artifacts {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

// The value behind `key` in a file of "key: value" or key="value" lines, or "unknown".
std::string entry(const char* file, const std::string& key, char separator) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find(separator);
    if (end == std::string::npos || trim(line.substr(0, end)) != key) continue;
    std::string value = trim(line.substr(end + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return value;
  }
  return "unknown";
}

}  // namespace

nlohmann::json environment() {
  struct utsname system = {};
  ::uname(&system);
  return {{"sotto", SOTTO_VERSION},
          {"compiler", kCompiler},
          {"libtorch", TORCH_VERSION},
          {"system", entry("/etc/os-release", "PRETTY_NAME", '=')},
          {"kernel", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"processor", entry("/proc/cpuinfo", "model name", ':')},
          {"cores", available_threads()}};
}

}  // namespace sotto::artifacts
