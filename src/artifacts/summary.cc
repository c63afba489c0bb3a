#include "artifacts/summary.h"

#include "artifacts/ledger_mark.h"
#include "artifacts/metrics.h"
#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "federation/federation.h"
#include "methods/catalogue.h"

namespace sotto::artifacts {
namespace {

using nlohmann::json;

std::string summary_checksum(json summary) {
  summary.erase("checksum");
  return sha256(summary.dump());
}

}  // namespace

json make_summary(const config::RunSpec& spec, const std::vector<json>& rounds, const privacy::Ledger& ledger) {
  double seconds = 0.0;
  double samples = 0.0;
  double noise = 0.0;
  int64_t upload_bytes = 0;
  int64_t diverged = 0;
  json abstained = json::object();  // how often, by name
  for (const json& round : rounds) {
    seconds += round["seconds"].get<double>();
    samples += round["samples"].get<double>();
    noise += round["noise"].is_null() ? federation::kUndefined : round["noise"].get<double>();
    upload_bytes += round["upload_bytes"].get<int64_t>();
    for (const json& client : round.value("abstained", json::array())) {
      json& times = abstained[spec.client_name(client.get<int64_t>())];
      times = times.is_null() ? 1 : times.get<int64_t>() + 1;
    }
    diverged += static_cast<int64_t>(round["diverged"].size());
  }
  // Where models are tested at the clients' homes, nothing is known here.
  const bool evaluated = rounds.back().contains("evaluation");
  json summary = evaluated ? rounds.back()["evaluation"] : to_json(federation::Evaluation());
  summary["rounds"] = spec.rounds;
  summary["seconds"] = seconds;
  summary["samples_per_second"] = seconds > 0 ? samples / seconds : 0.0;
  summary["diverged_steps"] = diverged;
  summary["abstained"] = abstained;
  summary["upload_bytes"] = upload_bytes;
  summary["noise_total"] = number_or_null(noise);
  summary["privacy"] = privacy_section(spec, ledger);
  summary["config_hash"] = spec.hash();
  summary["noise"] = ledger.generator();
  summary["name"] = spec.name;
  summary["seed"] = spec.seed;
  summary["dataset"] = spec.data.name;
  summary["model"] = methods::trained_model_name(spec);
  summary["method"] = spec.method;
  summary["variant"] = settings::word(spec.variant);
  summary["checksum"] = summary_checksum(summary);
  return summary;
}

fs::path summary_file(const fs::path& run) {
  return run / "summary.json";
}

std::optional<json> read_summary(const fs::path& run) {
  const fs::path file = summary_file(run);
  if (!fs::exists(file)) return std::nullopt;
  json summary = json::parse(read_file(file), nullptr, false);
  if (!summary.is_object()) fail_user("{} is damaged; delete it and resume the run", file.string());
  if (summary.contains("checksum") && summary["checksum"] != summary_checksum(summary)) {
    fail_user("{} was changed: it does not fit its checksum; delete it and resume the run", file.string());
  }
  for (const char* key : {"accuracy", "dataset", "method", "privacy", "rounds", "seconds", "seed"}) {
    if (!summary.contains(key)) {
      fail_user("{} is damaged: it has no '{}'; delete it and resume the run", file.string(), key);
    }
  }
  require_ledger(run);
  return summary;
}

}  // namespace sotto::artifacts
