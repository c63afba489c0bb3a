#include "audit/one_run.h"

#include "base/error.h"

#include <boost/math/distributions/binomial.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sotto::audit {
namespace {

constexpr double kLargestEpsilon = 60;
constexpr double kPrecision = 1e-6;
// Guesses each way, as shares of the canaries.
constexpr double kShares[] = {0.5, 0.25, 0.1, 0.05};

}  // namespace

double one_run_p_value(const Guesses& guesses, double epsilon, double delta) {
  SOTTO_INVARIANT(guesses.right <= guesses.made && guesses.made <= guesses.canaries);
  const boost::math::binomial_distribution<> lucky(static_cast<double>(guesses.made), 1 / (1 + std::exp(-epsilon)));
  const double beyond = guesses.right == 0
                            ? 1.0
                            : boost::math::cdf(boost::math::complement(lucky, static_cast<double>(guesses.right - 1)));
  // Σ_{j ≤ i} P(right - j) / i at its largest; logarithms, for the first terms may underflow.
  const auto made = static_cast<double>(guesses.made);
  double worst = 0, sum = 0;
  double log_mass = std::lgamma(made + 1) - std::lgamma(static_cast<double>(guesses.right) + 1) -
                    std::lgamma(made - static_cast<double>(guesses.right) + 1) -
                    static_cast<double>(guesses.right) * std::log1p(std::exp(-epsilon)) -
                    (made - static_cast<double>(guesses.right)) * (epsilon + std::log1p(std::exp(-epsilon)));
  for (int64_t i = 1; i <= guesses.right; ++i) {
    const auto count = static_cast<double>(guesses.right - i);
    log_mass += std::log((count + 1) / (made - count)) - epsilon;
    sum += std::exp(log_mass);
    worst = std::max(worst, sum / static_cast<double>(i));
  }
  return std::min(1.0, beyond + 2 * static_cast<double>(guesses.canaries) * delta * worst);
}

double one_run_epsilon(const Guesses& guesses, double delta, double alpha, Coin coin) {
  const auto refuted = [&](double epsilon) {
    const double p = coin == Coin::kWithin
                         ? one_run_p_value(guesses, epsilon, delta)
                         : one_run_p_value(guesses, 2 * epsilon, std::min(1.0, (1 + std::exp(epsilon)) * delta));
    return p <= alpha;
  };
  if (guesses.made == 0 || !refuted(0)) return 0;
  double low = 0, high = kLargestEpsilon;
  while (high - low > kPrecision) {
    const double middle = (low + high) / 2;
    (refuted(middle) ? low : high) = middle;
  }
  return low;
}

Guesses guess_by_score(const std::vector<double>& scores, const std::vector<bool>& in, int64_t each_way) {
  SOTTO_INVARIANT(scores.size() == in.size() && 2 * each_way <= static_cast<int64_t>(scores.size()));
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  Guesses guesses{.canaries = static_cast<int64_t>(scores.size()), .made = 2 * each_way};
  for (size_t i = 0; i < static_cast<size_t>(each_way); ++i) {
    guesses.right += in[order[i]] ? 0 : 1;
    guesses.right += in[order[order.size() - 1 - i]] ? 1 : 0;
  }
  return guesses;
}

OneRunBound one_run_bound(const std::vector<double>& scores, const std::vector<bool>& in, double delta, double alpha,
                          Coin coin) {
  OneRunBound best;
  for (const double share : kShares) {
    const auto each_way = static_cast<int64_t>(share * static_cast<double>(scores.size()));
    const Guesses guesses = guess_by_score(scores, in, each_way);
    const double epsilon = one_run_epsilon(guesses, delta, alpha / static_cast<double>(std::size(kShares)), coin);
    if (best.guesses.canaries == 0 || epsilon > best.epsilon) best = {epsilon, guesses};
  }
  return best;
}

}  // namespace sotto::audit
