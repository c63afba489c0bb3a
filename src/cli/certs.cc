// sotto certs: the authority of a federation, its server's certificate, and what lets clients in.
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "net/certificates.h"
#include "net/key_folders.h"
#include "net/names.h"
#include "net/revocations.h"
#include "net/tokens.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr int kMostDays = 36500;
constexpr int64_t kSecondsPerDay = 86400;

struct ServerOptions {
  fs::path folder;
  std::string name;
  std::vector<std::string> hosts;
  int days = 3650;
  OutputOptions output;
};

struct TokenOptions {
  fs::path folder;
  std::vector<std::string> names;
  int days = 7;
  OutputOptions output;
};

struct RevokeOptions {
  fs::path folder;
  std::vector<std::string> names;
  OutputOptions output;
};

struct IssueOptions {
  fs::path folder;
  fs::path request;
  std::string name;
  fs::path out;
  int days = 365;
  OutputOptions output;
};

struct ShowOptions {
  fs::path file;
  OutputOptions output;
};

std::string time_text(int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

void init(const ServerOptions& options) {
  net::make_authority_folder(options.folder, options.name, options.hosts, options.days);
  const std::string authority = net::read_authority(options.folder).certificate_pem;
  print_text(
      fmt::format("authority    {}, valid until {}\n"
                  "fingerprint  {}\n"
                  "server       {}, for {}\n"
                  "Keep {} to yourself: whoever has it can let clients in.\n",
                  options.name, time_text(net::validity(authority).not_after), net::fingerprint(authority),
                  (options.folder / "server.pem").string(), join(options.hosts, ", "),
                  (options.folder / "authority.key").string()));
}

void renew_server(const ServerOptions& options) {
  net::renew_server(options.folder, options.hosts, options.days);
  const int64_t until = net::validity(net::read_server(options.folder).certificate_pem).not_after;
  print_text(fmt::format("server       {}, for {}, valid until {}\n", (options.folder / "server.pem").string(),
                         join(options.hosts, ", "), time_text(until)));
}

// All names are looked at before the first token is made.
void token(const TokenOptions& options) {
  const std::set<std::string> names(options.names.begin(), options.names.end());
  for (const std::string& name : names) net::check_name(name, "a client");
  const std::string authority = net::fingerprint(net::read_authority(options.folder).certificate_pem);
  const int64_t expires = std::time(nullptr) + options.days * kSecondsPerDay;
  json tokens = json::array();
  for (const std::string& name : names) {
    tokens.push_back({{"name", name},
                      {"token", net::add_token(options.folder, name, expires)},
                      {"authority", authority},
                      {"expires", expires}});
  }
  if (options.output.json) return print_json(tokens);
  for (const json& made : tokens) {
    fmt::print("{} {} {}\n", made["name"].get<std::string>(), made["token"].get<std::string>(), authority);
  }
}

void issue(const IssueOptions& options) {
  const fs::path out = options.out.empty() ? fs::path(options.request).replace_extension(".pem") : options.out;
  if (fs::exists(out))
    fail_user("{} is there already and is not overwritten; name another file by --out", out.string());
  try {
    write_file_atomically(out, net::issue_client(net::read_authority(options.folder), read_file(options.request),
                                                 options.name, options.days));
  } catch (const net::RequestRefused& refused) {
    fail_user("{}: {}", options.request.string(), refused.what());
  }
  print_text(fmt::format("wrote {}; send it to {} together with {}\n", out.string(), options.name,
                         (options.folder / "authority.pem").string()));
}

void revoke(const RevokeOptions& options) {
  for (const std::string& name : options.names) net::check_name(name, "a client");
  net::read_certificate_file(options.folder / "authority.pem");
  for (const std::string& name : options.names) {
    net::revoke_client(options.folder, name);
    print_text(fmt::format("{}: what was issued until now is refused from the next call on\n", name));
  }
}

json describe(const std::string& certificate) {
  const net::Validity validity = net::validity(certificate);
  return {{"subject", net::subject(certificate)},        {"authority", net::is_authority(certificate)},
          {"client", net::client_name(certificate)},     {"hosts", net::hosts(certificate)},
          {"not_before", validity.not_before},           {"not_after", validity.not_after},
          {"fingerprint", net::fingerprint(certificate)}};
}

std::string what_it_is(const json& described) {
  if (described["authority"].get<bool>()) return "authority";
  if (const auto client = described["client"].get<std::string>(); !client.empty()) return "client " + client;
  const auto hosts = described["hosts"].get<std::vector<std::string>>();
  return hosts.empty() ? "neither an authority, a server nor a client" : "server " + join(hosts, ", ");
}

void show(const ShowOptions& options) {
  const json described = describe(net::read_certificate_file(options.file));
  if (options.output.json) return print_json(described);
  const auto until = described["not_after"].get<int64_t>();
  print_text(fmt::format(
      "certificate  {}\n"
      "subject      {}\n"
      "valid        {} to {}{}\n"
      "fingerprint  {}\n",
      what_it_is(described), described["subject"].get<std::string>(), time_text(described["not_before"].get<int64_t>()),
      time_text(until), until <= std::time(nullptr) ? " (expired)" : "", described["fingerprint"].get<std::string>()));
}

void add_server_options(Command& command, ServerOptions& options) {
  command.option("--host", options.hosts, "A DNS name or an address that clients reach the server by; may be repeated")
      .repeatable()
      .required();
  command.option("--days", options.days, "How long certificates are valid").range(1, kMostDays).shows_default();
}

void add_init(Command& parent) {
  Command command = parent.subcommand("init", "Make a federation's authority and its server's certificate");
  const auto options = std::make_shared<ServerOptions>();
  command.option("DIR", options->folder, "The folder for keys and certificates").required();
  command.option("--name", options->name, "The federation's name: a-z, 0-9 and hyphen").required();
  add_server_options(command, *options);
  add_output_options(command, options->output, "");
  add_example(command, "sotto certs init certs --name north-hospitals --host fl.example.org --host 192.0.2.7");
  command.callback([options] { init(*options); });
}

void add_server(Command& parent) {
  Command command =
      parent.subcommand("server", "Make the server's key and certificate anew, for other hosts or longer");
  const auto options = std::make_shared<ServerOptions>();
  command.option("DIR", options->folder, "The folder that sotto certs init made").required();
  add_server_options(command, *options);
  add_output_options(command, options->output, "");
  add_example(command, "sotto certs server certs --host fl2.example.org");
  command.callback([options] { renew_server(*options); });
}

void add_token(Command& parent) {
  Command command = parent.subcommand("token", "Let clients enrol: print NAME TOKEN AUTHORITY_FINGERPRINT for each");
  const auto options = std::make_shared<TokenOptions>();
  command.option("DIR", options->folder, "The folder that sotto certs init made").required();
  command.option("NAME", options->names, "Names of clients: a-z, 0-9 and hyphen").required();
  command.option("--days", options->days, "How long the tokens are good").range(1, 365).shows_default();
  add_output_options(command, options->output, "Print a list of {name, token, authority, expires}");
  add_example(command, "sotto certs token certs clinic-a clinic-b");
  command.callback([options] { token(*options); });
}

void add_issue(Command& parent) {
  Command command = parent.subcommand("issue", "Issue the certificate that a client's request file asks for");
  const auto options = std::make_shared<IssueOptions>();
  command.option("DIR", options->folder, "The folder that sotto certs init made").required();
  command.option("REQUEST", options->request, "The file that sotto enrol --request wrote").required();
  command.option("--name", options->name, "The client that sent it, as you know it").required();
  command.option("-o,--out", options->out, "Where to write the certificate; default: the request's name with .pem");
  command.option("--days", options->days, "How long it is valid").range(1, kMostDays).shows_default();
  add_output_options(command, options->output, "");
  add_example(command, "sotto certs issue certs clinic-a.csr --name clinic-a");
  command.callback([options] { issue(*options); });
}

void add_revoke(Command& parent) {
  Command command = parent.subcommand("revoke", "Shut clients out: their certificates and tokens are good no longer");
  const auto options = std::make_shared<RevokeOptions>();
  command.option("DIR", options->folder, "The folder that sotto serve has as --certs").required();
  command.option("NAME", options->names, "Names of clients").required();
  add_output_options(command, options->output, "");
  add_example(command, "sotto certs revoke certs clinic-a");
  command.callback([options] { revoke(*options); });
}

void add_show(Command& parent) {
  Command command = parent.subcommand("show", "What a certificate says: names, validity, fingerprint");
  const auto options = std::make_shared<ShowOptions>();
  command.option("FILE", options->file, "A certificate in PEM form").required();
  add_output_options(command, options->output,
                     "Print {subject, authority, client, hosts, not_before, not_after, fingerprint}");
  add_example(command, "sotto certs show certs/authority.pem");
  command.callback([options] { show(*options); });
}

}  // namespace

void add_certs(Command& program) {
  Command command = program.subcommand("certs", "Keys and certificates of a federation between machines");
  command.require_subcommand();
  add_example(command, "sotto certs init certs --name north-hospitals --host fl.example.org");
  add_init(command);
  add_server(command);
  add_token(command);
  add_issue(command);
  add_revoke(command);
  add_show(command);
}

}  // namespace sotto::cli
