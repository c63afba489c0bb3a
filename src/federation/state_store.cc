#include "federation/state_store.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "io/safetensors.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace sotto::federation {
namespace {

// "CLIENT/name" in the one file of the memory store.
class MemoryStore : public StateStore {
 public:
  explicit MemoryStore(fs::path folder) : folder_(std::move(folder)) {}

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
    if (folder_.empty() || states_.empty()) return;
    io::SafeTensors file;
    for (const auto& [client, state] : states_) {
      for (const auto& [name, value] : state.values())
        file.tensors.push_back({fmt::format("{}/{}", client, name), value});
    }
    make_folder(folder_);
    io::write_safetensors(path_of(round), file);
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path() != path_of(round) && entry.path() != path_of(previous_commit_)) fs::remove(entry.path());
    }
    previous_commit_ = round;
  }

  void restore(int64_t round) override {
    const std::lock_guard lock(mutex_);
    states_.clear();
    previous_commit_ = round;
    if (!fs::exists(path_of(round))) return;
    std::map<int64_t, NamedTensors> grouped;
    for (const auto& [name, value] : io::read_safetensors(path_of(round)).tensors) {
      const size_t slash = name.find('/');
      grouped[std::stoll(name.substr(0, slash))].push_back({name.substr(slash + 1), value.clone()});
    }
    for (auto& [client, values] : grouped) states_[client] = privacy::PrivateState(std::move(values));
  }

 private:
  fs::path path_of(int64_t round) const { return folder_ / fmt::format("round_{:06}.safetensors", round); }

  const fs::path folder_;
  std::map<int64_t, privacy::PrivateState> states_;
  int64_t previous_commit_ = 0;
  mutable std::mutex mutex_;
};

class DiskStore : public StateStore {
 public:
  explicit DiskStore(fs::path folder) : folder_(std::move(folder)) { make_folder(folder_); }

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
    for (const fs::path& path : removable_) fs::remove(path);
    removable_ = std::exchange(superseded_, {});
    committed_round_ = round;
  }

  void restore(int64_t round) override {
    const std::lock_guard lock(mutex_);
    latest_.clear();
    superseded_.clear();
    removable_.clear();
    committed_round_ = round;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      int64_t client = 0;
      int64_t written = 0;
      if (!parse(entry.path().filename().string(), client, written) || written > round) continue;
      int64_t& latest = latest_[client];
      if (latest != written && latest != 0) removable_.push_back(path_of(client, std::min(latest, written)));
      latest = std::max(latest, written);
    }
  }

 private:
  fs::path path_of(int64_t client, int64_t round) const {
    return folder_ / fmt::format("{}_{}.safetensors", client, round);
  }

  static bool parse(const std::string& name, int64_t& client, int64_t& round) {
    const char* end = name.data() + name.size();
    const auto first = std::from_chars(name.data(), end, client);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '_') return false;
    const auto second = std::from_chars(first.ptr + 1, end, round);
    return second.ec == std::errc() && std::string_view(second.ptr, end) == ".safetensors";
  }

  const fs::path folder_;
  std::map<int64_t, int64_t> latest_;  // client → round of its newest file
  std::vector<fs::path> superseded_;   // committed files that a newer, uncommitted one replaces
  std::vector<fs::path> removable_;    // the same as of the last commit: needed until the next one
  int64_t committed_round_ = 0;
  mutable std::mutex mutex_;
};

}  // namespace

std::unique_ptr<StateStore> make_memory_store(const fs::path& folder) {
  return std::make_unique<MemoryStore>(folder);
}

std::unique_ptr<StateStore> make_disk_store(const fs::path& folder) {
  return std::make_unique<DiskStore>(folder);
}

}  // namespace sotto::federation
