// Many runs side by side, one thread each: what `sweep` and `fit` share.
#pragma once

#include "config/run_spec.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sotto::experiments {

// One run and what became of it.
struct Job {
  size_t cell = 0;  // of the caller's grid
  config::RunSpec spec;
  std::filesystem::path folder;
  std::optional<nlohmann::json> summary = std::nullopt;  // absent: not finished
  std::string failure = {};                              // the UserError that stopped it
};

// A job whose run directory is named after its settings, so that the same settings find their run again.
Job make_job(size_t cell, config::RunSpec spec, const std::filesystem::path& folder);

struct JobsOptions {
  std::string title;  // of the progress bar
  int threads = 1;
  // What to show behind the bar once a job is done; called for one job at a time, finished ones of earlier processes
  // included. May be empty.
  std::function<std::string(const Job&)> status = {};
};

// Runs what is not finished yet; a run that was killed half-way is continued. After Ctrl-C no further job is begun and
// those under way stop where they can be continued.
void run_jobs(std::vector<Job>& jobs, const JobsOptions& options);

}  // namespace sotto::experiments
