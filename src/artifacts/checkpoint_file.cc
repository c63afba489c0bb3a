#include "artifacts/checkpoint_file.h"

#include "base/error.h"
#include "base/files.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

constexpr const char* kFolder = "checkpoints";
constexpr const char* kBroadcastPrefix = "broadcast/";
constexpr const char* kServerPrefix = "server/";
constexpr const char* kChecksum = "checksum";

void add_prefixed(NamedTensors& to, const NamedTensors& from, const char* prefix) {
  for (const auto& [name, value] : from) to.push_back({prefix + name, value});
}

NamedTensors take_prefixed(const NamedTensors& from, std::string_view prefix) {
  NamedTensors taken;
  for (const auto& [name, value] : from) {
    if (name.starts_with(prefix)) taken.push_back({name.substr(prefix.size()), value.clone()});
  }
  return taken;
}

// Of everything but the checksum; the order of the tensors does not matter.
std::string checksum_of(const io::SafeTensors& content) {
  json parts = {{"metadata", content.metadata}, {"tensors", json::object()}};
  parts["metadata"].erase(kChecksum);
  for (const auto& [name, value] : content.tensors) {
    const at::Tensor packed = value.detach().contiguous();
    parts["tensors"][name] = {c10::toString(packed.scalar_type()), packed.sizes().vec(),
                              sha256({static_cast<const char*>(packed.data_ptr()), packed.nbytes()})};
  }
  return sha256(parts.dump());
}

int64_t number_in(const io::SafeTensors& content, const char* key, const fs::path& file) {
  const auto found = content.metadata.find(key);
  const std::string text = found == content.metadata.end() ? "" : found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail_user("{} is damaged: its '{}' is no number; remove it and resume, and its run begins again", file.string(),
              key);
  }
  return value;
}

fs::path newest_in(const fs::path& folder) {
  fs::path newest;
  if (!fs::exists(folder)) return newest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") newest = std::max(newest, entry.path());
  }
  return newest;
}

}  // namespace

CheckpointFile::CheckpointFile(fs::path file) : path_(std::move(file)), content_(io::read_safetensors(path_)) {
  const auto& metadata = content_.metadata;
  if (!metadata.contains(kChecksum)) return;
  if (metadata.at(kChecksum) != checksum_of(content_)) {
    fail_user("{} is damaged: it does not fit its checksum; remove it and resume, and its run begins again",
              path_.string());
  }
  const auto head = metadata.find("ledger_head");
  ledger_ = {path_, number_in(content_, "ledger_rows", path_), head == metadata.end() ? "" : head->second};
}

federation::Checkpoint CheckpointFile::checkpoint(const std::string& config_hash) const {
  const auto& metadata = content_.metadata;
  if (!metadata.contains("round") || !metadata.contains("config_hash") || metadata.at("config_hash") != config_hash) {
    fail_user("{} belongs to a different config; use another --out", path_.string());
  }
  federation::Checkpoint checkpoint;
  checkpoint.round = number_in(content_, "round", path_);
  checkpoint.broadcast = {checkpoint.round, take_prefixed(content_.tensors, kBroadcastPrefix)};
  checkpoint.server_state = take_prefixed(content_.tensors, kServerPrefix);
  return checkpoint;
}

federation::Checkpoint CheckpointFile::checkpoint(const config::RunSpec& spec) const {
  const auto hash = content_.metadata.find("config_hash");
  if (hash != content_.metadata.end() && content_.metadata.contains("round")) {
    const config::RunSpec shorter = spec.with_rounds(number_in(content_, "round", path_));
    if (shorter.rounds < spec.rounds && hash->second == shorter.hash()) return checkpoint(shorter.hash());
  }
  return checkpoint(spec.hash());
}

std::optional<CheckpointFile> read_last_checkpoint(const fs::path& run) {
  for (;;) {
    const fs::path newest = newest_in(run / kFolder);
    if (newest.empty()) return std::nullopt;
    try {
      return CheckpointFile(newest);
    } catch (const UserError&) {
      if (fs::exists(newest)) throw;  // otherwise a newer one has taken its place
    }
  }
}

void write_checkpoint(const fs::path& run, const federation::Checkpoint& checkpoint, const std::string& config_hash,
                      const privacy::Ledger& ledger) {
  io::SafeTensors content;
  add_prefixed(content.tensors, checkpoint.broadcast.values, kBroadcastPrefix);
  add_prefixed(content.tensors, checkpoint.server_state, kServerPrefix);
  content.metadata = {{"round", std::to_string(checkpoint.round)},
                      {"config_hash", config_hash},
                      {"ledger_rows", std::to_string(ledger.rows())},
                      {"ledger_head", ledger.head()}};
  content.metadata[kChecksum] = checksum_of(content);
  const fs::path path = run / kFolder / fmt::format("round_{:06}.safetensors", checkpoint.round);
  io::write_safetensors(path, content);
  for (const auto& entry : fs::directory_iterator(run / kFolder)) {
    if (entry.path() != path) fs::remove(entry.path());
  }
}

}  // namespace sotto::artifacts
