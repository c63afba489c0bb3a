#include "config/run_spec.h"

#include "base/files.h"
#include "base/random.h"
#include "config/toml.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace sotto::config {

double PrivacyOptions::budget_of(int64_t id) const {
  if (budgets.empty()) return epsilon;
  if (budget_shares.empty()) return budgets[static_cast<size_t>(id) % budgets.size()];
  const double total = std::accumulate(budget_shares.begin(), budget_shares.end(), 0.0);
  double left = RandomStream(budget_seed, "budget", 0, static_cast<uint64_t>(id)).uniform() * total;
  for (size_t k = 0; k + 1 < budgets.size(); ++k) {
    left -= budget_shares[k];
    if (left < 0) return budgets[k];
  }
  return budgets.back();
}

double PrivacyOptions::least_budget() const {
  return budgets.empty() ? epsilon : *std::min_element(budgets.begin(), budgets.end());
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DataOptions, name, otherwise, path, features, domains, image_size, limit, test_limit,
                                   clients, partition, alpha, classes_per_client, records_per_client, private_label,
                                   train_fraction, test_fraction, min_records)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ModelOptions, name, weights, norm, hidden, width, depth, heads, patch, adapter,
                                   dropout, freeze_backbone, personal)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FederationOptions, cohort, sampling, local_epochs, batch, lr, optimizer, momentum,
                                   weight_decay, eval_every, eval_clients, state)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PrivacyOptions, epsilon, delta, adjacency, unit, observer, noise, budgets,
                                   budget_shares, budget_seed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RecordOptions, uploads, checkpoint_every)

nlohmann::json RunSpec::to_json() const {
  nlohmann::json method_table =
      method_options.empty() ? nlohmann::json::object() : nlohmann::json::parse(method_options);
  method_table["name"] = method;
  method_table["variant"] = variant;
  nlohmann::json value = {{"name", name},           {"seed", seed},    {"rounds", rounds},
                          {"data", data},           {"model", model},  {"federation", federation},
                          {"method", method_table}, {"record", record}};
  if (privacy) value["privacy"] = *privacy;
  return value;
}

std::string RunSpec::hash() const {
  nlohmann::json value = to_json();
  value.erase("name");
  return sha256(value.dump());
}

std::string RunSpec::to_toml() const {
  return format_toml(to_json());
}

}  // namespace sotto::config
