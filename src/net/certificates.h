// The certificates of a federation: an authority, the server that it vouches for, and clients with a name each.
//
// Keys are ECDSA on P-256, signatures use SHA-256, everything is PEM text. A client's name stands in its certificate as
// the URI sotto://client/NAME. Validity begins an hour ago, for clocks that are behind, and ends with the authority's at
// the latest.
//
// Text that is not what it should be is a UserError of one line; what a client asks for and does not get is a
// RequestRefused, because it comes from outside.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::net {

struct KeyPair {
  std::string key_pem;
  std::string certificate_pem;
};

// Made by a client: the key stays at home, the request travels.
struct Request {
  std::string key_pem;
  std::string csr_pem;
};

// Seconds since 1970.
struct Validity {
  int64_t not_before = 0;
  int64_t not_after = 0;
};

class RequestRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `days` is 1 to 36500 everywhere.
KeyPair make_authority(const std::string& name, int days);

// For a server that is reached by any of these DNS names and addresses. An authority that has expired, or whose key is
// another one's, is a UserError.
KeyPair issue_server(const KeyPair& authority, const std::vector<std::string>& hosts, int days);

Request make_request(const std::string& client_name);
// A request by a key that is there already.
std::string make_csr(const std::string& key_pem, const std::string& client_name);

// The name that a request asks for. RequestRefused unless it is signed by its own key, which is one of ours in kind, and
// asks for one name and nothing else.
std::string requested_name(const std::string& csr_pem);

// The client's certificate. RequestRefused as above, and if the request asks for another name than the expected one.
std::string issue_client(const KeyPair& authority, const std::string& csr_pem, const std::string& expected_name,
                         int days);

// A UserError unless the certificate is now valid for a client, signed by this authority, and for this key.
void check_client(const std::string& certificate_pem, const std::string& key_pem, const std::string& authority_pem);
// The same for a server's.
void check_server(const std::string& certificate_pem, const std::string& key_pem, const std::string& authority_pem);

// ---- what a certificate says

// Lower-case hexadecimal SHA-256 of its DER form.
std::string fingerprint(const std::string& certificate_pem);
// From its one client URI; "" if it has none.
std::string client_name(const std::string& certificate_pem);
// DNS names and addresses that it is valid for.
std::vector<std::string> hosts(const std::string& certificate_pem);
// As in "CN=north-hospitals", printable.
std::string subject(const std::string& certificate_pem);
bool is_authority(const std::string& certificate_pem);
Validity validity(const std::string& certificate_pem);
// When it was issued, in seconds since 1970.
int64_t issued(const std::string& certificate_pem);

// The one certificate in this text, without what stands around it.
std::string only_certificate(const std::string& certificate_pem);

}  // namespace sotto::net
