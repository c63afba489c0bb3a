// Who takes part in a round.
//
// Proof: docs/proofs/client-level.md
#pragma once

#include "config/run_spec.h"
#include "privacy/noise/keystream.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace sotto::federation {

// The clients of `round`, ascending: exactly `cohort` of them (fixed, secret), each independently with probability
// cohort/clients (poisson; the cohort may be empty), or the next `cohort` on a ring on which clients stand in an order
// drawn once (cyclic: methods::least_separation). Depends on seed and round alone: whoever knows the config knows them.
std::vector<int64_t> sample_cohort(const config::RunSpec& spec, int64_t round);

// The same from a key that nobody else knows.
std::vector<int64_t> draw_cohort(const config::RunSpec& spec, const privacy::Seed& key, int64_t round);

// Whether nobody but the server may know who takes part: clients are protected, cohorts are counted on for
// amplification, and noise is not replayed.
bool has_secret_cohorts(const config::RunSpec& spec);

// In how many rounds of the whole run each client takes part; where that is a secret, all of them.
std::vector<int32_t> count_participations(const config::RunSpec& spec);

// The cohorts of a run. Secret ones come from a key of the operating system's that lives as long as this object: a run
// that is resumed draws new ones, since a round that is run again has new noise and must have a new cohort for it
// (docs/proofs/client-level.md).
class CohortSchedule {
 public:
  explicit CohortSchedule(const config::RunSpec& spec);

  std::vector<int64_t> cohort(int64_t round) const;

 private:
  const config::RunSpec& spec_;
  std::optional<privacy::Seed> key_;
};

}  // namespace sotto::federation
