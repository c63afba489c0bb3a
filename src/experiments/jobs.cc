#include "experiments/jobs.h"

#include "artifacts/run_directory.h"
#include "artifacts/run_lock.h"
#include "artifacts/shared_work.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "run/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

namespace sotto::experiments {
namespace {

constexpr auto kPause = std::chrono::milliseconds(500);  // between looks at what others do
constexpr int64_t kLooksPerTry = 60;

void run_job(Job& job, models::TaskDataCache& cache) {
  if (interrupted()) return;
  try {
    job.summary =
        run::execute(federation::Setup(job.spec, cache), {.folder = job.folder, .resume = true, .threads = 1});
  } catch (const artifacts::RunBusy&) {
    job.elsewhere = true;
  } catch (const UserError& error) {
    job.failure = error.what();
  }
}

// Takes what another process has finished.
bool is_done(Job& job) {
  if (!job.summary && fs::exists(job.folder)) job.summary = artifacts::RunReader(job.folder).summary();
  if (job.summary) job.elsewhere = false;
  return job.summary.has_value();
}

// Short, and of characters that no shell and no file system minds.
std::string as_file_name(const std::string& label) {
  constexpr size_t kMost = 60;
  std::string name = label.substr(0, kMost);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && std::string_view("._=+-").find(c) == std::string_view::npos) c = '_';
  }
  return name;
}

int64_t count_elsewhere(const std::vector<Job*>& jobs) {
  return std::count_if(jobs.begin(), jobs.end(), [](const Job* job) { return job->elsewhere; });
}

}  // namespace

Job make_job(size_t cell, config::RunSpec spec, const fs::path& folder, const std::string& label) {
  const std::string hash = spec.hash().substr(0, 16);
  fs::path run_folder = folder / hash;
  if (!label.empty() && !fs::exists(run_folder)) {
    run_folder = folder / fmt::format("{}-seed{}-{}", as_file_name(label), spec.seed, hash);
  }
  return {.cell = cell, .spec = std::move(spec), .folder = run_folder};
}

void run_jobs(std::vector<Job>& jobs, const JobsOptions& options) {
  std::mutex mutex;
  const auto status = [&](const Job& job) {
    const std::lock_guard lock(mutex);
    return options.status && job.summary ? options.status(job) : std::string();
  };
  std::vector<Job*> open;
  std::vector<Job*> copies;  // of jobs that are open
  std::set<fs::path> folders;
  for (Job& job : jobs) {
    if (!is_done(job)) (folders.insert(job.folder).second ? open : copies).push_back(&job);
    status(job);
  }
  const size_t done = jobs.size() - open.size() - copies.size();
  if (done > 0) info("{} of {} runs are done already", done, jobs.size());
  models::TaskDataCache cache;
  Progress progress(options.title, static_cast<int64_t>(open.size()));
  // `claim`: what somebody seems to be at is not even tried.
  const auto work_on = [&](const std::vector<Job*>& part, bool claim) {
    parallel_in_order(
        static_cast<int64_t>(part.size()), options.threads,
        [&](int64_t item, int) {
          Job& job = *part[static_cast<size_t>(item)];
          if (!is_done(job)) {
            job.elsewhere = !claim && artifacts::lock_holder(job.folder).has_value();
            if (!job.elsewhere) run_job(job, cache);
          }
          if (!job.elsewhere) progress.advance(1, status(job));
        },
        [](int64_t) {});
  };
  work_on(open, false);
  // What was left to others: finished meanwhile, or left by them too. To try is dear, so that it is done now and then.
  for (int64_t look = 0; count_elsewhere(open) > 0 && !interrupted(); ++look) {
    std::vector<Job*> left;
    std::copy_if(open.begin(), open.end(), std::back_inserter(left), [](const Job* job) { return job->elsewhere; });
    work_on(left, look % kLooksPerTry == 0);
    if (!options.waits_for_others) break;
    if (look == 0 && count_elsewhere(open) > 0) info("waiting for {} runs of other processes", count_elsewhere(open));
    if (count_elsewhere(open) > 0) std::this_thread::sleep_for(kPause);
  }
  for (Job* copy : copies) {
    is_done(*copy);
    status(*copy);
  }
  if (interrupted()) return;
  const int64_t others = count_elsewhere(open);
  if (others > 0) {
    throw artifacts::OthersAtWork(fmt::format(
        "{} of {} runs are other processes' work; once they are done, the same command goes on", others, jobs.size()));
  }
  if (launch().rank > 0) throw artifacts::OthersAtWork("rank 0 goes on");
}

}  // namespace sotto::experiments
