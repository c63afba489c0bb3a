// Many runs side by side, one thread each: what `sweep` and `fit` share.
//
// Several processes may share them too, on this machine or on others that see the same folder: each run is done by
// whoever locks its folder first. Where mpirun started them, rank 0 waits for the others and goes on.
#pragma once

#include "artifacts/run_summary.h"
#include "base/launch.h"
#include "config/run_spec.h"

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
  std::optional<artifacts::RunSummary> summary = std::nullopt;  // absent: not finished
  std::string failure = {};                                     // the UserError that stopped it
  bool elsewhere = false;                                       // another process is at it
};

// A job whose run directory is named after its settings, so that the same settings find their run again: HASH, or
// LABEL-seedS-HASH for people who look into the folder. One that an earlier version named HASH is found as well.
Job make_job(size_t cell, config::RunSpec spec, const std::filesystem::path& folder, const std::string& label = "");

struct JobsOptions {
  std::string title;  // of the progress bar
  int threads = 1;
  // What to show behind the bar once a job is done; called for one job at a time, finished ones of earlier processes
  // included. May be empty.
  std::function<std::string(const Job&)> status = {};
  // Whether to wait for jobs that other processes are at, and to take over those that they leave.
  bool waits_for_others = launch().leads();
};

// Runs what is not finished yet, and what several jobs have in common once. A run that was killed half-way is continued,
// one that another process is at is left to it. After Ctrl-C no further job is begun and those under way stop where they
// can be continued. OthersAtWork (artifacts/shared_work.h) if this process has done its part, and is not the one that
// goes on.
void run_jobs(std::vector<Job>& jobs, const JobsOptions& options);

}  // namespace sotto::experiments
