// sotto enrol: a client's key, and a certificate for it: over the network by a token, or by files.
#include "base/error.h"
#include "base/files.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "net/certificates.h"
#include "net/key_folders.h"
#include "remote/authority.h"
#include "remote/client.h"
#include "remote/grpc_log.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

namespace sotto::cli {
namespace {

struct EnrolOptions {
  fs::path home;
  std::string name;
  fs::path request;
  fs::path certificate;
  fs::path authority;
  std::string server;
  std::string token;
  std::string fingerprint;
  OutputOptions output;
};

void write_request(const EnrolOptions& options) {
  if (fs::exists(options.request)) {
    fail_user("{} is there already and is not overwritten; name another file by --request", options.request.string());
  }
  write_file_atomically(options.request, net::make_request_at(options.home, options.name));
  print_text(fmt::format("wrote {}; send it to the federation's owner. The key stays in {}.\n",
                         options.request.string(), (options.home / "client.key").string()));
}

void print_enrolled(const fs::path& home, const std::string& advice) {
  const net::Identity identity = net::read_identity(home);
  print_text(fmt::format(
      "{} is enrolled as {}\n"
      "authority    {}\n"
      "{}",
      home.string(), net::client_name(identity.certificate_pem), net::fingerprint(identity.authority_pem), advice));
}

void install(const EnrolOptions& options) {
  const std::string authority = net::read_certificate_file(options.authority);
  net::install_certificate(options.home, net::read_certificate_file(options.certificate), authority);
  print_enrolled(
      options.home,
      "Ask the federation's owner, on another way than these files came, whether that is its fingerprint.\n");
}

// What is on a command line, others on this machine can read: "-" takes the token from standard input.
std::string token_of(const EnrolOptions& options) {
  if (options.token != "-") return options.token;
  std::string token;
  std::getline(std::cin, token);
  return token;
}

bool is_fingerprint(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void enrol_at_server(const EnrolOptions& options) {
  if (options.name.empty() || options.token.empty()) {
    fail_user("--server goes with --name and --token, both of which the federation's owner has sent");
  }
  if (options.authority.empty() == options.fingerprint.empty()) {
    fail_user("--server needs either --authority FILE or --fingerprint, to know the federation's server by");
  }
  if (!options.fingerprint.empty() && !is_fingerprint(options.fingerprint)) {
    fail_user("--fingerprint is 64 of 0-9 and a-f, the last word of what `sotto certs token` prints");
  }
  remote::silence_grpc();
  try {
    const std::string authority = options.authority.empty()
                                      ? remote::find_authority(options.server, options.fingerprint)
                                      : net::read_certificate_file(options.authority);
    const std::string request = net::make_request_at(options.home, options.name);
    net::install_certificate(options.home, remote::enrol(options.server, authority, token_of(options), request),
                             authority);
  } catch (const remote::Unreachable& problem) {
    fail_user("{}", problem.what());
  }
  print_enrolled(options.home, "");
}

void enrol(const EnrolOptions& options) {
  if (!options.server.empty()) {
    if (!options.request.empty() || !options.certificate.empty()) {
      fail_user("--server enrols over the network: --request and --certificate are for enrolment by files");
    }
    return enrol_at_server(options);
  }
  if (!options.token.empty() || !options.fingerprint.empty()) {
    fail_user("--token and --fingerprint go with --server ADDRESS");
  }
  const bool asks = !options.name.empty() && !options.request.empty();
  const bool brings = !options.certificate.empty() && !options.authority.empty();
  const bool any_asks = !options.name.empty() || !options.request.empty();
  const bool any_brings = !options.certificate.empty() || !options.authority.empty();
  if (asks && !any_brings) return write_request(options);
  if (brings && !any_asks) return install(options);
  fail_user(
      "give --name and --request to ask for a certificate, or --certificate and --authority to install it; or "
      "--server, "
      "--name, --token and --fingerprint to do both over the network");
}

}  // namespace

void add_enrol(Command& program) {
  Command command = program.subcommand("enrol", "Ask for a client's certificate, and install it at its home");
  const auto options = std::make_shared<EnrolOptions>();
  command.option("HOME", options->home, "The client's folder; its key is made there and never leaves it").required();
  command.option("--name", options->name, "The client's name, a-z, 0-9 and hyphen");
  command.option("--request", options->request, "To ask: the file to write and send");
  command.option("--certificate", options->certificate, "To install: the certificate that came back");
  command.option("--authority", options->authority, "The authority's certificate");
  command.option("--server", options->server, "Over the network: where the server hands out certificates");
  command.option("--token", options->token, "Over the network: the one-time token; - reads it from standard input");
  command.option("--fingerprint", options->fingerprint,
                 "Over the network: the authority's, instead of its certificate");
  add_output_options(command, options->output, "");
  add_example(command, "sotto enrol home --server fl.example.org:7444 --name clinic-a --token - --fingerprint 3f9a…");
  command.callback([options] { enrol(*options); });
}

}  // namespace sotto::cli
