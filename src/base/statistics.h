// Small-sample statistics for comparing runs; the unit is the seed.
#pragma once

#include <vector>

namespace sotto {

double mean(const std::vector<double>& values);

// Sample standard deviation (n-1); 0 for a single value.
double sample_std(const std::vector<double>& values);

// The value below which a share of `level` lies, linear between neighbours; 0 ≤ level ≤ 1, values not empty.
double quantile(std::vector<double> values, double level);

struct Interval {
  double low = 0;
  double high = 0;
};

// An interval between two of the values that covers the median of their distribution, whatever it is, with at least
// this probability: the narrowest that leaves out equally many on both sides. [min, max] if there are too few values.
Interval median_interval(std::vector<double> values, double confidence);

// Two-sided p-value of the Mann–Whitney U test. Exact, ties included, for up to 60 values together; beyond that the
// normal approximation with tie and continuity corrections. NaN if a sample is empty.
double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace sotto
