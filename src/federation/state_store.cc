#include "federation/state_store.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sotto::federation {
namespace {

// In the folder of states that were removed once their run was finished.
constexpr const char* kDiscarded = "discarded";
constexpr const char* kEnding = ".safetensors";

// Files of the memory store.
std::string stem_of(int64_t round) {
  return fmt::format("round_{:06}", round);
}
bool is_of(int64_t round, const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(kEnding) && (name.starts_with(stem_of(round) + ".") || name.starts_with(stem_of(round) + "_"));
}

// CLIENT_ROUND.safetensors: a file of the disk store.
bool parse(const std::string& name, int64_t& client, int64_t& round) {
  const char* end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, client);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '_') return false;
  const auto second = std::from_chars(first.ptr + 1, end, round);
  return second.ec == std::errc() && std::string_view(second.ptr, end) == kEnding;
}

// "CLIENT/name" in the one file of the memory store. Where there are several parts, files end in _INDEXofCOUNT; the
// first part removes what is old, whoever wrote it.
class MemoryStore : public StateStore {
 public:
  MemoryStore(fs::path folder, StatePart part) : folder_(std::move(folder)), part_(part) {}

  privacy::PrivateState get(int64_t client) const override {
    const std::lock_guard lock(mutex_);
    const auto found = states_.find(client);
    return found == states_.end() ? privacy::PrivateState() : found->second;
  }

  void put(int64_t client, int64_t, privacy::PrivateState state) override {
    const std::lock_guard lock(mutex_);
    states_[client] = std::move(state);
  }

  void commit(int64_t round) override {
    const std::lock_guard lock(mutex_);
    if (folder_.empty()) return;
    if (!states_.empty()) write(round);
    if (part_.index == 0 && fs::exists(folder_)) remove_old(round);
    previous_commit_ = round;
  }

  void restore(int64_t round) override {
    const std::lock_guard lock(mutex_);
    states_.clear();
    previous_commit_ = round;
    if (folder_.empty() || !fs::exists(folder_)) return;
    std::map<int64_t, NamedTensors> grouped;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (!is_of(round, entry.path())) continue;
      for (const auto& [name, value] : io::read_safetensors(entry.path()).tensors) {
        const size_t slash = name.find('/');
        const int64_t client = std::stoll(name.substr(0, slash));
        if (part_.holds(client)) grouped[client].push_back({name.substr(slash + 1), value.clone()});
      }
    }
    for (auto& [client, values] : grouped) states_[client] = privacy::PrivateState(std::move(values));
  }

 private:
  void write(int64_t round) const {
    io::SafeTensors file;
    for (const auto& [client, state] : states_) {
      for (const auto& [name, value] : state.values())
        file.tensors.push_back({fmt::format("{}/{}", client, name), value});
    }
    make_folder(folder_);
    io::write_safetensors(folder_ / (stem_of(round) + ending()), file);
  }

  // All but the last two commits, and what a process that died left of this one under another count of parts.
  void remove_old(int64_t round) const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const fs::path& path = entry.path();
      if (part_.count > 1 && path.extension() != kEnding) continue;  // another part may be writing it
      if (is_of(round, path) ? !is_of_this_count(round, path) : !is_of(previous_commit_, path)) fs::remove(path);
    }
  }

  std::string ending() const {
    return part_.count == 1 ? kEnding : fmt::format("_{}of{}{}", part_.index, part_.count, kEnding);
  }
  bool is_of_this_count(int64_t round, const fs::path& path) const {
    const std::string name = path.filename().string();
    return part_.count == 1 ? name == stem_of(round) + kEnding
                            : name.ends_with(fmt::format("of{}{}", part_.count, kEnding));
  }

  const fs::path folder_;
  const StatePart part_;
  std::map<int64_t, privacy::PrivateState> states_;
  int64_t previous_commit_ = 0;
  mutable std::mutex mutex_;
};

class DiskStore : public StateStore {
 public:
  DiskStore(fs::path folder, StatePart part) : folder_(std::move(folder)), part_(part) {
    make_folder(folder_);
    go_back_to(0);
  }

  privacy::PrivateState get(int64_t client) const override {
    int64_t round = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = latest_.find(client);
      if (found == latest_.end()) return {};
      round = found->second;
    }
    return privacy::PrivateState(clone(io::read_safetensors(path_of(client, round)).tensors));
  }

  void put(int64_t client, int64_t round, privacy::PrivateState state) override {
    io::write_safetensors(path_of(client, round), {.tensors = state.values(), .metadata = {}});
    const std::lock_guard lock(mutex_);
    abandoned_.erase(path_of(client, round));
    const auto latest = latest_.find(client);
    if (latest == latest_.end()) {
      latest_[client] = round;
      return;
    }
    if (latest->second > committed_round_) {
      fs::remove(path_of(client, latest->second));
    } else {
      superseded_.push_back(path_of(client, latest->second));
    }
    latest->second = round;
  }

  void commit(int64_t round) override {
    const std::lock_guard lock(mutex_);
    for (const fs::path& path : std::exchange(abandoned_, {})) fs::remove(path);
    for (const fs::path& path : removable_) fs::remove(path);
    removable_ = std::exchange(superseded_, {});
    committed_round_ = round;
  }

  void restore(int64_t round) override {
    const std::lock_guard lock(mutex_);
    go_back_to(round);
  }

 private:
  void go_back_to(int64_t round) {
    latest_.clear();
    superseded_.clear();
    removable_.clear();
    abandoned_.clear();
    committed_round_ = round;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      int64_t client = 0;
      int64_t written = 0;
      if (!parse(entry.path().filename().string(), client, written) || !part_.holds(client)) continue;
      if (written > round) {
        abandoned_.insert(path_of(client, written));
        continue;
      }
      int64_t& latest = latest_[client];
      if (latest != written && latest != 0) removable_.push_back(path_of(client, std::min(latest, written)));
      latest = std::max(latest, written);
    }
  }

  fs::path path_of(int64_t client, int64_t round) const {
    return folder_ / fmt::format("{}_{}.safetensors", client, round);
  }

  const fs::path folder_;
  const StatePart part_;
  std::map<int64_t, int64_t> latest_;  // client → round of its newest file
  std::vector<fs::path> superseded_;   // committed files that a newer, uncommitted one replaces
  std::vector<fs::path> removable_;    // the same as of the last commit: needed until the next one
  // Of rounds after the one gone back to. Run again with other clients, they leave these files as they are: once the new
  // rounds are committed, a later restore would take them for theirs.
  std::set<fs::path> abandoned_;
  int64_t committed_round_ = 0;
  mutable std::mutex mutex_;
};

}  // namespace

std::unique_ptr<StateStore> make_memory_store(const fs::path& folder, StatePart part) {
  return std::make_unique<MemoryStore>(folder, part);
}

std::unique_ptr<StateStore> make_disk_store(const fs::path& folder, StatePart part) {
  return std::make_unique<DiskStore>(folder, part);
}

void discard_states(const fs::path& folder, int64_t round) {
  if (!fs::exists(folder)) return;
  if (round == 0) write_file_atomically(folder / kDiscarded, "");
  std::map<int64_t, int64_t> latest;
  std::vector<fs::path> files;
  int64_t client = 0, written = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
    if (parse(entry.path().filename().string(), client, written) && written <= round) {
      latest[client] = std::max(latest[client], written);
    }
  }
  for (const fs::path& file : files) {
    const bool newest = parse(file.filename().string(), client, written) && latest[client] == written;
    if (file.filename() != kDiscarded && (round == 0 || (!newest && !is_of(round, file)))) fs::remove(file);
  }
}

bool states_were_discarded(const fs::path& folder) {
  return fs::exists(folder / kDiscarded);
}

}  // namespace sotto::federation
