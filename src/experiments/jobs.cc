#include "experiments/jobs.h"

#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/execute.h"

#include <mutex>

namespace sotto::experiments {
namespace {

void run_job(Job& job, models::TaskDataCache& cache) {
  if (interrupted()) return;
  try {
    job.summary =
        run::execute(federation::Setup(job.spec, cache), {.folder = job.folder, .resume = true, .threads = 1});
  } catch (const UserError& error) {
    job.failure = error.what();
  }
}

}  // namespace

Job make_job(size_t cell, config::RunSpec spec, const fs::path& folder) {
  const fs::path run_folder = folder / spec.hash().substr(0, 16);
  return {.cell = cell, .spec = std::move(spec), .folder = run_folder};
}

void run_jobs(std::vector<Job>& jobs, const JobsOptions& options) {
  std::mutex mutex;
  const auto status = [&](const Job& job) {
    const std::lock_guard lock(mutex);
    return options.status && job.summary ? options.status(job) : std::string();
  };
  std::vector<Job*> open;
  for (Job& job : jobs) {
    if (fs::exists(job.folder)) job.summary = artifacts::RunReader(job.folder).summary();
    if (!job.summary) open.push_back(&job);
    status(job);
  }
  if (open.size() < jobs.size()) info("{} of {} runs are done already", jobs.size() - open.size(), jobs.size());
  models::TaskDataCache cache;
  Progress progress(options.title, static_cast<int64_t>(open.size()));
  parallel_in_order(
      static_cast<int64_t>(open.size()), options.threads,
      [&](int64_t item, int) {
        Job& job = *open[static_cast<size_t>(item)];
        run_job(job, cache);
        progress.advance(1, status(job));
      },
      [](int64_t) {});
}

}  // namespace sotto::experiments
