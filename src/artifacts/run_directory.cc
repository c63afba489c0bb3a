#include "artifacts/run_directory.h"

#include "artifacts/checkpoint_file.h"
#include "artifacts/environment.h"
#include "artifacts/ledger_mark.h"
#include "artifacts/metrics.h"
#include "artifacts/run_lock.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"
#include "base/launch.h"
#include "base/text.h"
#include "config/load.h"
#include "io/safetensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

constexpr const char* kConfig = "config.toml";
constexpr const char* kEnvironment = "environment.json";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kLedgerHead = "ledger.head";
constexpr const char* kCheckpoints = "checkpoints";

// Complete lines of metrics.jsonl.
std::vector<json> recorded_rounds(const fs::path& folder) {
  const fs::path file = folder / kMetrics;
  std::vector<json> lines;
  if (!fs::exists(file)) return lines;
  std::vector<std::string> texts = split(read_file(file), '\n');
  texts.pop_back();  // what stands behind the last line feed is not complete
  for (const std::string& text : texts) {
    json value = json::parse(text, nullptr, false);
    if (!value.is_object()) {
      fail_user("{}, line {}, is damaged; remove the file and what is in {}, resume, and the run begins again",
                file.string(), lines.size() + 1, (folder / kCheckpoints).string());
    }
    lines.push_back(std::move(value));
  }
  return lines;
}

// How many rounds summary.json speaks of; 0 while there is none. What else it says is for read_summary to check.
int64_t finished_rounds(const fs::path& folder) {
  if (!fs::exists(summary_file(folder))) return 0;
  const json summary = json::parse(read_file(summary_file(folder)), nullptr, false);
  return summary.is_object() && summary.contains("rounds") && summary["rounds"].is_number_integer()
             ? summary["rounds"].get<int64_t>()
             : 0;
}

[[noreturn]] void refuse_other_settings(const fs::path& folder) {
  fail_user("{} was begun with other settings; use another --out (of a finished run, rounds alone may grow)",
            folder.string());
}

}  // namespace

bool can_extend(const config::RunSpec& begun, const config::RunSpec& spec, int64_t rounds_done) {
  return begun.rounds < spec.rounds && rounds_done == begun.rounds &&
         begun.with_rounds(spec.rounds).hash() == spec.hash();
}

bool is_free(const fs::path& folder) {
  return !fs::exists(folder) || (fs::is_directory(folder) && fs::is_empty(folder));
}

void require_new(const fs::path& folder) {
  if (is_free(folder)) return;
  if (!fs::exists(folder / kConfig)) {
    fail_user("{} exists already and is not a run directory; choose another --out", folder.string());
  }
  fail_user("{} exists already; add --resume to continue it, or choose another --out", folder.string());
}

fs::path state_folder(const fs::path& folder) {
  return folder / "state";
}

RunReader::RunReader(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::exists(folder_ / kConfig)) {
    fail_user("{} is not a run directory: it has no {}", folder_.string(), kConfig);
  }
}

config::RunSpec RunReader::spec() const {
  if (trim(config_toml()).empty()) {  // which would mean defaults
    fail_user("{} is empty: this is no run directory, or its settings are lost", (folder_ / kConfig).string());
  }
  return config::load_run_spec(folder_ / kConfig, {});
}

std::string RunReader::config_toml() const {
  return read_file(folder_ / kConfig);
}

std::vector<json> RunReader::rounds() const {
  // First the summary, which a run that is just being finished writes last.
  const int64_t finished = finished_rounds(folder_);
  std::vector<json> lines = recorded_rounds(folder_);
  if (static_cast<int64_t>(lines.size()) < finished) {
    fail_user(
        "{} is damaged: it holds {} of the {} rounds of the finished run; put the whole file back, or remove "
        "what is in {}, resume, and the run begins again",
        (folder_ / kMetrics).string(), lines.size(), finished, (folder_ / kCheckpoints).string());
  }
  return lines;
}

std::optional<RunSummary> RunReader::summary() const {
  return read_summary(folder_);
}

std::unique_ptr<const privacy::Ledger> RunReader::ledger() const {
  require_ledger(folder_);
  const std::vector<LedgerMark> marks = ledger_marks(folder_);
  auto ledger = std::make_unique<const privacy::Ledger>(ledger_file(folder_), privacy::Ledger::Mode::kRead);
  check_marks(folder_, *ledger, marks);
  return ledger;
}

std::optional<std::string> RunReader::ledger_head() const {
  if (!fs::exists(folder_ / kLedgerHead)) return std::nullopt;
  const std::string line = read_file(folder_ / kLedgerHead);
  return line.substr(0, line.find('\n'));
}

std::optional<federation::Checkpoint> RunReader::last_checkpoint(const config::RunSpec& spec) const {
  const auto last = read_last_checkpoint(folder_);
  return last ? std::optional(last->checkpoint(spec)) : std::nullopt;
}

RunDirectory::RunDirectory(fs::path folder, const config::RunSpec& spec, bool resume)
    : folder_(std::move(folder)), spec_(spec) {
  if (resume && !is_free(folder_)) {
    this->resume();
    return;
  }
  create(resume);
  lock_ = std::make_unique<RunLock>(folder_);
  ledger_ = std::make_unique<privacy::Ledger>(ledger_file(folder_));
}

RunDirectory::~RunDirectory() = default;

void RunDirectory::create(bool or_leave_it) const {
  if (!or_leave_it) require_new(folder_);
  if (folder_.has_parent_path()) make_folder(folder_.parent_path());
  const fs::path fresh = folder_.string() + fmt::format(".{}.{}.tmp", host_name(), ::getpid());
  const auto remove_fresh = [&] {
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
  };
  try {
    make_folder(fresh / kCheckpoints);
    write_file_atomically(fresh / kConfig, spec_.to_toml());
    write_file_atomically(fresh / kEnvironment, environment().dump(2) + "\n");
    privacy::Ledger(ledger_file(fresh)).commit();
    fs::rename(fresh, folder_);
  } catch (const fs::filesystem_error& error) {
    remove_fresh();
    if (or_leave_it && !is_free(folder_)) {
      throw RunBusy(fmt::format("{} was begun by another process at the same moment", folder_.string()));
    }
    fail_user("cannot create {}: {}", folder_.string(), error.code().message());
  } catch (...) {
    remove_fresh();
    throw;
  }
  sync_folder(folder_.parent_path());
}

void RunDirectory::resume() {
  const RunReader reader(folder_);
  lock_ = std::make_unique<RunLock>(folder_);
  const auto last = read_last_checkpoint(folder_);
  if (last) {
    resume_from_ = last->checkpoint(spec_);
    if (!last->ledger()) {
      fail_user("{} does not say how far its ledger had come, as an earlier version wrote it; use another --out",
                last->path().string());
    }
  }
  require_ledger(folder_);
  const std::vector<LedgerMark> marks = ledger_marks(folder_);
  ledger_ = std::make_unique<privacy::Ledger>(ledger_file(folder_));
  check_marks(folder_, *ledger_, marks);
  if (const config::RunSpec begun = reader.spec(); begun.hash() != spec_.hash()) {
    if (!resume_from_ || !can_extend(begun, spec_, resume_from_->round)) refuse_other_settings(folder_);
    extend(begun.rounds);
  }
  drop_rounds_after(resume_from_ ? resume_from_->round : 0);
}

// What speaks of the run as it was must not seem to speak of what it becomes. The config comes last: until it is there,
// nothing has happened that a plain --resume would not mend.
void RunDirectory::extend(int64_t rounds_before) const {
  const fs::path kept = folder_ / fmt::format("until_round_{:06}", rounds_before);
  for (const char* name : {"audit.json", "attacks", "embedding.json"}) {
    if (!fs::exists(folder_ / name)) continue;
    make_folder(kept);
    fs::rename(folder_ / name, kept / name);
  }
  write_file_atomically(folder_ / kConfig, spec_.to_toml());
}

// Rounds after the checkpoint will be run again.
void RunDirectory::drop_rounds_after(int64_t round) const {
  std::string kept;
  int64_t count = 0;
  for (const json& line : recorded_rounds(folder_)) {
    if (line["round"].get<int64_t>() > round) continue;
    kept += line.dump() + "\n";
    ++count;
  }
  if (count != round) {
    fail_user(
        "{} holds {} of the {} rounds before the checkpoint; remove what is in {}, resume, and the run begins again",
        (folder_ / kMetrics).string(), count, round, (folder_ / kCheckpoints).string());
  }
  write_file_atomically(folder_ / kMetrics, kept);
  fs::remove(summary_file(folder_));
}

void RunDirectory::upload(int64_t round, int64_t client, const privacy::Upload& upload) {
  const fs::path folder = folder_ / "uploads" / fmt::format("round_{:06}", round);
  make_folder(folder);
  io::write_safetensors(folder / fmt::format("client_{:06}.safetensors", client),
                        {.tensors = upload.values(), .metadata = {{"config_hash", spec_.hash()}}});
}

void RunDirectory::round(const federation::RoundRecord& record) {
  append_line(folder_ / kMetrics, to_json(record).dump());
}

void RunDirectory::checkpoint(const federation::Checkpoint& checkpoint) {
  ledger_->commit();
  write_checkpoint(folder_, checkpoint, spec_.hash(), *ledger_);
}

fs::path RunDirectory::state_folder() const {
  return artifacts::state_folder(folder_);
}

RunSummary RunDirectory::finish() {
  ledger_->commit();
  RunSummary summary = make_summary(spec_, RunReader(folder_).rounds(), *ledger_);
  write_file_atomically(folder_ / kLedgerHead, ledger_->head() + "\n");
  write_file_atomically(summary_file(folder_), summary_document(summary).dump(2) + "\n");
  return summary;
}

}  // namespace sotto::artifacts
