#include "artifacts/summary.h"

#include "artifacts/ledger_mark.h"
#include "artifacts/metrics.h"
#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "federation/federation.h"
#include "methods/catalogue.h"

#include <algorithm>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

std::string summary_checksum(json summary) {
  summary.erase("checksum");
  return sha256(summary.dump());
}

// Of the rounds that were evaluated among the last ten.
LastTen mean_of_last_ten(const std::vector<json>& rounds) {
  constexpr size_t kTen = 10;
  std::vector<double> accuracy, global, everywhere, local, neighbours;
  for (size_t i = rounds.size() - std::min(rounds.size(), kTen); i < rounds.size(); ++i) {
    if (!rounds[i].contains("evaluation")) continue;
    const federation::Evaluation scores = evaluation(rounds[i]["evaluation"]);
    accuracy.push_back(scores.over(&federation::ClientScore::accuracy).mean);
    global.push_back(scores.global_accuracy);
    everywhere.push_back(scores.over(&federation::ClientScore::global_test_accuracy).mean);
    local.push_back(scores.over(&federation::ClientScore::local_accuracy).mean);
    neighbours.push_back(scores.over(&federation::ClientScore::neighbour_accuracy).mean);
  }
  return {.evaluations = static_cast<int64_t>(accuracy.size()),
          .accuracy = federation::spread(accuracy).mean,
          .accuracy_global = federation::spread(global).mean,
          .global_test_accuracy = federation::spread(everywhere).mean,
          .local_accuracy = federation::spread(local).mean,
          .neighbour_accuracy = federation::spread(neighbours).mean};
}

}  // namespace

RunSummary make_summary(const config::RunSpec& spec, const std::vector<json>& rounds, const privacy::Ledger& ledger) {
  RunSummary summary = {.name = spec.name,
                        .dataset = spec.data.name,
                        .model = methods::trained_model_name(spec),
                        .method = spec.method,
                        .variant = settings::word(spec.variant),
                        .noise = ledger.generator(),
                        .config_hash = spec.hash(),
                        .seed = spec.seed,
                        .rounds = spec.rounds,
                        .noise_total = 0,
                        .privacy = privacy_summary(spec, ledger)};
  double samples = 0;
  for (const json& round : rounds) {
    summary.seconds += round["seconds"].get<double>();
    samples += round["samples"].get<double>();
    summary.noise_total += round["noise"].is_null() ? federation::kUndefined : round["noise"].get<double>();
    summary.upload_bytes += round["upload_bytes"].get<int64_t>();
    for (const json& client : round.value("abstained", json::array())) {
      ++summary.abstained[spec.client_name(client.get<int64_t>())];
    }
    summary.diverged_steps += static_cast<int64_t>(round["diverged"].size());
  }
  if (summary.seconds > 0) summary.samples_per_second = samples / summary.seconds;
  // Where models are tested at the clients' homes, nothing is known here.
  if (rounds.back().contains("evaluation")) summary.evaluation = evaluation(rounds.back()["evaluation"]);
  summary.last_ten = mean_of_last_ten(rounds);
  return summary;
}

json summary_document(const RunSummary& summary) {
  json document = to_json(summary);
  document["checksum"] = summary_checksum(document);
  return document;
}

fs::path summary_file(const fs::path& run) {
  return run / "summary.json";
}

std::optional<RunSummary> read_summary(const fs::path& run) {
  const fs::path file = summary_file(run);
  if (!fs::exists(file)) return std::nullopt;
  const json document = json::parse(read_file(file), nullptr, false);
  if (!document.is_object()) fail_user("{} is damaged; delete it and resume the run", file.string());
  if (document.contains("checksum") && document["checksum"] != summary_checksum(document)) {
    fail_user("{} was changed: it does not fit its checksum; delete it and resume the run", file.string());
  }
  std::optional<RunSummary> summary;
  try {
    summary = run_summary(document);
  } catch (const UserError& error) {
    fail_user("{} is damaged: {}; delete it and resume the run", file.string(), error.what());
  }
  require_ledger(run);
  return summary;
}

}  // namespace sotto::artifacts
