#include "artifacts/summary.h"

#include "artifacts/privacy_section.h"
#include "base/json_number.h"
#include "federation/federation.h"
#include "methods/catalogue.h"

namespace sotto::artifacts {
using nlohmann::json;

json make_summary(const config::RunSpec& spec, const std::vector<json>& rounds, const privacy::Ledger& ledger) {
  double seconds = 0.0;
  double samples = 0.0;
  double noise = 0.0;
  int64_t upload_bytes = 0;
  int64_t diverged = 0;
  for (const json& round : rounds) {
    seconds += round["seconds"].get<double>();
    samples += round["samples"].get<double>();
    noise += round["noise"].is_null() ? federation::kUndefined : round["noise"].get<double>();
    upload_bytes += round["upload_bytes"].get<int64_t>();
    diverged += static_cast<int64_t>(round["diverged"].size());
  }
  json summary = rounds.back()["evaluation"];
  summary["rounds"] = spec.rounds;
  summary["seconds"] = seconds;
  summary["samples_per_second"] = seconds > 0 ? samples / seconds : 0.0;
  summary["diverged_steps"] = diverged;
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
  return summary;
}

}  // namespace sotto::artifacts
