// [privacy]: what is promised to whom. Stated, never assumed: without it a run releases everything in the clear, and
// says so.
#pragma once

#include "privacy/neighbours.h"
#include "settings/section.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sotto::privacy {

// Who is protected against.
enum class Observer { kServer, kClients, kPublic };
constexpr auto choices(Observer) {
  return std::to_array<settings::Choice<Observer>>(
      {{Observer::kServer, "server"}, {Observer::kClients, "clients"}, {Observer::kPublic, "public"}});
}

enum class Generator {
  kReplay,  // from the run's seed: noise that can be drawn again
  kSecure   // from the operating system's entropy
};
constexpr auto choices(Generator) {
  return std::to_array<settings::Choice<Generator>>({{Generator::kReplay, "replay"}, {Generator::kSecure, "secure"}});
}

// Which ε can be promised: beyond these a promise says nothing, or no noise that a number can hold keeps it.
inline constexpr settings::Range kPromised{.low = 1e-6, .high = 1e6};

struct PrivacyTerms {
  double epsilon = 0.0;
  double delta = 0.0;
  Adjacency adjacency = Adjacency::kReplace;
  Unit unit = Unit::kRecord;
  Observer observer = Observer::kServer;     // against whom
  Generator generator = Generator::kReplay;  // where noise comes from; the key is `noise`
  std::vector<double> budgets;               // clients' own ε; empty = epsilon for everyone
  // How the budgets are dealt. Empty: in turn, client i has budgets[i mod length]. Otherwise every client draws its
  // own, budgets[k] with a probability proportional to budget_shares[k].
  std::vector<double> budget_shares;
  uint64_t budget_seed = 0;  // of those draws; as written, or the run's seed
  // Add-remove of records: how many of them every client is said to have, whatever it has. All that depends on a number
  // of records (batches, rates, divisors, weights) is computed from this one. 0 elsewhere: the true number is public.
  int64_t records = 0;

  // What client `id` may spend.
  double budget_of(int64_t id) const;
  double least_budget() const;
  // Releases, by what they are of, that the config allows beside the budget although nothing is proven of them.
  std::vector<std::string> unproven;

  // What is declared of a client that holds `held` records.
  int64_t declared_records(int64_t held) const { return records > 0 ? records : held; }
  // Whoever protects against clients or the public trusts the server with bounded values.
  bool trusts_server() const { return observer != Observer::kServer; }
  Neighbours neighbours() const { return {adjacency, unit}; }

  bool operator==(const PrivacyTerms&) const = default;
};

// The half of it that an owner can promise over many runs: epsilon, delta, adjacency, unit, observer, budgets. The section
// is not finished.
PrivacyTerms read_promise(settings::Section& section);
// `seed` is the run's.
PrivacyTerms read_privacy_terms(settings::Section section, uint64_t seed);

nlohmann::json to_json(const PrivacyTerms& terms);
// Of what to_json gave.
PrivacyTerms privacy_terms_from(const nlohmann::json& value);

}  // namespace sotto::privacy
