// Where keys and certificates lie.
//
//   with the federation's owner             at a client's home
//   authority.key  authority.pem            client.key   stays there
//   server.key     server.pem               client.pem   the certificate for it
//   tokens.json    (net/tokens.h)           authority.pem
//   revoked.json   (net/revocations.h)
//
// Keys have mode 0600 from the first moment on. Nothing is overwritten that cannot be had again.
#pragma once

#include "net/certificates.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::net {

// The one certificate in a file, without what stands around it. A UserError that names the file if there is none.
std::string read_certificate_file(const std::filesystem::path& file);

// Makes the authority of a federation and the server's certificate. A UserError, with nothing written, if one of the
// four files is there already.
void make_authority_folder(const std::filesystem::path& folder, const std::string& federation,
                           const std::vector<std::string>& hosts, int days);
// Makes the server's key and certificate anew, for other hosts or another time.
void renew_server(const std::filesystem::path& folder, const std::vector<std::string>& hosts, int days);
KeyPair read_authority(const std::filesystem::path& folder);
KeyPair read_server(const std::filesystem::path& folder);

// Makes the home's key, unless it has one, and returns a request for its certificate. A home keeps its name: once it has
// a certificate, a request for another name is a UserError.
std::string make_request_at(const std::filesystem::path& home, const std::string& client_name);

// Puts a certificate and the authority's into the home. A UserError if check_client finds fault with them, or if the home
// already belongs to another authority.
void install_certificate(const std::filesystem::path& home, const std::string& certificate_pem,
                         const std::string& authority_pem);

struct Identity {
  std::string key_pem;
  std::string certificate_pem;
  std::string authority_pem;
};
// A UserError if the home has no certificate yet.
Identity read_identity(const std::filesystem::path& home);

}  // namespace sotto::net
