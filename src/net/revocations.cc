#include "net/revocations.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "net/certificates.h"
#include "net/names.h"
#include "net/tokens.h"

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <chrono>
#include <thread>
#include <utility>

namespace sotto::net {
namespace {

using nlohmann::json;

constexpr auto kLook = std::chrono::milliseconds(20);

fs::path file_in(const fs::path& folder) {
  return folder / "revoked.json";
}

std::map<std::string, int64_t> read(const fs::path& folder) {
  const fs::path file = file_in(folder);
  if (!fs::exists(file)) return {};
  try {
    return json::parse(read_file(file)).at("revoked").get<std::map<std::string, int64_t>>();
  } catch (const json::exception&) {
    fail_user("{} is damaged, so that nobody knows who was revoked; put it back", file.string());
  }
}

}  // namespace

void revoke_client(const fs::path& folder, const std::string& client_name) {
  check_name(client_name, "a client");
  const int64_t now = seconds_now();
  {
    const FolderLock lock(folder);
    std::map<std::string, int64_t> since = read(folder);
    since[client_name] = now;
    write_file_atomically(file_in(folder), json{{"revoked", since}}.dump(2) + "\n");
  }
  drop_tokens(folder, client_name);
  while (seconds_now() <= now) std::this_thread::sleep_for(kLook);
}

Revocations::Revocations(fs::path folder) : folder_(std::move(folder)) {}

void Revocations::look() {
  struct stat status {};
  if (::stat(file_in(folder_).c_str(), &status) != 0) status = {};
  const bool same =
      status.st_ino == file_ && status.st_mtim.tv_sec == changed_.tv_sec && status.st_mtim.tv_nsec == changed_.tv_nsec;
  if (same) return;
  since_ = read(folder_);
  file_ = status.st_ino;
  changed_ = status.st_mtim;
}

bool Revocations::covers(const std::string& certificate_pem) {
  if (folder_.empty()) return false;
  const std::lock_guard lock(mutex_);
  look();
  const auto found = since_.find(client_name(certificate_pem));
  return found != since_.end() && issued(certificate_pem) <= found->second;
}

}  // namespace sotto::net
