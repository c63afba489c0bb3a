// sotto ledger: what a run, or all runs of a home, have released and what it cost.
#include "privacy/ledger.h"

#include "artifacts/privacy_section.h"
#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/json_number.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/home_ledger.h"
#include "cli/output.h"
#include "privacy/home.h"
#include "privacy/spending.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr const char* kObservers[] = {"server", "clients"};
constexpr size_t kShownClients = 20;

struct LedgerOptions {
  std::string run;
  bool all = false;
  OutputOptions output;
};

std::string epsilon_text(const json& value) {
  return value.is_null() ? "∞" : fmt::format("{:.4g}", value.get<double>());
}

struct OpenRun {
  explicit OpenRun(const std::string& folder)
      : reader(folder), spec(run::load_spec({.config = folder, .overrides = {}})), ledger(reader.ledger()) {}

  double delta() const { return spec.privacy ? spec.privacy->delta : 1e-5; }

  artifacts::RunReader reader;
  config::RunSpec spec;
  std::unique_ptr<const privacy::Ledger> ledger;
};

json clients_json(const OpenRun& run, const std::vector<privacy::Event>& events) {
  std::map<int64_t, int64_t> releases;
  for (const auto& event : events) ++releases[event.client];
  std::map<std::string, std::vector<privacy::Guarantee>> seen;
  for (const char* observer : kObservers) {
    seen[observer] = privacy::guarantees(*run.ledger, observer, run.spec.data.clients, run.delta());
  }
  json clients = json::array();
  for (int64_t client = 0; client < run.spec.data.clients; ++client) {
    json row = {{"client", client},
                {"name", run.spec.client_name(client)},
                {"releases", releases[client] + releases[privacy::kEveryone]},
                {"budget", run.spec.privacy ? json(run.spec.privacy->budget_of(client)) : json(nullptr)}};
    for (const char* observer : kObservers) {
      const privacy::Guarantee& guarantee = seen[observer][static_cast<size_t>(client)];
      row[observer] = {{"claimed_epsilon", number_or_null(guarantee.claimed)},
                       {"proven_epsilon", number_or_null(guarantee.proven)}};
    }
    clients.push_back(std::move(row));
  }
  return clients;
}

// The largest proven ε of any client after each round.
json over_time_json(const OpenRun& run, const std::vector<privacy::Event>& events) {
  json rounds = json::array();
  std::map<std::string, std::map<int64_t, privacy::Tally>> spent;
  std::map<privacy::Tally, double> known;
  size_t next = 0;
  while (next < events.size()) {
    const int64_t round = events[next].round;
    std::set<int64_t> touched;
    for (; next < events.size() && events[next].round == round; ++next) {
      touched.insert(events[next].client);
      for (const char* observer : kObservers) {
        if (privacy::is_seen_by(events[next], observer)) spent[observer][events[next].client].add(events[next]);
      }
    }
    json row = {{"round", round}, {"participants", touched.size()}};
    for (const char* observer : kObservers) {
      double most = 0;
      const auto everyone = spent[observer].find(privacy::kEveryone);
      for (const auto& [client, tally] : spent[observer]) {
        privacy::Tally both = tally;
        if (client != privacy::kEveryone && everyone != spent[observer].end()) both.add(everyone->second);
        const auto place = known.find(both);
        most = std::max(most, place != known.end() ? place->second : known[both] = both.proven(run.delta()));
      }
      row[observer] = number_or_null(most);
    }
    rounds.push_back(std::move(row));
  }
  return rounds;
}

json kinds_json(const std::vector<privacy::Event>& events) {
  struct Kind {
    int64_t count = 0;
    std::set<int64_t> clients;
    double least_multiplier = INFINITY;
    double most_multiplier = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Kind> kinds;
  for (const auto& event : events) {
    Kind& kind = kinds[{event.what, event.observer, event.mechanism, event.why_unproven}];
    ++kind.count;
    kind.clients.insert(event.client);
    if (event.sensitivity > 0) {
      kind.least_multiplier = std::min(kind.least_multiplier, event.noise_scale / event.sensitivity);
      kind.most_multiplier = std::max(kind.most_multiplier, event.noise_scale / event.sensitivity);
    }
  }
  json rows = json::array();
  for (const auto& [key, kind] : kinds) {
    const auto& [what, observer, mechanism, why] = key;
    rows.push_back(
        {{"what", what},
         {"observer", observer},
         {"mechanism", mechanism},
         {"why_unproven", why.empty() ? json(nullptr) : json(why)},
         {"rows", kind.count},
         {"clients", kind.clients.contains(privacy::kEveryone) ? json("everyone") : json(kind.clients.size())},
         {"noise_multiplier", kind.most_multiplier > 0
                                  ? json{{"min", kind.least_multiplier}, {"max", kind.most_multiplier}}
                                  : json(nullptr)}});
  }
  return rows;
}

std::string multiplier_text(const json& value) {
  if (value.is_null()) return "–";
  const double low = value["min"], high = value["max"];
  return low == high ? fmt::format("{:.4g}", low) : fmt::format("{:.4g} to {:.4g}", low, high);
}

std::string show_text(const json& value, bool all) {
  const auto basis = value["basis"].get<std::string>();
  std::string text = fmt::format("{} rows, generator {}", value["rows"].dump(), value["noise"].get<std::string>());
  if (!value["basis_why"].is_null()) {
    text += fmt::format("; ε is {}: {}", basis, value["basis_why"].get<std::string>());
  }
  text += "\n";
  if (!value["terms"].is_null()) {
    const json& terms = value["terms"];
    const auto budgets = terms["budgets"].get<std::vector<double>>();
    const auto ends = std::minmax_element(budgets.begin(), budgets.end());
    const std::string promised = budgets.empty() ? terms["epsilon"].dump()
                                 : *ends.first == *ends.second
                                     ? fmt::format("{:.4g}", *ends.first)
                                     : fmt::format("{:.4g} to {:.4g}, by client,", *ends.first, *ends.second);
    text += fmt::format("terms: ε {} at δ {}, {} adjacency, one {}, against the {}\n", promised, terms["delta"].dump(),
                        terms["adjacency"].get<std::string>(), terms["unit"].get<std::string>(),
                        terms["observer"].get<std::string>());
  }
  Table kinds({"release", "seen by", "mechanism", "rows", "clients", "noise multiplier", "guarantee"});
  for (const json& kind : value["releases"]) {
    const json& clients = kind["clients"];
    kinds.add_row({kind["what"], kind["observer"], kind["mechanism"], kind["rows"].dump(),
                   clients.is_string() ? clients.get<std::string>() : clients.dump(),
                   multiplier_text(kind["noise_multiplier"]),
                   kind["why_unproven"].is_null() ? basis : "none: " + kind["why_unproven"].get<std::string>()});
  }
  text += fmt::format("\n{}", kinds.to_string(kLine));
  Table clients({"client", "releases", "budget ε", "claimed ε (server)", basis + " ε (server)", "claimed ε (clients)",
                 basis + " ε (clients)"});
  const json& rows = value["clients"];
  const size_t shown = all ? rows.size() : std::min(rows.size(), kShownClients);
  for (size_t i = 0; i < shown; ++i) {
    const json& row = rows[i];
    clients.add_row({row["name"].get<std::string>(), row["releases"].dump(),
                     row["budget"].is_null() ? "–" : fmt::format("{:.4g}", row["budget"].get<double>()),
                     epsilon_text(row["server"]["claimed_epsilon"]), epsilon_text(row["server"]["proven_epsilon"]),
                     epsilon_text(row["clients"]["claimed_epsilon"]), epsilon_text(row["clients"]["proven_epsilon"])});
  }
  text += fmt::format("\n{}", clients.to_string(kLine));
  if (shown < rows.size()) text += fmt::format("… and {} more clients (--all)\n", rows.size() - shown);
  Table time({"round", "participants", fmt::format("largest {} ε (server)", basis),
              fmt::format("largest {} ε (clients)", basis)});
  const json& rounds = value["over_time"];
  const size_t stride = all ? 1 : std::max<size_t>(1, rounds.size() / 10);
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (i % stride != 0 && i + 1 != rounds.size()) continue;
    time.add_row({rounds[i]["round"].dump(), rounds[i]["participants"].dump(), epsilon_text(rounds[i]["server"]),
                  epsilon_text(rounds[i]["clients"])});
  }
  return text + "\n" + time.to_string(kLine);
}

void show(const LedgerOptions& options) {
  if (privacy::Home::is_home(options.run)) {
    const json home = show_home(options.run);
    if (options.output.json) {
      print_json(home);
    } else {
      print_text(describe_home(home, options.all));
    }
    return;
  }
  const OpenRun run(options.run);
  const std::vector<privacy::Event> events = run.ledger->events();
  json terms = nullptr;
  if (run.spec.privacy) terms = run.spec.to_json()["privacy"];
  json value = {{"run", options.run},
                {"rows", run.ledger->rows()},
                {"head", run.ledger->head()},
                {"noise", run.ledger->generator()},
                {"terms", terms},
                {"releases", kinds_json(events)},
                {"clients", clients_json(run, events)},
                {"over_time", over_time_json(run, events)}};
  value.update(artifacts::basis_fields(run.spec, run.ledger->generator()));
  if (options.output.json) {
    print_json(value);
  } else {
    print_text(show_text(value, options.all));
  }
}

void check_budgets(const OpenRun& run) {
  if (!run.spec.privacy) return;
  const bool paper = run.spec.as_printed();
  const auto spent =
      privacy::guarantees(*run.ledger, settings::word(run.spec.privacy->observer), run.spec.data.clients, run.delta());
  for (size_t client = 0; client < spent.size(); ++client) {
    const double epsilon = paper ? spent[client].claimed : spent[client].proven;
    const double budget = run.spec.privacy->budget_of(static_cast<int64_t>(client));
    if (std::isfinite(epsilon) && epsilon > budget * (1 + 1e-9)) {
      fail_user("{} has spent ε = {:.6g}, more than its budget of {:.6g}",
                run.spec.client_name(static_cast<int64_t>(client)), epsilon, budget);
    }
  }
}

// The recomputed section must be the recorded one, to the last digit that JSON keeps.
void check_summary(const json& recorded, const json& recomputed) {
  for (const auto& [key, value] : recomputed.items()) {
    if (key == "basis_why" && recorded[key].is_null()) continue;  // earlier versions did not give a reason
    if (recorded.contains(key) && recorded[key] != value) {
      fail_user("the ledger does not give the summary's privacy.{}: recorded {}, recomputed {}", key,
                recorded[key].dump(), value.dump());
    }
  }
}

void verify(const LedgerOptions& options) {
  if (privacy::Home::is_home(options.run)) {
    const json home = verify_home(options.run);
    if (options.output.json) {
      print_json(home);
    } else {
      print_text(fmt::format("{} rows, chain intact, budgets kept over all runs\n", home["rows"].dump()));
    }
    return;
  }
  const OpenRun run(options.run);
  run.ledger->verify_chain();
  if (run.spec.privacy && run.ledger->terms() && *run.ledger->terms() != *run.spec.privacy) {
    fail_user("the ledger of {} was opened under other privacy terms than its config states", options.run);
  }
  check_budgets(run);
  const json section = artifacts::to_json(artifacts::privacy_summary(run.spec, *run.ledger));
  const auto summary = run.reader.summary();
  if (summary) {
    check_summary(artifacts::to_json(summary->privacy), section);
    if (run.reader.ledger_head() != run.ledger->head()) {
      fail_user("the ledger of {} is not the one its run finished with: ledger.head holds another last link",
                options.run);
    }
  }
  const json value = {{"run", options.run},
                      {"rows", run.ledger->rows()},
                      {"chain", "intact"},
                      {"summary", summary ? "matches" : "not written yet"},
                      {"privacy", section}};
  if (options.output.json) {
    print_json(value);
    return;
  }
  print_text(fmt::format("{} rows, chain intact, budgets kept; {}\n", run.ledger->rows(),
                         summary ? "ε recomputed from the rows equals summary.json" : "the run is not finished"));
}

void add_run_argument(Command& command, LedgerOptions& options) {
  command.option("RUN", options.run, "The run directory, or a home").required();
}

}  // namespace

void add_ledger(Command& program) {
  Command command =
      program.subcommand("ledger", "Show or verify what a run, or all runs of a home, released and what it cost");
  command.require_subcommand();
  auto shown = std::make_shared<LedgerOptions>();
  Command show_command = command.subcommand("show", "Releases, spending per client and observer, over time");
  add_run_argument(show_command, *shown);
  show_command.flag("--all", shown->all, "Every client and every round");
  add_output_options(show_command, shown->output, "Print everything as JSON");
  add_example(show_command, "sotto ledger show runs/first");
  show_command.callback([shown] { show(*shown); });

  auto verified = std::make_shared<LedgerOptions>();
  Command verify_command =
      command.subcommand("verify", "Check the chain of rows, the budgets, and ε against checkpoint and summary");
  add_run_argument(verify_command, *verified);
  add_output_options(verify_command, verified->output, "Print the outcome as JSON");
  add_example(verify_command, "sotto ledger verify runs/first");
  verify_command.callback([verified] { verify(*verified); });
}

}  // namespace sotto::cli
