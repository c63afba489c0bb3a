#include "cli/home_ledger.h"

#include "base/error.h"
#include "base/json_number.h"
#include "base/table.h"
#include "cli/output.h"
#include "privacy/basis.h"
#include "privacy/home.h"
#include "privacy/spending.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr size_t kShownClients = 20;

// What clients have spent in one run, or in all of them.
struct Account {
  Account(const std::string& observer, double delta) : spending(observer, delta) {}

  void take(const privacy::Event& event) {
    spending.take(event);
    ++rows;
    ++releases[event.client];
  }
  int64_t releases_of(int64_t client) const {
    int64_t count = 0;
    for (const int64_t payer : {client, privacy::kEveryone}) {
      const auto found = releases.find(payer);
      if (found != releases.end()) count += found->second;
    }
    return count;
  }

  privacy::Spending spending;
  int64_t rows = 0;
  std::map<int64_t, int64_t> releases;
};

json clients_of(Account& account, const privacy::Home& home) {
  json clients = json::array();
  for (int64_t client = 0; client < home.records().clients; ++client) {
    const double spent = account.spending.of(client).proven;
    const double budget = home.terms().budget_of(client);
    clients.push_back({{"client", client},
                       {"releases", account.releases_of(client)},
                       {"budget", budget},
                       {"spent", number_or_null(spent)},
                       {"left", std::max(0.0, budget - spent)}});
  }
  return clients;
}

double largest_spent(const json& clients) {
  double largest = 0;
  for (const json& client : clients) {
    largest = std::max(largest, client["spent"].is_null() ? INFINITY : client["spent"].get<double>());
  }
  return largest;
}

std::string number_text(const json& value) {
  return value.is_null() ? "∞" : fmt::format("{:.4g}", value.get<double>());
}

}  // namespace

json show_home(const std::filesystem::path& folder) {
  const privacy::Home home(folder);
  const std::string observer = settings::word(home.terms().observer);
  Account total(observer, home.terms().delta);
  std::map<std::string, Account> of_run;
  for (const privacy::Event& event : home.ledger().events()) {
    total.take(event);
    of_run.try_emplace(event.run, observer, home.terms().delta).first->second.take(event);
  }
  json runs = json::array();
  for (auto& [name, account] : of_run) {
    json clients = clients_of(account, home);
    for (json& client : clients) {
      client.erase("budget");
      client.erase("left");
    }
    const double largest = largest_spent(clients);
    runs.push_back({{"run", name},
                    {"rows", account.rows},
                    {"largest_spent", number_or_null(largest)},
                    {"clients", std::move(clients)}});
  }
  const std::string generator = home.ledger().generator();
  return {{"home", home.folder().string()},
          {"records", home.records().name},
          {"rows", home.ledger().rows()},
          {"head", home.ledger().head()},
          {"noise", generator},
          {"basis", settings::word(privacy::basis_of(generator))},
          {"terms",
           {{"epsilon", home.terms().epsilon},
            {"delta", home.terms().delta},
            {"adjacency", settings::word(home.terms().adjacency)},
            {"unit", settings::word(home.terms().unit)},
            {"observer", observer},
            {"budgets", home.terms().budgets}}},
          {"runs", std::move(runs)},
          {"clients", clients_of(total, home)}};
}

std::string describe_home(const json& shown, bool all) {
  const json& terms = shown["terms"];
  const auto basis = shown["basis"].get<std::string>();
  std::string text = fmt::format(
      "home of {}: {} rows of {} runs, generator {}\n"
      "over all runs: ε = {} at δ = {}, {} adjacency, one {}, against the {}\n",
      shown["records"].get<std::string>(), shown["rows"].dump(), shown["runs"].size(),
      shown["noise"].get<std::string>(), terms["epsilon"].dump(), terms["delta"].dump(),
      terms["adjacency"].get<std::string>(), terms["unit"].get<std::string>(), terms["observer"].get<std::string>());
  Table runs({"run", "rows", fmt::format("largest {} ε", basis)});
  for (const json& run : shown["runs"]) {
    runs.add_row({run["run"], run["rows"].dump(), number_text(run["largest_spent"])});
  }
  Table clients({"client", "releases", "budget ε", fmt::format("spent ({}) ε", basis), "left"});
  const json& rows = shown["clients"];
  const size_t count = all ? rows.size() : std::min(rows.size(), kShownClients);
  for (size_t i = 0; i < count; ++i) {
    clients.add_row({rows[i]["client"].dump(), rows[i]["releases"].dump(), number_text(rows[i]["budget"]),
                     number_text(rows[i]["spent"]), number_text(rows[i]["left"])});
  }
  text += fmt::format("\n{}\n{}", runs.to_string(kLine), clients.to_string(kLine));
  if (count < rows.size()) text += fmt::format("… and {} more clients (--all)\n", rows.size() - count);
  return text;
}

json verify_home(const std::filesystem::path& folder) {
  const privacy::Home home(folder);
  home.ledger().verify_chain();
  const std::vector<privacy::Guarantee> spent = privacy::guarantees(
      home.ledger(), settings::word(home.terms().observer), home.records().clients, home.terms().delta);
  for (size_t client = 0; client < spent.size(); ++client) {
    const double budget = home.terms().budget_of(static_cast<int64_t>(client));
    if (spent[client].proven > budget * (1 + 1e-9)) {
      fail_user("client {} has spent ε = {:.6g}, more than the {:.6g} that its home allows over all runs", client,
                spent[client].proven, budget);
    }
  }
  return {{"home", home.folder().string()}, {"rows", home.ledger().rows()}, {"chain", "intact"}, {"budgets", "kept"}};
}

}  // namespace sotto::cli
