// One-time tokens, by which clients enrol over the network. The server keeps digests only, in DIR/tokens.json.
//
// To enrol a client: look up the name, issue its certificate, take the token, and only then hand the certificate out. A
// bad request then costs no token, and of two requests with one token one gets nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace sotto::net {

// 32 random bytes as 43 characters of base64url.
std::string make_token();
// Lower-case hexadecimal SHA-256.
std::string token_digest(const std::string& token);

// Makes a token for a client, good until `expires` (seconds since 1970), and returns it once it is durable. An older one
// for the same client is good no longer. Safe beside other threads and processes, as all of these.
std::string add_token(const std::filesystem::path& folder, const std::string& client_name, int64_t expires);

// Whose token it is. RequestRefused if it is unknown, taken or expired; which of them, it does not say.
std::string name_of_token(const std::filesystem::path& folder, const std::string& token);

// The same, and removes it durably: exactly one caller gets the name.
std::string take_token(const std::filesystem::path& folder, const std::string& token);

// Tokens of this client are good no longer.
void drop_tokens(const std::filesystem::path& folder, const std::string& client_name);

// While it lives, no other thread or process changes what an authority's folder says of its clients; others wait.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace sotto::net
