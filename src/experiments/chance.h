// Whether a fit's accuracies say more than guessing would.
#pragma once

#include "federation/setup.h"

#include <cstdint>
#include <vector>

namespace sotto::experiments {

// What a model that always names the same class would score.
struct Chance {
  double accuracy = 0;  // of the class that does best, mean over clients
  int64_t records = 0;  // held-out records behind it
};

Chance chance_of(const federation::Setup& setup);

// Whether the best of a row of means over `repeats` runs is above chance by more than three standard errors: those of
// the runs, pooled over the row, or of the held-out records, whichever is larger. The best of many cells at chance is
// above it now and then, and its bound would be the argmax of noise.
bool clears_chance(const std::vector<double>& means, const std::vector<double>& stds, int64_t repeats,
                   const Chance& chance);

}  // namespace sotto::experiments
