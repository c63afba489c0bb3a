#include "base/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sotto {
namespace {

// Mid-ranks of the pooled sample, doubled so that they are whole numbers.
std::vector<int64_t> doubled_ranks(const std::vector<double>& pooled) {
  std::vector<size_t> order(pooled.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return pooled[i] < pooled[j]; });
  std::vector<int64_t> ranks(pooled.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && pooled[order[end]] == pooled[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<int64_t>(begin + end + 1);
    begin = end;
  }
  return ranks;
}

double binomial(size_t n, size_t k) {
  double value = 1.0;
  for (size_t i = 1; i <= k; ++i) value *= static_cast<double>(n - k + i) / static_cast<double>(i);
  return value;
}

// The share of all ways to choose |a| of the pooled ranks whose sum is at least as far from its mean as the observed
// one: counted by dynamic programming over (how many chosen, their sum).
double exact_p(const std::vector<int64_t>& ranks, size_t size_a, int64_t observed) {
  const int64_t total = std::accumulate(ranks.begin(), ranks.end(), int64_t{0});
  std::vector<std::vector<double>> ways(size_a + 1, std::vector<double>(static_cast<size_t>(total) + 1, 0.0));
  ways[0][0] = 1.0;
  for (const int64_t rank : ranks) {
    for (size_t chosen = size_a; chosen >= 1; --chosen) {
      for (int64_t sum = total; sum >= rank; --sum) {
        ways[chosen][static_cast<size_t>(sum)] += ways[chosen - 1][static_cast<size_t>(sum - rank)];
      }
    }
  }
  const double centre = static_cast<double>(total) * static_cast<double>(size_a) / static_cast<double>(ranks.size());
  const double distance = std::abs(static_cast<double>(observed) - centre) - 1e-9;
  double extreme = 0.0;
  for (size_t sum = 0; sum < ways[size_a].size(); ++sum) {
    if (std::abs(static_cast<double>(sum) - centre) >= distance) extreme += ways[size_a][sum];
  }
  return std::min(1.0, extreme / binomial(ranks.size(), size_a));
}

double normal_p(const std::vector<int64_t>& ranks, size_t size_a, int64_t observed) {
  const auto n = static_cast<double>(ranks.size());
  const auto a = static_cast<double>(size_a);
  const double b = n - a;
  std::vector<int64_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  double ties = 0.0;
  for (size_t begin = 0; begin < sorted.size();) {
    const size_t end =
        static_cast<size_t>(std::upper_bound(sorted.begin(), sorted.end(), sorted[begin]) - sorted.begin());
    const auto t = static_cast<double>(end - begin);
    ties += t * t * t - t;
    begin = end;
  }
  const double u = static_cast<double>(observed) / 2 - a * (a + 1) / 2;
  const double variance = a * b / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1.0;
  const double z = std::max(0.0, std::abs(u - a * b / 2) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

}  // namespace

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double sample_std(const std::vector<double>& values) {
  if (values.size() < 2) return 0.0;
  const double centre = mean(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double quantile(std::vector<double> values, double level) {
  std::sort(values.begin(), values.end());
  const double position = level * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

Interval median_interval(std::vector<double> values, double confidence) {
  std::sort(values.begin(), values.end());
  // The k-th value from either end lies beyond the median if fewer than k of n fair coins show heads.
  const auto n = static_cast<double>(values.size());
  size_t left_out = 0;
  double tail = 0;
  while (2 * (left_out + 1) < values.size()) {
    const auto k = static_cast<double>(left_out);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::log(2.0));
    if (2 * tail > 1 - confidence) break;
    ++left_out;
  }
  const size_t k = left_out == 0 ? 0 : left_out - 1;
  return {values[k], values[values.size() - 1 - k]};
}

double mann_whitney_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> pooled = a;
  pooled.insert(pooled.end(), b.begin(), b.end());
  const std::vector<int64_t> ranks = doubled_ranks(pooled);
  const int64_t observed =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), int64_t{0});
  constexpr size_t kExactUpTo = 60;
  return pooled.size() <= kExactUpTo ? exact_p(ranks, a.size(), observed) : normal_p(ranks, a.size(), observed);
}

}  // namespace sotto
