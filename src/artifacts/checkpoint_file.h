// Checkpoints as files: the server's side in tensors, and in the metadata what they belong to.
//
//   round, config_hash          of the run
//   ledger_rows, ledger_head    how far its ledger had come
//   checksum                    SHA-256 over all of the above and the tensors
#pragma once

#include "artifacts/ledger_mark.h"
#include "federation/federation.h"
#include "io/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sotto::artifacts {

class CheckpointFile {
 public:
  // A file that is damaged or does not fit its checksum is a UserError.
  explicit CheckpointFile(std::filesystem::path file);

  const std::filesystem::path& path() const { return path_; }
  // One that belongs to another config is a UserError.
  federation::Checkpoint checkpoint(const std::string& config_hash) const;
  // The same. The last checkpoint of a finished run belongs as well to settings with more rounds that are otherwise its
  // own: nothing before the last round depends on their number.
  federation::Checkpoint checkpoint(const config::RunSpec& spec) const;
  // Absent if an earlier version of Sotto wrote the file.
  const std::optional<LedgerMark>& ledger() const { return ledger_; }

 private:
  std::filesystem::path path_;
  io::SafeTensors content_;
  std::optional<LedgerMark> ledger_;
};

// The newest of a run directory, if any. A writer that replaces it meanwhile does no harm.
std::optional<CheckpointFile> read_last_checkpoint(const std::filesystem::path& run);

// Writes the checkpoint and then removes those before it. All rows of the ledger must be durable.
void write_checkpoint(const std::filesystem::path& run, const federation::Checkpoint& checkpoint,
                      const std::string& config_hash, const privacy::Ledger& ledger);

}  // namespace sotto::artifacts
