#include "artifacts/prune.h"

#include "artifacts/find_runs.h"
#include "artifacts/run_directory.h"
#include "artifacts/run_lock.h"
#include "base/files.h"
#include "federation/state_store.h"

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

Pruned prune_run(const fs::path& run, config::KeepStates keep) {
  Pruned result{.run = run, .bytes = 0, .left_for = ""};
  if (state_of(run) != RunState::kFinished) {
    result.left_for = "it is not finished";
    return result;
  }
  try {
    const RunLock lock(run);
    const fs::path states = state_folder(run);
    const int64_t before = bytes_in(states);
    federation::discard_states(states, keep == config::KeepStates::kNone ? 0 : RunReader(run).spec().rounds);
    result.bytes = before - bytes_in(states);
  } catch (const RunBusy& busy) {
    result.left_for = busy.what();
  }
  return result;
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
