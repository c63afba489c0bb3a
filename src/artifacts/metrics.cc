#include "artifacts/metrics.h"

#include "base/error.h"
#include "base/json_number.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace sotto::artifacts {
namespace {

using federation::ClientScore;
using nlohmann::json;

// As they are called in files.
constexpr std::pair<const char*, double ClientScore::*> kScores[] = {
    {"accuracy", &ClientScore::accuracy},
    {"balanced_accuracy", &ClientScore::balanced_accuracy},
    {"auroc", &ClientScore::auroc},
    {"local_accuracy", &ClientScore::local_accuracy},
    {"neighbour_accuracy", &ClientScore::neighbour_accuracy},
    {"validation_accuracy", &ClientScore::validation_accuracy},
    {"global_test_accuracy", &ClientScore::global_test_accuracy}};

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
  add_if_defined("validation_accuracy", &ClientScore::validation_accuracy);
  add_if_defined("global_test_accuracy", &ClientScore::global_test_accuracy);
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

federation::Evaluation evaluation(const json& value) {
  if (!value.contains("accuracy")) fail_user("it has no 'accuracy'");
  const auto number = [](const json& cell) { return cell.is_number() ? cell.get<double>() : federation::kUndefined; };
  std::map<int64_t, ClientScore> clients;
  for (const auto& [name, score] : kScores) {
    const json per_client = value.value(name, json::object()).value("per_client", json::object());
    for (const auto& [client, cell] : per_client.items()) {
      const int64_t index = std::stoll(client);
      clients[index].client = index;
      clients[index].*score = number(cell);
    }
  }
  federation::Evaluation result;
  for (const auto& [index, score] : clients) result.clients.push_back(score);
  result.global_accuracy = number(value.value("accuracy_global", json()));
  result.global_balanced_accuracy = number(value.value("balanced_accuracy_global", json()));
  result.global_auroc = number(value.value("auroc_global", json()));
  const json domains = value.value("accuracy_per_domain", json::object());
  for (const auto& [domain, cell] : domains.items()) {
    result.domain_accuracy[domain] = number(cell);
  }
  return result;
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
