#include "net/key_folders.h"

#include "base/error.h"
#include "base/files.h"
#include "base/private_file.h"

#include <system_error>
#include <utility>

namespace sotto::net {
namespace {

struct Named {
  const char* key;
  const char* certificate;
};

constexpr Named kAuthority = {"authority.key", "authority.pem"};
constexpr Named kServer = {"server.key", "server.pem"};
constexpr Named kClient = {"client.key", "client.pem"};

KeyPair read_pair(const fs::path& folder, const Named& name) {
  if (!fs::exists(folder / name.certificate)) {
    fail_user("there is no {}; sotto certs init makes it", (folder / name.certificate).string());
  }
  return {read_file(folder / name.key), read_certificate_file(folder / name.certificate)};
}

// The certificate last: where it is, its key is.
void write_pair(const fs::path& folder, const Named& name, const KeyPair& pair) {
  write_private_file(folder / name.key, pair.key_pem);
  write_file_atomically(folder / name.certificate, pair.certificate_pem);
}

}  // namespace

std::string read_certificate_file(const fs::path& file) {
  const std::string text = read_file(file);
  try {
    return only_certificate(text);
  } catch (const UserError& error) {
    fail_user("{}: {}", file.string(), error.what());
  }
}

void make_authority_folder(const fs::path& folder, const std::string& federation, const std::vector<std::string>& hosts,
                           int days) {
  const std::vector<const char*> files = {kAuthority.key, kAuthority.certificate, kServer.key, kServer.certificate};
  for (const char* file : files) {
    if (fs::exists(folder / file)) {
      fail_user("{} is there already and is not overwritten; use another folder", (folder / file).string());
    }
  }
  const KeyPair authority = make_authority(federation, days);
  const KeyPair server = issue_server(authority, hosts, days);
  make_folder(folder);
  try {
    write_pair(folder, kAuthority, authority);
    write_pair(folder, kServer, server);
  } catch (...) {
    std::error_code ignored;
    for (const char* file : files) fs::remove(folder / file, ignored);
    throw;
  }
}

void renew_server(const fs::path& folder, const std::vector<std::string>& hosts, int days) {
  write_pair(folder, kServer, issue_server(read_authority(folder), hosts, days));
}

KeyPair read_authority(const fs::path& folder) {
  return read_pair(folder, kAuthority);
}

KeyPair read_server(const fs::path& folder) {
  return read_pair(folder, kServer);
}

std::string make_request_at(const fs::path& home, const std::string& client_name) {
  const fs::path key = home / kClient.key;
  const fs::path certificate = home / kClient.certificate;
  if (fs::exists(certificate)) {
    const std::string has = net::client_name(read_certificate_file(certificate));
    if (has != client_name) {
      fail_user("{} is the home of {}; use another home for {}", home.string(), has, client_name);
    }
  }
  if (fs::exists(key)) return make_csr(read_file(key), client_name);
  Request request = make_request(client_name);
  make_folder(home);
  write_private_file(key, request.key_pem);
  return std::move(request.csr_pem);
}

void install_certificate(const fs::path& home, const std::string& certificate_pem, const std::string& authority_pem) {
  const fs::path key = home / kClient.key;
  const fs::path authority = home / kAuthority.certificate;
  if (!fs::exists(key)) {
    fail_user("there is no {}; sotto enrol HOME --name NAME --request FILE makes it", key.string());
  }
  check_client(certificate_pem, read_file(key), authority_pem);
  if (fs::exists(authority) && fingerprint(read_certificate_file(authority)) != fingerprint(authority_pem)) {
    fail_user("{} belongs to another authority; use another home, or remove {}", home.string(), authority.string());
  }
  write_file_atomically(authority, only_certificate(authority_pem));
  write_file_atomically(home / kClient.certificate, only_certificate(certificate_pem));
}

Identity read_identity(const fs::path& home) {
  if (!fs::exists(home / kClient.certificate)) {
    fail_user("there is no {}: {} has not enrolled yet (sotto enrol)", (home / kClient.certificate).string(),
              home.string());
  }
  if (!fs::exists(home / kClient.key)) {
    fail_user("there is no {}: put it back from a backup, or have {} enrolled anew", (home / kClient.key).string(),
              home.string());
  }
  return {read_file(home / kClient.key), read_certificate_file(home / kClient.certificate),
          read_certificate_file(home / kAuthority.certificate)};
}

}  // namespace sotto::net
