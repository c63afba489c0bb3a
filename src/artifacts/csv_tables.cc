#include "artifacts/csv_tables.h"

#include "artifacts/privacy_section.h"
#include "base/files.h"
#include "base/text.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string line(const std::vector<std::string>& fields) {
  std::vector<std::string> cells;
  for (const std::string& field : fields) cells.push_back(quoted(field));
  return join(cells, ",") + "\n";
}

// Numbers as short as they can be read back.
std::string cell(const json& value) {
  if (value.is_null()) return "";
  if (value.is_array()) return std::to_string(value.size());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string cell(double value) {
  return fmt::format("{}", value);
}

// Scores that clients have of their own, in any of the rounds.
std::set<std::string> client_scores(const std::vector<json>& rounds) {
  std::set<std::string> names;
  for (const json& round : rounds) {
    if (!round.contains("evaluation")) continue;
    for (const auto& [name, score] : round["evaluation"].items()) {
      if (score.contains("per_client")) names.insert(name);
    }
  }
  return names;
}

// accuracy.mean → accuracy_mean; clients have a table of their own.
std::map<std::string, json> flat_evaluation(const json& evaluation) {
  std::map<std::string, json> flat;
  for (const auto& [name, score] : evaluation.items()) {
    if (!score.is_object()) {
      flat[name] = score;
      continue;
    }
    for (const auto& [part, value] : score.items()) {
      if (part != "per_client") flat[name + "_" + part] = value;
    }
  }
  return flat;
}

}  // namespace

CsvTable clients_csv(const RunReader& run, const config::RunSpec& spec) {
  const std::vector<json> rounds = run.rounds();
  const std::set<std::string> scores = client_scores(rounds);
  std::vector<std::string> header = {"round", "client"};
  const bool named = !spec.client_names.empty();
  if (named) header.emplace_back("name");
  header.insert(header.end(), scores.begin(), scores.end());
  header.insert(header.end(), {"claimed_epsilon", "proven_epsilon"});
  CsvTable table = {.text = line(header)};
  if (rounds.empty()) return table;
  const auto ledger = run.ledger();
  privacy::Spending spending = declared_spending(spec);
  for (const json& round : rounds) {
    if (!round.contains("evaluation")) continue;
    const json& evaluation = round["evaluation"];
    spending.advance_to(round["round"].get<int64_t>(), *ledger);
    std::set<int64_t> clients;
    for (const auto& [client, score] : evaluation["accuracy"]["per_client"].items()) clients.insert(std::stoll(client));
    for (const int64_t client : clients) {
      std::vector<std::string> row = {cell(round["round"]), std::to_string(client)};
      if (named) row.push_back(spec.client_name(client));
      for (const std::string& name : scores) {
        row.push_back(evaluation.contains(name) ? cell(evaluation[name]["per_client"][std::to_string(client)]) : "");
      }
      const privacy::Guarantee spent = spending.of(client);
      row.insert(row.end(), {cell(spent.claimed), cell(spent.proven)});
      table.text += line(row);
      ++table.rows;
    }
  }
  return table;
}

CsvTable rounds_csv(const RunReader& run, const config::RunSpec& spec) {
  const std::vector<json> rounds = run.rounds();
  const std::vector<std::string> always = {"round",    "cohort",    "uploads",           "upload_bytes",
                                           "samples",  "noise",     "train_loss",        "seconds",
                                           "diverged", "abstained", "evaluation_seconds"};
  std::set<std::string> scores;
  for (const json& round : rounds) {
    if (!round.contains("evaluation")) continue;
    for (const auto& [name, value] : flat_evaluation(round["evaluation"])) scores.insert(name);
  }
  std::vector<std::string> header = always;
  header.insert(header.end(), scores.begin(), scores.end());
  header.insert(header.end(), {"claimed_epsilon", "proven_epsilon"});
  CsvTable table = {.text = line(header)};
  if (rounds.empty()) return table;
  const auto ledger = run.ledger();
  privacy::Spending spending = declared_spending(spec);
  for (const json& round : rounds) {
    std::vector<std::string> row;
    for (const std::string& name : always) row.push_back(cell(round[name]));
    const auto flat =
        round.contains("evaluation") ? flat_evaluation(round["evaluation"]) : std::map<std::string, json>();
    for (const std::string& name : scores) row.push_back(flat.contains(name) ? cell(flat.at(name)) : "");
    spending.advance_to(round["round"].get<int64_t>(), *ledger);
    const privacy::Guarantee spent = spending.worst();
    row.insert(row.end(), {cell(spent.claimed), cell(spent.proven)});
    table.text += line(row);
    ++table.rows;
  }
  return table;
}

CsvTable ledger_csv(const RunReader& run) {
  CsvTable table = {
      .text = line(
          {"round",         "client",          "observer",  "what",  "mechanism", "why_unproven", "noise",
           "sensitivity",   "sampling_rate",   "batches",   "steps", "slack",     "claimed_by",   "claimed_multiplier",
           "claimed_steps", "claimed_epsilon", "adjacency", "unit",  "generator", "parameters"})};
  for (const privacy::Event& event : run.ledger()->events()) {
    ++table.rows;
    table.text += line({std::to_string(event.round),
                        std::to_string(event.client),
                        event.observer,
                        event.what,
                        event.mechanism,
                        event.why_unproven,
                        cell(event.noise_scale),
                        cell(event.sensitivity),
                        cell(event.sampling_rate),
                        std::to_string(event.batches),
                        std::to_string(event.steps),
                        cell(event.slack),
                        event.claim.by,
                        cell(event.claim.multiplier),
                        std::to_string(event.claim.steps),
                        cell(event.claim.epsilon),
                        std::string(privacy::to_text(event.neighbours.adjacency)),
                        event.neighbours.unit == privacy::Unit::kClient ? "client" : "record",
                        event.generator,
                        event.parameters});
  }
  return table;
}

}  // namespace sotto::artifacts
