#include "artifacts/run_summary.h"

#include "artifacts/metrics.h"
#include "base/error.h"
#include "base/json_number.h"

#include <fmt/format.h>

#include <cmath>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(text);
}

json to_json(const std::optional<EpsilonSpread>& spread) {
  if (!spread) return nullptr;
  return {{"min", spread->min}, {"median", spread->median}, {"max", spread->max}};
}

json to_json(const SpentAgainst& spent) {
  return {{"observer", spent.observer},
          {"claimed_epsilon", to_json(spent.claimed)},
          {"proven_epsilon", to_json(spent.proven)},
          {"why_unproven", or_null(spent.why_unproven)}};
}

// One object of the file, `place` being where it stands.
class Reader {
 public:
  Reader(const json& object, std::string place) : object_(object), place_(std::move(place)) {
    if (!object_.is_object()) fail_user("'{}' is not an object", place_);
  }

  template <typename T>
  T required(const char* key) const {
    if (!object_.contains(key)) fail_user("it has no '{}{}'", place_, key);
    return as<T>(key);
  }
  template <typename T>
  std::optional<T> optional(const char* key) const {
    if (!object_.contains(key) || object_.at(key).is_null()) return std::nullopt;
    return as<T>(key);
  }
  template <typename T>
  T value(const char* key, T otherwise) const {
    return optional<T>(key).value_or(std::move(otherwise));
  }

 private:
  template <typename T>
  T as(const char* key) const {
    try {
      return object_.at(key).get<T>();
    } catch (const json::exception&) {
      fail_user("'{}{}' is not what it should be", place_, key);
    }
  }

  const json& object_;
  std::string place_;
};

std::optional<EpsilonSpread> epsilon_spread(const json& value) {
  if (value.is_null()) return std::nullopt;
  const Reader reader(value, "privacy.epsilon.");
  return EpsilonSpread{.min = reader.required<double>("min"),
                       .median = reader.required<double>("median"),
                       .max = reader.required<double>("max")};
}

SpentAgainst spent_against(const json& value) {
  const Reader reader(value, "privacy.");
  return {.observer = reader.required<std::string>("observer"),
          .claimed = epsilon_spread(reader.required<json>("claimed_epsilon")),
          .proven = epsilon_spread(reader.required<json>("proven_epsilon")),
          .why_unproven = reader.value("why_unproven", std::string())};
}

PrivacySummary privacy_summary(const json& value, const std::string& noise) {
  const Reader reader(value, "privacy.");
  PrivacySummary privacy = {.declared = spent_against(value),
                            .basis_why = reader.value("basis_why", std::string()),
                            .delta = reader.optional<double>("delta"),
                            .adjacency = reader.optional<std::string>("adjacency"),
                            .unit = reader.optional<std::string>("unit")};
  for (const json& row : reader.required<json>("observers")) privacy.observers.push_back(spent_against(row));
  const auto basis = reader.optional<std::string>("basis");
  privacy.basis = basis ? settings::from_word<privacy::Basis>(*basis) : privacy::basis_of(noise);
  if (const auto head = reader.optional<std::string>("ledger_head")) {
    privacy.ledger = privacy::LedgerEnd{.rows = reader.required<int64_t>("ledger_rows"), .head = *head};
  }
  return privacy;
}

json to_json(const LastTen& means) {
  json value = {{"evaluations", means.evaluations},
                {"accuracy", number_or_null(means.accuracy)},
                {"accuracy_global", number_or_null(means.accuracy_global)}};
  if (std::isfinite(means.global_test_accuracy)) value["global_test_accuracy"] = means.global_test_accuracy;
  if (std::isfinite(means.local_accuracy)) value["local_accuracy"] = means.local_accuracy;
  if (std::isfinite(means.neighbour_accuracy)) value["neighbour_accuracy"] = means.neighbour_accuracy;
  return value;
}

LastTen last_ten(const json& value) {
  const Reader reader(value, "last_ten.");
  return {.evaluations = reader.value("evaluations", int64_t{0}),
          .accuracy = reader.value("accuracy", federation::kUndefined),
          .accuracy_global = reader.value("accuracy_global", federation::kUndefined),
          .global_test_accuracy = reader.value("global_test_accuracy", federation::kUndefined),
          .local_accuracy = reader.value("local_accuracy", federation::kUndefined),
          .neighbour_accuracy = reader.value("neighbour_accuracy", federation::kUndefined)};
}

}  // namespace

json to_json(const PrivacySummary& privacy) {
  json value = to_json(privacy.declared);
  value["basis"] = settings::word(privacy.basis);
  value["basis_why"] = or_null(privacy.basis_why);
  value["delta"] = or_null(privacy.delta);
  value["adjacency"] = or_null(privacy.adjacency);
  value["unit"] = or_null(privacy.unit);
  value["observers"] = json::array();
  for (const SpentAgainst& spent : privacy.observers) value["observers"].push_back(to_json(spent));
  if (privacy.ledger) {
    value["ledger_rows"] = privacy.ledger->rows;
    value["ledger_head"] = privacy.ledger->head;
  }
  return value;
}

json to_json(const RunSummary& summary) {
  json value = to_json(summary.evaluation);
  value["name"] = summary.name;
  value["dataset"] = summary.dataset;
  value["model"] = summary.model;
  value["method"] = summary.method;
  value["variant"] = summary.variant;
  value["noise"] = summary.noise;
  value["config_hash"] = summary.config_hash;
  value["seed"] = summary.seed;
  value["rounds"] = summary.rounds;
  value["seconds"] = summary.seconds;
  value["samples_per_second"] = summary.samples_per_second;
  value["upload_bytes"] = summary.upload_bytes;
  value["diverged_steps"] = summary.diverged_steps;
  value["noise_total"] = number_or_null(summary.noise_total);
  value["abstained"] = summary.abstained;
  value["last_ten"] = to_json(summary.last_ten);
  value["privacy"] = to_json(summary.privacy);
  return value;
}

RunSummary run_summary(const json& value) {
  const Reader reader(value, "");
  RunSummary summary;
  summary.evaluation = evaluation(value);
  summary.name = reader.value("name", std::string());
  summary.dataset = reader.required<std::string>("dataset");
  summary.model = reader.value("model", std::string());
  summary.method = reader.required<std::string>("method");
  summary.variant = reader.value("variant", summary.variant);
  summary.noise = reader.value("noise", settings::word(privacy::Generator::kReplay));
  summary.config_hash = reader.value("config_hash", std::string());
  summary.seed = reader.required<uint64_t>("seed");
  summary.rounds = reader.required<int64_t>("rounds");
  summary.seconds = reader.required<double>("seconds");
  summary.samples_per_second = reader.value("samples_per_second", 0.0);
  summary.upload_bytes = reader.value("upload_bytes", int64_t{0});
  summary.diverged_steps = reader.value("diverged_steps", int64_t{0});
  summary.noise_total = reader.value("noise_total", federation::kUndefined);
  summary.abstained = reader.value("abstained", summary.abstained);
  summary.last_ten = last_ten(reader.value("last_ten", json::object()));
  summary.privacy = privacy_summary(reader.required<json>("privacy"), summary.noise);
  return summary;
}

}  // namespace sotto::artifacts
