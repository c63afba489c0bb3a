#include "report/run_document.h"

#include "artifacts/find_runs.h"
#include "artifacts/ledger_snapshot.h"
#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "methods/catalogue.h"
#include "report/run_extras.h"

#include <cmath>
#include <set>

namespace sotto::report {
namespace {

using nlohmann::json;

json rounded(const json& value) {
  return value.is_number() ? json(std::round(value.get<double>() * 1e4) / 1e4) : json(nullptr);
}

json size_or_null(const json& value) {
  return value.is_array() ? json(value.size()) : json(nullptr);
}

json round_columns(const std::vector<json>& rounds) {
  json columns = {{"round", json::array()}};
  for (const json& line : rounds) {
    for (const char* key : {"round", "train_loss", "seconds", "evaluation_seconds", "cohort", "uploads"}) {
      columns[key].push_back(line.value(key, json(nullptr)));
    }
    for (const char* key : {"abstained", "diverged"}) columns[key].push_back(size_or_null(line.value(key, json())));
  }
  return columns;
}

// Clients by number, as far as they are listed; keys of JSON objects are sorted as text.
std::vector<int64_t> listed_clients(const std::vector<json>& evaluations) {
  std::set<int64_t> clients;
  for (const json& evaluation : evaluations) {
    for (const auto& [client, score] : evaluation["accuracy"]["per_client"].items()) clients.insert(std::stoll(client));
  }
  std::vector<int64_t> listed(clients.begin(), clients.end());
  if (listed.size() > static_cast<size_t>(kListedClients)) listed.resize(static_cast<size_t>(kListedClients));
  return listed;
}

json measure_columns(const std::vector<json>& evaluations, const std::string& name,
                     const std::vector<int64_t>& clients) {
  json measure = {{"clients", clients}};
  for (const char* key : {"mean", "std", "worst", "global"}) measure[key] = json::array();
  std::vector<json> values(clients.size(), json::array());
  for (const json& evaluation : evaluations) {
    const json scores = evaluation.value(name, json::object());
    for (const char* key : {"mean", "std", "worst"}) measure[key].push_back(scores.value(key, json(nullptr)));
    measure["global"].push_back(evaluation.value(name + "_global", json(nullptr)));
    const json per_client = scores.value("per_client", json::object());
    for (size_t i = 0; i < clients.size(); ++i) {
      values[i].push_back(rounded(per_client.value(std::to_string(clients[i]), json(nullptr))));
    }
  }
  measure["values"] = std::move(values);
  return measure;
}

json evaluation_columns(const std::vector<json>& rounds) {
  std::vector<json> evaluations;
  json columns = {{"round", json::array()}, {"measures", json::object()}, {"domains", json::object()}};
  for (const json& line : rounds) {
    if (!line.contains("evaluation")) continue;
    evaluations.push_back(line["evaluation"]);
    columns["round"].push_back(line["round"]);
  }
  if (evaluations.empty()) return columns;
  const std::vector<int64_t> clients = listed_clients(evaluations);
  for (const char* name : {"accuracy", "balanced_accuracy", "auroc", "local_accuracy", "neighbour_accuracy",
                           "validation_accuracy", "global_test_accuracy"}) {
    if (evaluations.back().contains(name)) columns["measures"][name] = measure_columns(evaluations, name, clients);
  }
  if (!evaluations.back().contains("accuracy_per_domain")) return columns;
  for (const auto& [domain, last] : evaluations.back()["accuracy_per_domain"].items()) {
    for (const json& evaluation : evaluations) {
      columns["domains"][domain].push_back(
          evaluation.value("accuracy_per_domain", json::object()).value(domain, json(nullptr)));
    }
  }
  return columns;
}

json privacy_columns(const artifacts::RunReader& run, const config::RunSpec& spec,
                     const std::optional<artifacts::RunSummary>& summary, privacy::GuaranteeCache& cache) {
  try {
    const artifacts::LedgerSnapshot ledger(run.folder());
    const std::vector<privacy::Event> events = ledger->events();
    json columns = {{"terms", spec.privacy ? spec.to_json()["privacy"] : json(nullptr)},
                    {"rows", ledger->rows()},
                    {"views", spending_over_time(spec, events, cache)},
                    {"noise", noise_by_group(events)},
                    {"kinds", release_kinds(events)}};
    columns.update(artifacts::basis_fields(spec, ledger->generator()));
    return columns;
  } catch (const UserError& error) {
    const privacy::Basis basis = summary ? summary->privacy.basis : privacy::Basis::kSimulated;
    return {{"problem", error.what()}, {"basis", settings::word(basis)}};
  }
}

}  // namespace

config::RunSpec spec_of(const artifacts::RunReader& run) {
  return config::load_run_spec(run.folder() / "config.toml", {});
}

json run_document(const artifacts::RunReader& run, const std::string& id, privacy::GuaranteeCache& cache) {
  const config::RunSpec spec = spec_of(run);
  const std::string state = artifacts::to_string(artifacts::state_of(run.folder()));
  const std::vector<json> rounds = run.rounds();
  const auto summary = run.summary();
  json document = {{"id", id},
                   {"name", spec.name.empty() ? id : spec.name},
                   {"state", state},
                   {"client_names", spec.client_names},
                   {"hash", spec.hash()},
                   {"config", spec.to_json()},
                   {"config_toml", run.config_toml()},
                   {"rounds_done", rounds.size()},
                   {"summary", summary ? artifacts::to_json(*summary) : json(nullptr)},
                   {"rounds", round_columns(rounds)},
                   {"evaluations", evaluation_columns(rounds)},
                   {"privacy", privacy_columns(run, spec, summary, cache)}};
  document.update(run_extras(run.folder(), spec));
  return document;
}

}  // namespace sotto::report
