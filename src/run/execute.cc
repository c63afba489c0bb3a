#include "run/execute.h"

#include "artifacts/ledger_mark.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "federation/home_terms.h"
#include "report/partition_file.h"
#include "report/partition_picture.h"
#include "run/partition_summary.h"

namespace sotto::run {
namespace {

// Before anything is written.
const fs::path& checked_folder(const federation::Setup& setup, const RunOptions& options) {
  std::string run;
  if (const fs::path file = artifacts::ledger_file(options.folder); options.resume && fs::exists(file)) {
    const privacy::Ledger ledger(file, privacy::Ledger::Mode::kRead);
    ledger.check_home(options.home);
    run = ledger.run_in_home();
  }
  if (options.home != nullptr) federation::require_home_allows(setup, *options.home, run);
  return options.folder;
}

}  // namespace

Run::Run(const federation::Setup& setup, const RunOptions& options)
    : setup_(setup),
      folder_(options.folder),
      directory_(checked_folder(setup_, options), setup_.spec(), options.resume),
      states_(setup_.spec().federation.state == methods::StateStorage::kDisk
                  ? federation::make_disk_store(directory_.state_folder())
                  : federation::make_memory_store(directory_.state_folder())) {
  if (options.home != nullptr) directory_.ledger().charge_to(*options.home, setup_.spec().method);
  const bool keeps_uploads = setup_.spec().record.uploads;
  const auto watch = [this, keeps_uploads, done = options.client_done](int64_t round, const federation::Reply& reply) {
    if (keeps_uploads && reply.upload) directory_.upload(round, reply.client, *reply.upload);
    if (done) done(round);
  };
  simulation_ = std::make_unique<transport::Simulation>(
      setup_, *states_, directory_.ledger(),
      transport::SimulationOptions{.threads = options.threads, .resume = directory_.resume_from(), .watcher = watch});
}

std::optional<federation::RoundRecord> Run::next_round() {
  if (stopped_) return std::nullopt;
  auto record = simulation_->next_round();
  if (!record) return record;
  directory_.round(*record);
  stopped_ = interrupted() && !finished();
  if (stopped_ || simulation_->checkpoint_due()) {
    states_->commit(record->round);
    directory_.checkpoint(simulation_->checkpoint());
  }
  return record;
}

nlohmann::json Run::finish() {
  SOTTO_INVARIANT(finished());
  nlohmann::json summary = directory_.finish();
  const report::PartitionSummary partition = summarise_partition(setup_);
  report::write_partition_picture(folder_ / "partition.png", partition);
  report::write_partition_file(folder_ / "partition.json", partition);
  return summary;
}

std::optional<nlohmann::json> execute(const federation::Setup& setup, const RunOptions& options) {
  Run run(setup, options);
  while (run.next_round()) {
  }
  if (!run.finished()) return std::nullopt;
  return run.finish();
}

}  // namespace sotto::run
