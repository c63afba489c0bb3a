// Small-sample statistics for comparing runs; the unit is the seed.
#pragma once

#include <vector>

namespace sotto {

double mean(const std::vector<double>& values);

// Sample standard deviation (n-1); 0 for a single value.
double sample_std(const std::vector<double>& values);

// Two-sided p-value of the Mann–Whitney U test. Exact, ties included, for up to 60 values together; beyond that the
// normal approximation with tie and continuity corrections. NaN if a sample is empty.
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace sotto
