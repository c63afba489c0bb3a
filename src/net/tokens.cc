#include "net/tokens.h"

#include "base/error.h"
#include "base/files.h"
#include "base/private_file.h"
#include "net/certificates.h"
#include "net/names.h"
#include "net/openssl.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <vector>

namespace sotto::net {
namespace {

using nlohmann::json;

struct OpenToken {
  std::string digest;
  std::string name;
  int64_t expires = 0;
};

fs::path tokens_file(const fs::path& folder) {
  return folder / "tokens.json";
}

OpenToken read_token(const json& value) {
  return {value.at("digest").get<std::string>(), value.at("name").get<std::string>(),
          value.at("expires").get<int64_t>()};
}

std::vector<OpenToken> read_tokens(const fs::path& folder) {
  const fs::path path = tokens_file(folder);
  std::error_code unknown;
  if (!fs::exists(path, unknown) && !unknown) return {};
  std::vector<OpenToken> tokens;
  try {
    const json content = json::parse(read_file(path));
    for (const json& value : content.at("tokens")) tokens.push_back(read_token(value));
  } catch (const json::exception&) {
    fail_user("{} is damaged; remove it and make new tokens (sotto certs token)", path.string());
  }
  const int64_t now = std::time(nullptr);
  std::erase_if(tokens, [&](const OpenToken& token) { return token.expires <= now || !is_name(token.name); });
  return tokens;
}

void write_tokens(const fs::path& folder, const std::vector<OpenToken>& tokens) {
  json values = json::array();
  for (const OpenToken& token : tokens) {
    values.push_back({{"digest", token.digest}, {"name", token.name}, {"expires", token.expires}});
  }
  write_private_file(tokens_file(folder), json{{"tokens", std::move(values)}}.dump(2) + "\n");
}

auto find_token(std::vector<OpenToken>& tokens, const std::string& token) {
  const std::string digest = token_digest(token);
  const auto found =
      std::find_if(tokens.begin(), tokens.end(), [&](const OpenToken& open) { return open.digest == digest; });
  if (found == tokens.end()) {
    throw RequestRefused("the token is not, or no longer, good; ask the federation's owner for a new one");
  }
  return found;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder) {
  const fs::path path = folder / "tokens.lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int failed = file_ < 0 ? -1 : ::flock(file_, LOCK_EX);
  while (file_ >= 0 && failed != 0 && errno == EINTR) failed = ::flock(file_, LOCK_EX);
  if (failed == 0) return;
  const int error = errno;
  if (file_ >= 0) ::close(file_);
  fail_user("cannot lock {}: {}", path.string(), std::strerror(error));
}

FolderLock::~FolderLock() {
  ::close(file_);
}

std::string make_token() {
  const OwnErrors errors;
  std::array<unsigned char, 32> bytes{};
  must(RAND_bytes(bytes.data(), bytes.size()) == 1);
  std::array<unsigned char, 45> encoded{};
  const int length = EVP_EncodeBlock(encoded.data(), bytes.data(), bytes.size());
  std::string token(encoded.begin(), encoded.begin() + length);
  std::replace(token.begin(), token.end(), '+', '-');
  std::replace(token.begin(), token.end(), '/', '_');
  std::erase(token, '=');
  return token;
}

std::string token_digest(const std::string& token) {
  return sha256(token);
}

std::string add_token(const fs::path& folder, const std::string& client_name, int64_t expires) {
  check_name(client_name, "a client");
  const FolderLock lock(folder);
  std::vector<OpenToken> tokens = read_tokens(folder);
  std::erase_if(tokens, [&](const OpenToken& open) { return open.name == client_name; });
  std::string token = make_token();
  tokens.push_back({token_digest(token), client_name, expires});
  write_tokens(folder, tokens);
  return token;
}

std::string name_of_token(const fs::path& folder, const std::string& token) {
  std::vector<OpenToken> tokens = read_tokens(folder);
  return find_token(tokens, token)->name;
}

std::string take_token(const fs::path& folder, const std::string& token) {
  const FolderLock lock(folder);
  std::vector<OpenToken> tokens = read_tokens(folder);
  const auto taken = find_token(tokens, token);
  std::string name = taken->name;
  tokens.erase(taken);
  write_tokens(folder, tokens);
  return name;
}

void drop_tokens(const fs::path& folder, const std::string& client_name) {
  const FolderLock lock(folder);
  std::vector<OpenToken> tokens = read_tokens(folder);
  if (std::erase_if(tokens, [&](const OpenToken& open) { return open.name == client_name; }) > 0) {
    write_tokens(folder, tokens);
  }
}

}  // namespace sotto::net
