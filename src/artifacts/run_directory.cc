#include "artifacts/run_directory.h"

#include "artifacts/environment.h"
#include "artifacts/metrics.h"
#include "artifacts/summary.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "io/safetensors.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

constexpr const char* kConfig = "config.toml";
constexpr const char* kEnvironment = "environment.json";
constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kSummary = "summary.json";
constexpr const char* kLedgerHead = "ledger.head";
constexpr const char* kBroadcastPrefix = "broadcast/";
constexpr const char* kServerPrefix = "server/";
constexpr const char* kCohortsPrefix = "cohorts/";

fs::path checkpoint_path(const fs::path& folder, int64_t round) {
  return folder / "checkpoints" / fmt::format("round_{:06}.safetensors", round);
}

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

// Appends and syncs; a failed write takes the partial line back.
void append_line(const fs::path& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
  const off_t before = ::lseek(file, 0, SEEK_END);
  const std::string text = line + "\n";
  const ssize_t written = ::write(file, text.data(), text.size());
  const int error = errno;
  const bool complete = written == static_cast<ssize_t>(text.size());
  if (!complete) std::ignore = ::ftruncate(file, before);
  ::close(file);
  if (!complete)
    fail_user("cannot write {}: {}", path.string(), written < 0 ? std::strerror(error) : "the disk is full");
}

}  // namespace

RunReader::RunReader(fs::path folder) : folder_(std::move(folder)) {
  if (!fs::exists(folder_ / kConfig)) {
    fail_user("{} is not a run directory: it has no {}", folder_.string(), kConfig);
  }
}

config::RunSpec RunReader::spec() const {
  return config::load_run_spec(folder_ / kConfig, {});
}

std::string RunReader::config_toml() const {
  return read_file(folder_ / kConfig);
}

std::vector<json> RunReader::rounds() const {
  std::vector<json> lines;
  if (!fs::exists(folder_ / kMetrics)) return lines;
  std::istringstream stream(read_file(folder_ / kMetrics));
  for (std::string line; std::getline(stream, line);) {
    json value = json::parse(line, nullptr, false);
    if (value.is_discarded()) break;
    lines.push_back(std::move(value));
  }
  return lines;
}

std::optional<json> RunReader::summary() const {
  if (!fs::exists(folder_ / kSummary)) return std::nullopt;
  json value = json::parse(read_file(folder_ / kSummary), nullptr, false);
  if (value.is_discarded()) fail_user("{} is damaged; delete it and resume the run", (folder_ / kSummary).string());
  return value;
}

std::optional<std::string> RunReader::ledger_head() const {
  if (!fs::exists(folder_ / kLedgerHead)) return std::nullopt;
  const std::string line = read_file(folder_ / kLedgerHead);
  return line.substr(0, line.find('\n'));
}

std::optional<federation::Checkpoint> RunReader::last_checkpoint(const std::string& config_hash) const {
  fs::path newest;
  if (fs::exists(folder_ / "checkpoints")) {
    for (const auto& entry : fs::directory_iterator(folder_ / "checkpoints")) {
      if (entry.path().extension() == ".safetensors") newest = std::max(newest, entry.path());
    }
  }
  if (newest.empty()) return std::nullopt;
  const io::SafeTensors file = io::read_safetensors(newest);
  if (!file.metadata.contains("round") || !file.metadata.contains("config_hash") ||
      file.metadata.at("config_hash") != config_hash) {
    fail_user("{} belongs to a different config; use another --out", newest.string());
  }
  federation::Checkpoint checkpoint;
  checkpoint.round = std::stoll(file.metadata.at("round"));
  checkpoint.broadcast = {checkpoint.round, take_prefixed(file.tensors, kBroadcastPrefix)};
  checkpoint.server_state = take_prefixed(file.tensors, kServerPrefix);
  checkpoint.cohorts = take_prefixed(file.tensors, kCohortsPrefix);
  return checkpoint;
}

RunDirectory::RunDirectory(fs::path folder, const config::RunSpec& spec, bool resume)
    : folder_(std::move(folder)), spec_(spec) {
  if (!resume || !fs::exists(folder_)) {
    if (fs::exists(folder_)) {
      fail_user("{} exists already; add --resume to continue it, or choose another --out", folder_.string());
    }
    if (folder_.has_parent_path()) make_folder(folder_.parent_path());
    const fs::path fresh = folder_.string() + fmt::format(".{}.tmp", ::getpid());
    make_folder(fresh / "checkpoints");
    write_file_atomically(fresh / kConfig, spec.to_toml());
    write_file_atomically(fresh / kEnvironment, environment().dump(2) + "\n");
    std::error_code error;
    fs::rename(fresh, folder_, error);
    if (error) {
      fs::remove_all(fresh);
      fail_user("cannot create {}: {}", folder_.string(), error.message());
    }
    lock();
    return;
  }
  const RunReader reader(folder_);
  lock();
  resume_from_ = reader.last_checkpoint(spec.hash());
  drop_rounds_after(resume_from_ ? resume_from_->round : 0);
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::lock() {
  const fs::path path = folder_ / "lock";
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) fail_user("cannot write to {}: {}", folder_.string(), std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) fail_user("{} is being written by another process", folder_.string());
}

// Rounds after the checkpoint will be run again.
void RunDirectory::drop_rounds_after(int64_t round) const {
  std::string kept;
  for (const json& line : RunReader(folder_).rounds()) {
    if (line["round"].get<int64_t>() <= round) kept += line.dump() + "\n";
  }
  write_file_atomically(folder_ / kMetrics, kept);
  fs::remove(folder_ / kSummary);
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
  io::SafeTensors file;
  add_prefixed(file.tensors, checkpoint.broadcast.values, kBroadcastPrefix);
  add_prefixed(file.tensors, checkpoint.server_state, kServerPrefix);
  add_prefixed(file.tensors, checkpoint.cohorts, kCohortsPrefix);
  file.metadata = {{"round", std::to_string(checkpoint.round)}, {"config_hash", spec_.hash()}};
  const fs::path path = checkpoint_path(folder_, checkpoint.round);
  io::write_safetensors(path, file);
  for (const auto& entry : fs::directory_iterator(folder_ / "checkpoints")) {
    if (entry.path() != path) fs::remove(entry.path());
  }
}

fs::path RunDirectory::state_folder() const {
  return folder_ / "state";
}

fs::path RunDirectory::ledger_file() const {
  return folder_ / "ledger.sqlite";
}

json RunDirectory::finish(const privacy::Ledger& ledger) {
  const json summary = make_summary(spec_, RunReader(folder_).rounds(), ledger);
  write_file_atomically(folder_ / kLedgerHead, ledger.head() + "\n");
  write_file_atomically(folder_ / kSummary, summary.dump(2) + "\n");
  return summary;
}

}  // namespace sotto::artifacts
