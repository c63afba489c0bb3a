#include "artifacts/execute.h"

#include "artifacts/run_directory.h"

namespace sotto::artifacts {
namespace {

// Passes everything on to the run directory first, then to whoever watches.
class TeeSink : public federation::RunSink {
 public:
  TeeSink(RunDirectory& directory, RunSink* watcher) : directory_(directory), watcher_(watcher) {}

  void client_done(int64_t round, int64_t client) override {
    if (watcher_ != nullptr) watcher_->client_done(round, client);
  }
  void upload(int64_t round, int64_t client, const privacy::Upload& upload) override {
    directory_.upload(round, client, upload);
    if (watcher_ != nullptr) watcher_->upload(round, client, upload);
  }
  void round(const federation::RoundRecord& record) override {
    directory_.round(record);
    if (watcher_ != nullptr) watcher_->round(record);
  }
  void checkpoint(const federation::Checkpoint& checkpoint) override {
    directory_.checkpoint(checkpoint);
    if (watcher_ != nullptr) watcher_->checkpoint(checkpoint);
  }

 private:
  RunDirectory& directory_;
  RunSink* watcher_;
};

}  // namespace

std::optional<nlohmann::json> execute(const federation::Setup& setup, const ExecuteOptions& options) {
  RunDirectory directory(options.folder, setup.spec, options.resume);
  privacy::Ledger ledger(directory.ledger_file());
  if (options.show_ledger) options.show_ledger(ledger);
  const auto states = setup.spec.federation.state == "disk" ? federation::make_disk_store(directory.state_folder())
                                                            : federation::make_memory_store(directory.state_folder());
  TeeSink sink(directory, options.watcher);
  const auto outcome = federation::run_rounds(setup, {*states, ledger, sink, options.threads}, directory.resume_from());
  if (outcome == federation::Outcome::kInterrupted) return std::nullopt;
  return directory.finish(ledger);
}

}  // namespace sotto::artifacts
