// Whether a planned release can be heard over its own noise.
#pragma once

#include "privacy/channel.h"

#include <string>

namespace sotto::methods {

struct Loudness {
  double per_coordinate = 0;  // noise stddev of a coordinate / bound of the whole value
  double in_norm = 0;         // expected norm of the noise / bound
  double over_run = 0;        // the same for the sum of all such values of the run, if they all pointed one way
  std::string verdict;        // noise is small, noise is noticeable, noise dominates
};

// For releases with noise. `over_run` is the best case: real gradients are smaller than their bound and do not all
// agree, so that learning needs it to be well below 1 (docs/privacy.md has the runs behind the thresholds).
Loudness loudness(const privacy::NoiseReach& reach);

}  // namespace sotto::methods
