// Who takes part in a round.
#pragma once

#include "config/run_spec.h"

#include <cstdint>
#include <vector>

namespace sotto::federation {

// The clients of `round`, ascending: exactly `cohort` of them (fixed), or each independently with probability
// cohort/clients (poisson; the cohort may be empty). Depends on seed and round alone.
std::vector<int64_t> sample_cohort(const config::RunSpec& spec, int64_t round);

// In how many rounds of the whole run each client takes part.
std::vector<int32_t> count_participations(const config::RunSpec& spec);

}  // namespace sotto::federation
