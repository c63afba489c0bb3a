#include "artifacts/metrics.h"

#include "base/json_number.h"

#include <cmath>

namespace sotto::artifacts {
namespace {

using federation::ClientScore;
using nlohmann::json;

json spread_json(const federation::Evaluation& evaluation, double ClientScore::*score) {
  const federation::Spread spread = evaluation.over(score);
  json per_client = json::object();
  for (const auto& client : evaluation.clients) {
    per_client[std::to_string(client.client)] = number_or_null(client.*score);
  }
  return {{"mean", number_or_null(spread.mean)},
          {"std", number_or_null(spread.std)},
          {"worst", number_or_null(spread.worst)},
          {"per_client", std::move(per_client)}};
}

}  // namespace

json to_json(const federation::Evaluation& evaluation) {
  json value = {{"accuracy", spread_json(evaluation, &ClientScore::accuracy)},
                {"accuracy_global", number_or_null(evaluation.global_accuracy)},
                {"balanced_accuracy", spread_json(evaluation, &ClientScore::balanced_accuracy)},
                {"balanced_accuracy_global", number_or_null(evaluation.global_balanced_accuracy)}};
  const auto add_if_defined = [&](const char* name, double ClientScore::*score) {
    if (std::isfinite(evaluation.over(score).mean)) value[name] = spread_json(evaluation, score);
  };
  add_if_defined("auroc", &ClientScore::auroc);
  if (std::isfinite(evaluation.global_auroc)) value["auroc_global"] = evaluation.global_auroc;
  if (std::isfinite(evaluation.over(&ClientScore::neighbour_accuracy).mean)) {
    add_if_defined("local_accuracy", &ClientScore::local_accuracy);
    add_if_defined("neighbour_accuracy", &ClientScore::neighbour_accuracy);
  }
  if (evaluation.domain_accuracy.size() > 1) {
    json domains = json::object();
    for (const auto& [domain, accuracy] : evaluation.domain_accuracy) domains[domain] = number_or_null(accuracy);
    value["accuracy_per_domain"] = std::move(domains);
  }
  return value;
}

json to_json(const federation::RoundRecord& record) {
  json value = {{"round", record.round},
                {"cohort", record.cohort},
                {"uploads", record.uploads},
                {"samples", record.samples},
                {"upload_bytes", record.upload_bytes},
                {"noise", number_or_null(record.noise_norm)},
                {"seconds", record.seconds},
                {"evaluation_seconds", record.evaluation_seconds},
                {"diverged", record.diverged},
                {"abstained", record.abstained},
                {"train_loss", number_or_null(record.train_loss)}};
  for (const auto& [name, measure] : record.measures) value["measures"][name] = number_or_null(measure);
  if (record.evaluation) value["evaluation"] = to_json(*record.evaluation);
  return value;
}

}  // namespace sotto::artifacts
