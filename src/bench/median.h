// The middle of repeated measurements.
#pragma once

#include <vector>

namespace sotto::bench {

// The upper one of an even number; values not empty.
double median(std::vector<double> values);

}  // namespace sotto::bench
