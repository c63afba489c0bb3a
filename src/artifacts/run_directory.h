// The run directory: what a run leaves behind.
//
//   config.toml              the resolved settings
//   environment.json         what the run was made with
//   metrics.jsonl            a line a round
//   ledger.sqlite            a row a release; there from the first moment on
//   ledger.head              the last link of the ledger's chain when the run was finished
//   checkpoints/             the server's side after the last checkpointed round, and how far the ledger had come
//   state/                   clients' personal state of the same round
//   uploads/                 recorded uploads, if asked for: round_R/client_C.safetensors
//   summary.json             the result; present only when the run is finished
//   until_round_R/           what audits and attacks said of the run before it was extended beyond R rounds
//   lock                     held by the process that writes here
#pragma once

#include "artifacts/run_summary.h"
#include "federation/federation.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

namespace sotto::artifacts {

class RunLock;

// Whether a new run can be here: there is nothing, or an empty folder.
bool is_free(const std::filesystem::path& folder);
// A UserError that says what to do if it cannot.
void require_new(const std::filesystem::path& folder);

// Whether a run of these settings that has done so many rounds can become one of `spec`: all its rounds are done, and it
// gets more of them and no other change.
bool can_extend(const config::RunSpec& begun, const config::RunSpec& spec, int64_t rounds_done);

// Where clients' personal states are.
std::filesystem::path state_folder(const std::filesystem::path& run);

// Reading side: any run directory, finished or not. A folder that is not one is a UserError.
class RunReader {
 public:
  explicit RunReader(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  // The resolved settings, and as TOML text.
  config::RunSpec spec() const;
  std::string config_toml() const;
  // Complete lines of metrics.jsonl, in round order; a last line cut off by a crash is not there. Any other line that
  // cannot be read is a UserError, and so are fewer lines than the summary has rounds.
  std::vector<nlohmann::json> rounds() const;
  // As read_summary: absent while the run is not finished.
  std::optional<RunSummary> summary() const;
  // For reading, also beside a writer. A ledger that is missing or not the one that checkpoint and summary speak of is a
  // UserError.
  std::unique_ptr<const privacy::Ledger> ledger() const;
  // The ledger's last link as the finished run recorded it.
  std::optional<std::string> ledger_head() const;
  // The last checkpoint, if any. One that belongs to another config (checkpoint_file.h) is a UserError.
  std::optional<federation::Checkpoint> last_checkpoint(const config::RunSpec& spec) const;

 private:
  std::filesystem::path folder_;
};

// Writing side. Nothing exists on disk before the constructor, which creates the folder with its config and its ledger in
// one step.
class RunDirectory {
 public:
  // Starts a new run in a folder that is_free. Or, with `resume`, continues one: its config must have the same hash,
  // its ledger must hold all that checkpoint and summary have seen, and another process must not be writing to it
  // (RunBusy). What cannot be continued is a UserError and is left as it was. A finished run is extended if the settings
  // are the same but for more rounds; what was found out about it as it was goes to a folder of its own.
  RunDirectory(std::filesystem::path folder, const config::RunSpec& spec, bool resume);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  void upload(int64_t round, int64_t client, const privacy::Upload& upload);
  void round(const federation::RoundRecord& record);
  void checkpoint(const federation::Checkpoint& checkpoint);

  std::filesystem::path state_folder() const;
  privacy::Ledger& ledger() { return *ledger_; }
  const privacy::Ledger& ledger() const { return *ledger_; }
  const std::optional<federation::Checkpoint>& resume_from() const { return resume_from_; }

  // Writes summary.json and returns it.
  RunSummary finish();

 private:
  // Where somebody else was faster it is an error, or RunBusy if that is as good.
  void create(bool or_leave_it) const;
  void resume();
  void extend(int64_t rounds_before) const;
  void drop_rounds_after(int64_t round) const;

  std::filesystem::path folder_;
  const config::RunSpec& spec_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<privacy::Ledger> ledger_;
  std::optional<federation::Checkpoint> resume_from_;
};

}  // namespace sotto::artifacts
