// The exponential mechanism, drawn exactly.
//
// One pick gives i with probability proportional to e^{scores[i]/scale}; the next is made in the same way among those that
// are left. That is what the k largest scores plus independent Gumbel noise of this scale are, in order; but noise in
// floating point would give it probabilities of its own. A pick proposes an i uniformly and takes it with probability
// e^{-(largest - scores[i])/scale}, from random bits alone: at most as many proposals as there are scores, on average.
// How many it takes depends on the scores.
#pragma once

#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sotto::privacy {

// `count` different indices in the order in which they were picked; 0 ≤ count ≤ scores.size(), scale > 0.
std::vector<int64_t> exponential_picks(std::span<const uint64_t> scores, uint64_t scale, int64_t count,
                                       NoiseSource& source);

}  // namespace sotto::privacy
