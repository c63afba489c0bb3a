// Running another program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::data {

struct CommandResult {
  int exit_code = 0;   // 127 if the program is not there
  std::string output;  // what it printed, both streams
};

// Runs arguments[0], found along $PATH, in `folder` and waits for it. No shell is involved.
CommandResult run_command(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace sotto::data
