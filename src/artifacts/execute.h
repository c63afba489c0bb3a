// Runs a federation into a run directory.
#pragma once

#include "federation/loop.h"
#include "federation/setup.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <optional>

namespace sotto::artifacts {

struct ExecuteOptions {
  std::filesystem::path folder;
  bool resume = false;
  int threads = 1;
  federation::RunSink* watcher = nullptr;  // also told of every round, after it is on disk; may be null
  // Told of the run's ledger before the first round; it lives until the run ends.
  std::function<void(const privacy::Ledger&)> show_ledger = {};
};

// The summary of the finished run, or nothing if it was interrupted and can be resumed.
std::optional<nlohmann::json> execute(const federation::Setup& setup, const ExecuteOptions& options);

}  // namespace sotto::artifacts
