#include "artifacts/event_export.h"

#include "artifacts/event_records.h"
#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sotto::artifacts {
namespace {

// The config is written when a run starts and never again.
double start_of(const RunReader& run) {
  struct stat status = {};
  const fs::path config = run.folder() / "config.toml";
  if (::stat(config.c_str(), &status) != 0) fail_user("cannot read {}: {}", config.string(), std::strerror(errno));
  return static_cast<double>(status.st_mtim.tv_sec);
}

fs::path file_in(const fs::path& folder, double start, const config::RunSpec& spec) {
  const std::string name =
      fmt::format("events.out.tfevents.{}.{}", static_cast<int64_t>(start), spec.hash().substr(0, 8));
  make_folder(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string other = entry.path().filename().string();
    if (other.find("tfevents") != std::string::npos && other != name) {
      fail_user("{} holds the events of another run ({}); give each run a folder of its own", folder.string(), other);
    }
  }
  return folder / name;
}

void append(const fs::path& path, const std::string& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const bool written = file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written) fail_user("cannot write {}: {}", path.string(), std::strerror(error));
}

}  // namespace

EventExport::EventExport(const RunReader& run, const config::RunSpec& spec, const fs::path& folder, bool per_client)
    : run_(run),
      per_client_(per_client),
      start_(start_of(run)),
      file_(file_in(folder, start_, spec)),
      spending_(declared_spending(spec)) {}

void EventExport::update() {
  const std::string records = new_records();
  if (!started_) {
    store(first_event_record(start_) + records);
    started_ = true;
  } else if (!records.empty()) {
    append(file_, records);
  }
}

std::string EventExport::new_records() {
  const fs::path metrics = run_.folder() / "metrics.jsonl";
  std::error_code missing;
  const uintmax_t size = fs::file_size(metrics, missing);
  if (missing || size == metrics_size_) return "";
  metrics_size_ = size;
  std::vector<nlohmann::json> lines = run_.rounds();
  std::erase_if(lines, [&](const auto& line) { return line["round"].template get<int64_t>() <= last_round_; });
  if (lines.empty()) return "";
  // A round is written down after its rows: whoever has read the round finds them.
  const auto ledger = run_.ledger();
  std::string records;
  for (const nlohmann::json& line : lines) {
    last_round_ = line["round"].get<int64_t>();
    elapsed_ += line["seconds"].get<double>() + line["evaluation_seconds"].get<double>();
    spending_.advance_to(last_round_, *ledger);
    records += round_event_record(
        {.line = line, .wall_time = start_ + elapsed_, .spent = spending_.worst(), .per_client = per_client_});
  }
  return records;
}

// What is there already stays if it is the beginning of what there should be.
void EventExport::store(const std::string& records) {
  if (fs::exists(file_)) {
    const std::string old = read_file(file_);
    if (records.starts_with(old)) {
      if (records.size() > old.size()) append(file_, records.substr(old.size()));
      return;
    }
  }
  write_file_atomically(file_, records);
}

}  // namespace sotto::artifacts
