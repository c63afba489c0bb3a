#include "artifacts/prune.h"

#include "artifacts/find_runs.h"
#include "artifacts/run_directory.h"
#include "artifacts/run_lock.h"
#include "base/error.h"
#include "base/files.h"
#include "federation/state_store.h"

#include <fmt/format.h>

#include <string>

namespace sotto::artifacts {
namespace {

int64_t bytes_in(const fs::path& folder) {
  int64_t bytes = 0;
  if (!fs::exists(folder)) return bytes;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

int64_t discard(const fs::path& run, config::KeepStates keep) {
  const RunLock lock(run);
  const fs::path states = state_folder(run);
  const int64_t before = bytes_in(states);
  federation::discard_states(states, keep == config::KeepStates::kNone ? 0 : RunReader(run).spec().rounds);
  return before - bytes_in(states);
}

// What is in the way of one run is no reason to leave the others.
Pruned prune_run(const fs::path& run, config::KeepStates keep) {
  const auto left = [&](const std::string& why) { return Pruned{.run = run, .bytes = 0, .left_for = why}; };
  try {
    if (state_of(run) != RunState::kFinished) return left("it is not finished");
    return {.run = run, .bytes = discard(run, keep), .left_for = ""};
  } catch (const UserError& error) {
    return left(error.what());
  } catch (const fs::filesystem_error& error) {
    return left(fmt::format("{}: {}", error.path1().string(), error.code().message()));
  }
}

}  // namespace

std::vector<Pruned> prune(const fs::path& root, config::KeepStates keep) {
  std::vector<Pruned> results;
  for (const fs::path& run : find_runs(root)) {
    results.push_back(prune_run(run == "." ? root : root / run, keep));
  }
  return results;
}

}  // namespace sotto::artifacts
