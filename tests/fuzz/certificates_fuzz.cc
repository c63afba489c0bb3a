// Certificates, requests for them and tokens, as they come from those who have none yet.
#include "fuzz.h"
#include "net/certificates.h"
#include "net/names.h"
#include "net/tokens.h"

namespace {

using namespace sotto;

const net::KeyPair& authority() {
  static const net::KeyPair made = net::make_authority("north", 30);
  return made;
}

std::string tokens() {
  fs::create_directories(fuzz::scratch() / "example");
  net::add_token(fuzz::scratch() / "example", "home-1", 2'000'000'000);
  return read_file(fuzz::scratch() / "example" / "tokens.json");
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const net::Request request = net::make_request("home-1");
  return {request.csr_pem,
          request.key_pem,
          authority().certificate_pem,
          net::issue_client(authority(), request.csr_pem, "home-1", 10),
          net::issue_server(authority(), {"localhost", "127.0.0.1", "::1"}, 10).certificate_pem,
          tokens(),
          "sotto://client/home-1"};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const net::KeyPair server = net::issue_server(authority(), {"localhost"}, 10);
  const std::string text = fuzz::bytes_of(data, size);
  const auto attempt = [](const auto& decode) { fuzz::attempt<net::RequestRefused>(decode); };
  attempt([&] { net::requested_name(text); });
  attempt([&] { net::issue_client(authority(), text, "home-1", 10); });
  attempt([&] { net::make_csr(text, "home-1"); });
  attempt([&] { net::fingerprint(text); });
  attempt([&] { net::client_name(text); });
  attempt([&] { net::hosts(text); });
  attempt([&] { net::subject(text); });
  attempt([&] { net::is_authority(text); });
  attempt([&] { net::validity(text); });
  attempt([&] { net::only_certificate(text); });
  attempt([&] { net::check_client(text, server.key_pem, authority().certificate_pem); });
  attempt([&] { net::check_server(server.certificate_pem, text, authority().certificate_pem); });
  attempt([&] { net::name_in_uri(text); });
  attempt([&] { net::host_kind(text); });
  fuzz::as_file("certs/tokens.json", text);
  attempt([&] { net::name_of_token(fuzz::scratch() / "certs", "a token"); });
  attempt([&] { net::name_of_token(fuzz::scratch(), text); });
  return 0;
}
