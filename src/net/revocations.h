// Certificates that are good no longer: DIR/revoked.json names clients, and since when. What was issued to a client
// before that moment is refused; what is issued afterwards is another certificate.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

namespace sotto::net {

// Revokes all certificates and open tokens of a client, durably. Returns in the next second, so that whatever is issued
// afterwards is issued later.
void revoke_client(const std::filesystem::path& folder, const std::string& client_name);

// Thread-safe. Looks at the file whenever it has changed.
class Revocations {
 public:
  // Of an authority's folder; "" has none.
  explicit Revocations(std::filesystem::path folder);

  // A UserError if the file cannot be read: then nobody knows.
  bool covers(const std::string& certificate_pem);

 private:
  void look();

  const std::filesystem::path folder_;
  std::mutex mutex_;
  ino_t file_ = 0;  // that was read last: every change makes a new one
  timespec changed_ = {};
  std::map<std::string, int64_t> since_;  // by name
};

}  // namespace sotto::net
