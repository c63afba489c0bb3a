#include "artifacts/find_runs.h"

#include "artifacts/run_lock.h"
#include "base/error.h"
#include "base/files.h"

#include <algorithm>

namespace sotto::artifacts {
namespace {

bool is_run(const fs::path& folder) {
  std::error_code error;
  // A config alone may be anything; a run has its checkpoints' folder from the first moment.
  return fs::is_regular_file(fs::symlink_status(folder / "config.toml", error)) &&
         fs::is_directory(fs::symlink_status(folder / "checkpoints", error));
}

}  // namespace

std::string to_string(RunState state) {
  switch (state) {
    case RunState::kRunning:
      return "running";
    case RunState::kFinished:
      return "finished";
    case RunState::kStopped:
      break;
  }
  return "stopped";
}

bool is_locked(const fs::path& run) {
  return lock_holder(run).has_value();
}

RunState state_of(const fs::path& run) {
  std::error_code error;
  if (fs::exists(run / "summary.json", error)) return RunState::kFinished;
  return is_locked(run) ? RunState::kRunning : RunState::kStopped;
}

std::vector<fs::path> find_runs(const fs::path& root) {
  std::error_code error;
  if (!fs::is_directory(root, error)) fail_user("there is no folder {}", root.string());
  std::vector<fs::path> runs;
  if (is_run(root)) return {"."};
  auto entry = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!fs::is_directory(entry->symlink_status(error)) || !is_run(entry->path())) continue;
    runs.push_back(entry->path().lexically_relative(root));
    entry.disable_recursion_pending();
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

}  // namespace sotto::artifacts
