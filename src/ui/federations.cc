#include "ui/federations.h"

#include "artifacts/find_runs.h"
#include "base/error.h"
#include "base/files.h"
#include "member/federation_folder.h"
#include "member/status.h"
#include "serve/status.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <exception>
#include <system_error>

namespace sotto::ui {
namespace {

using nlohmann::json;

constexpr const char* kWatched[] = {"server.sqlite", "server.sqlite-wal", "ledger.sqlite", "ledger.sqlite-wal",
                                    "metrics.jsonl", "summary.json",      "policy.toml",   "evaluation.json"};

bool is_home(const fs::path& folder) {
  return fs::exists(folder / "policy.toml");
}

bool is_federation(const fs::path& folder) {
  return is_home(folder) || serve::is_server_folder(folder);
}

std::string stamp_of(const fs::path& folder) {
  std::string stamp = artifacts::is_locked(folder) ? "running" : "";
  const auto add = [&](const fs::path& file) {
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0) return;
    stamp += fmt::format(" {}:{}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  };
  for (const char* file : kWatched) add(folder / file);
  for (const member::FederationFolder& joined : member::FederationFolder::all(folder)) {
    for (const char* file : {"metrics.jsonl", "final.safetensors"}) add(joined.path() / file);
  }
  return stamp;
}

json home_document(const fs::path& folder) {
  json status = member::home_status(folder);
  for (json& federation : status["federations"]) {
    const member::FederationFolder joined(folder, federation["plan"].get<std::string>().substr(0, 16));
    federation["over"] = joined.is_over();
    federation["history"] = joined.rounds();
  }
  return status;
}

}  // namespace

std::vector<fs::path> find_federations(const fs::path& root) {
  if (is_federation(root)) return {"."};
  std::vector<fs::path> found;
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!fs::is_directory(entry->symlink_status(error)) || !is_federation(entry->path())) continue;
    found.push_back(entry->path().lexically_relative(root));
    entry.disable_recursion_pending();
  }
  std::sort(found.begin(), found.end());
  return found;
}

json FederationBrowser::entry(const fs::path& id) {
  const fs::path folder = (root_ / id).lexically_normal();
  const std::string stamp = stamp_of(folder);
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(id.string());
    if (found != known_.end() && found->second.first == stamp) return found->second.second;
  }
  json value = is_home(folder) ? home_document(folder) : serve::server_status(folder);
  value["id"] = id.string();
  value["title"] = folder.filename().string();
  value.erase("folder");
  const std::lock_guard lock(mutex_);
  known_[id.string()] = {stamp, value};
  return value;
}

json FederationBrowser::list() {
  json all = json::array();
  for (const fs::path& id : find_federations(root_)) {
    try {
      all.push_back(entry(id));
    } catch (const std::exception& error) {
      all.push_back({{"id", id.string()}, {"problem", error.what()}});
    }
  }
  return all;
}

json FederationBrowser::one(const std::string& id) {
  const auto known = find_federations(root_);
  if (std::find(known.begin(), known.end(), fs::path(id)) == known.end()) fail_user("there is no federation {}", id);
  return entry(id);
}

}  // namespace sotto::ui
