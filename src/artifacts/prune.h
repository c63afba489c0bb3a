// Clients' states of finished runs take the most room, and only personal models need them.
#pragma once

#include "config/run_spec.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sotto::artifacts {

struct Pruned {
  std::filesystem::path run;
  int64_t bytes = 0;     // that are free now
  std::string left_for;  // why nothing was removed; empty if it was looked at
};

// Removes what `keep` does not name of the states of all finished runs in and below `root`. Runs that are not finished,
// and those that another process is at, keep everything: they need it to go on. One that cannot be read or written to is
// left as well, and says why.
std::vector<Pruned> prune(const std::filesystem::path& root, config::KeepStates keep);

}  // namespace sotto::artifacts
