// Which run directories there are, and what becomes of them. Only looks: takes no locks and writes nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::artifacts {

enum class RunState { kRunning, kFinished, kStopped };

// running, finished, stopped.
std::string to_string(RunState state);

// Whether some process holds the folder's lock, and writes there.
bool is_locked(const std::filesystem::path& run);
RunState state_of(const std::filesystem::path& run);

// The run directories in and below `root`, as paths relative to it ("." for root itself), sorted. Symbolic links are
// not followed and folders that may not be read are passed over. No such folder is a UserError.
std::vector<std::filesystem::path> find_runs(const std::filesystem::path& root);

}  // namespace sotto::artifacts
