#include "privacy/terms.h"

#include "base/random.h"
#include "settings/choice_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace sotto::privacy {

double PrivacyTerms::budget_of(int64_t id) const {
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

double PrivacyTerms::least_budget() const {
  return budgets.empty() ? epsilon : *std::min_element(budgets.begin(), budgets.end());
}

PrivacyTerms read_promise(settings::Section& section) {
  PrivacyTerms o;
  o.epsilon = section.required_number("epsilon", kPromised, "1.0");
  o.delta =
      section.required_number("delta", {.low = 0, .high = 1, .low_excluded = true, .high_excluded = true}, "1e-5");
  o.adjacency = section.required_choice<Adjacency>("adjacency");
  o.unit = section.choice("unit", o.unit);
  o.observer = section.choice("observer", o.observer);
  o.budgets = section.numbers("budgets", o.budgets, kPromised);
  return o;
}

PrivacyTerms read_privacy_terms(settings::Section section, uint64_t seed) {
  PrivacyTerms o = read_promise(section);
  o.generator = section.choice("noise", o.generator);
  o.budget_shares = section.numbers("budget_shares", o.budget_shares, settings::kPositive);
  if (!o.budget_shares.empty() && o.budget_shares.size() != o.budgets.size()) {
    section.fail("budget_shares", fmt::format("has {} numbers for {} budgets; give one share per budget",
                                              o.budget_shares.size(), o.budgets.size()));
  }
  o.records = section.integer("records", o.records, settings::at_least(0));
  const bool secret_size = o.adjacency == Adjacency::kAddRemove && o.unit == Unit::kRecord;
  if (secret_size && o.records == 0) {
    section.fail("adjacency",
                 "\"add-remove\" keeps even the number of records secret: declare privacy.records, which stands for it "
                 "at every client, or choose \"zero-out\", under which the number is public and a record may be blank");
  }
  if (!secret_size && o.records != 0) {
    section.fail("records", "is for add-remove of records; elsewhere the true number is public, so leave it out");
  }
  o.unproven = section.texts("unproven", o.unproven);
  const auto fallback = static_cast<int64_t>(o.budget_shares.empty() ? 0 : seed);
  o.budget_seed = static_cast<uint64_t>(section.integer("budget_seed", fallback, settings::at_least(0)));
  section.finish();
  return o;
}

nlohmann::json to_json(const PrivacyTerms& terms) {
  return {{"epsilon", terms.epsilon},         {"delta", terms.delta},
          {"adjacency", terms.adjacency},     {"unit", terms.unit},
          {"observer", terms.observer},       {"noise", terms.generator},
          {"budgets", terms.budgets},         {"budget_shares", terms.budget_shares},
          {"budget_seed", terms.budget_seed}, {"records", terms.records},
          {"unproven", terms.unproven}};
}

PrivacyTerms privacy_terms_from(const nlohmann::json& value) {
  PrivacyTerms terms;
  value.at("epsilon").get_to(terms.epsilon);
  value.at("delta").get_to(terms.delta);
  value.at("adjacency").get_to(terms.adjacency);
  value.at("unit").get_to(terms.unit);
  value.at("observer").get_to(terms.observer);
  value.at("noise").get_to(terms.generator);
  value.at("budgets").get_to(terms.budgets);
  value.at("budget_shares").get_to(terms.budget_shares);
  value.at("budget_seed").get_to(terms.budget_seed);
  terms.records = value.value("records", int64_t{0});
  terms.unproven = value.value("unproven", std::vector<std::string>{});
  return terms;
}

}  // namespace sotto::privacy
