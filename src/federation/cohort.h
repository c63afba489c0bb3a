// Who takes part in a round.
//
// Proof: docs/proofs/client-level.md
#pragma once

#include "base/named_tensors.h"
#include "config/run_spec.h"
#include "privacy/noise/keystream.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace sotto::federation {

// The clients of `round`, ascending: exactly `cohort` of them (fixed), or each independently with probability
// cohort/clients (poisson; the cohort may be empty). Depends on seed and round alone: whoever knows the config knows
// them.
std::vector<int64_t> sample_cohort(const config::RunSpec& spec, int64_t round);

// Whether nobody but the server may know who takes part: clients are protected, Poisson cohorts are counted on for
// amplification, and noise is not replayed.
bool has_secret_cohorts(const config::RunSpec& spec);

// In how many rounds of the whole run each client takes part; where that is a secret, all of them.
std::vector<int32_t> count_participations(const config::RunSpec& spec);

// The cohorts of a whole run. Secret ones are drawn from a key of the operating system's, which is part of the server's
// state: a run that is resumed goes on with the same.
class CohortSchedule {
 public:
  // `state` is what state() gave to a checkpoint; none begins a new schedule.
  CohortSchedule(const config::RunSpec& spec, const NamedTensors& state);

  std::vector<int64_t> cohort(int64_t round) const;
  // Empty where cohorts follow from the seed.
  NamedTensors state() const;

 private:
  const config::RunSpec& spec_;
  std::optional<privacy::Seed> key_;
};

}  // namespace sotto::federation
