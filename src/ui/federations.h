// Federations between machines as the local page shows them: servers' folders and clients' homes. Looks, and writes
// nothing.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sotto::ui {

// The folders of servers and homes in and below `root`, as paths relative to it ("." for root itself), sorted. Symbolic
// links are not followed, and folders that may not be read are passed over.
std::vector<std::filesystem::path> find_federations(const std::filesystem::path& root);

// Thread-safe. A folder is named exactly as list() gives it, and nothing else is ever opened.
class FederationBrowser {
 public:
  explicit FederationBrowser(std::filesystem::path root) : root_(std::move(root)) {}

  // [{"id", "title", "kind": "server" or "home", …}], the rest as `sotto status --json` has it, and of each federation of a home
  // its rounds ("history"). {"id", "problem"} of what cannot be read.
  nlohmann::json list();
  // One of them.
  nlohmann::json one(const std::string& id);

 private:
  nlohmann::json entry(const std::filesystem::path& id);

  std::filesystem::path root_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, nlohmann::json>> known_;  // by folder: stamp, entry
};

}  // namespace sotto::ui
