// sotto enrol: a client's key, the request for its certificate, and the certificate once it came.
#include "base/error.h"
#include "base/files.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "net/certificates.h"
#include "net/key_folders.h"

#include <fmt/format.h>

#include <filesystem>
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

void install(const EnrolOptions& options) {
  const std::string authority = net::read_certificate_file(options.authority);
  net::install_certificate(options.home, net::read_certificate_file(options.certificate), authority);
  print_text(fmt::format(
      "{} is enrolled as {}\n"
      "authority    {}\n"
      "Ask the federation's owner, on another way than these files came, whether that is its fingerprint.\n",
      options.home.string(), net::client_name(net::read_identity(options.home).certificate_pem),
      net::fingerprint(authority)));
}

void enrol(const EnrolOptions& options) {
  const bool asks = !options.name.empty() && !options.request.empty();
  const bool brings = !options.certificate.empty() && !options.authority.empty();
  const bool any_asks = !options.name.empty() || !options.request.empty();
  const bool any_brings = !options.certificate.empty() || !options.authority.empty();
  if (asks && !any_brings) return write_request(options);
  if (brings && !any_asks) return install(options);
  fail_user("give --name and --request to ask for a certificate, or --certificate and --authority to install it");
}

}  // namespace

void add_enrol(Command& program) {
  Command command = program.subcommand("enrol", "Ask for a client's certificate, and install it at its home");
  const auto options = std::make_shared<EnrolOptions>();
  command.option("HOME", options->home, "The client's folder; its key is made there and never leaves it").required();
  command.option("--name", options->name, "To ask: the client's name, a-z, 0-9 and hyphen");
  command.option("--request", options->request, "To ask: the file to write and send");
  command.option("--certificate", options->certificate, "To install: the certificate that came back");
  command.option("--authority", options->authority, "To install: the authority's certificate");
  add_output_options(command, options->output, "");
  add_example(command, "sotto enrol home --name clinic-a --request clinic-a.csr");
  command.callback([options] { enrol(*options); });
}

}  // namespace sotto::cli
