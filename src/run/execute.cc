#include "run/execute.h"

#include "artifacts/ledger_mark.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "federation/home_terms.h"
#include "report/partition_file.h"
#include "report/partition_picture.h"
#include "run/extension.h"
#include "run/partition_summary.h"
#include "transport/over_ranks.h"

#include <chrono>
#include <thread>

namespace sotto::run {
namespace {

// Before anything is written.
const fs::path& checked_folder(const federation::Setup& setup, const RunOptions& options) {
  if (options.resume && !artifacts::is_free(options.folder)) require_extendable(setup, options.folder);
  std::string run;
  if (const fs::path file = artifacts::ledger_file(options.folder); options.resume && fs::exists(file)) {
    const privacy::Ledger ledger(file, privacy::Ledger::Mode::kRead);
    ledger.check_home(options.home);
    run = ledger.run_in_home();
  }
  if (options.home != nullptr) federation::require_home_allows(setup, *options.home, run);
  return options.folder;
}

// Other ranks wait to be told something: what cannot be begun or continued is over for them too.
artifacts::RunDirectory open_directory(const federation::Setup& setup, const RunOptions& options) {
  try {
    return {checked_folder(setup, options), setup.spec(), options.resume};
  } catch (const UserError&) {
    if (options.ranks != nullptr) transport::dismiss(*options.ranks);
    throw;
  }
}

// Of those clients that live on this rank.
std::unique_ptr<federation::StateStore> make_states(const federation::Setup& setup, const fs::path& folder,
                                                    const transport::Ranks* ranks) {
  const federation::StatePart part =
      ranks == nullptr ? federation::StatePart{} : federation::StatePart{ranks->rank(), ranks->size()};
  return setup.spec().federation.state == methods::StateStorage::kDisk ? federation::make_disk_store(folder, part)
                                                                       : federation::make_memory_store(folder, part);
}

// Rank 0 has made the folder. Over a network it may be seen a little later.
void require_shared(const fs::path& folder) {
  constexpr auto kPatience = std::chrono::seconds(15);
  for (const auto begin = std::chrono::steady_clock::now(); artifacts::is_free(folder);) {
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      fail_user("the run directory {} of rank 0 is not there: all ranks need one folder that they share",
                folder.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

Run::Run(const federation::Setup& setup, const RunOptions& options)
    : setup_(setup),
      folder_(options.folder),
      directory_(open_directory(setup_, options)),
      states_(make_states(setup_, directory_.state_folder(), options.ranks)) {
  SOTTO_INVARIANT(options.home == nullptr || options.ranks == nullptr);
  if (options.home != nullptr) directory_.ledger().charge_to(*options.home, setup_.spec().method);
  const bool keeps_uploads = setup_.spec().record.uploads;
  const auto watch = [this, keeps_uploads, done = options.client_done](int64_t round, const federation::Reply& reply) {
    if (keeps_uploads && reply.upload) directory_.upload(round, reply.client, *reply.upload);
    if (done) done(round);
  };
  simulation_ = std::make_unique<transport::Simulation>(
      setup_, *states_, directory_.ledger(),
      transport::SimulationOptions{
          .threads = options.threads, .resume = directory_.resume_from(), .watcher = watch, .ranks = options.ranks});
}

std::optional<federation::RoundRecord> Run::next_round() {
  if (stopped_) return std::nullopt;
  auto record = simulation_->next_round();
  if (!record) return record;
  directory_.round(*record);
  stopped_ = interrupted() && !finished();
  if (stopped_ || simulation_->checkpoint_due()) {
    simulation_->commit_states();
    directory_.checkpoint(simulation_->checkpoint());
  }
  return record;
}

artifacts::RunSummary Run::finish() {
  SOTTO_INVARIANT(finished());
  artifacts::RunSummary summary = directory_.finish();
  const bool none = setup_.spec().record.keep_states == config::KeepStates::kNone;
  federation::discard_states(directory_.state_folder(), none ? 0 : setup_.spec().rounds);
  const report::PartitionSummary partition = summarise_partition(setup_);
  report::write_partition_picture(folder_ / "partition.png", partition);
  report::write_partition_file(folder_ / "partition.json", partition);
  return summary;
}

void help(const federation::Setup& setup, const fs::path& folder, transport::Ranks& ranks, int threads) {
  const auto make = [&] {
    require_shared(folder);
    return make_states(setup, artifacts::state_folder(folder), &ranks);
  };
  transport::work_for_rank_0(setup, make, ranks, threads);
}

std::optional<artifacts::RunSummary> execute(const federation::Setup& setup, const RunOptions& options) {
  Run run(setup, options);
  while (run.next_round()) {
  }
  if (!run.finished()) return std::nullopt;
  return run.finish();
}

}  // namespace sotto::run
