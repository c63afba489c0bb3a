#include "privacy/accounting/gaussian.h"

#include "privacy/accounting/normal.h"
#include "privacy/accounting/step.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kUlps = 4e-15;

// The root of an increasing function between two points, to full extended precision.
template <typename F>
long double increasing_root(F&& f, long double low, long double high) {
  std::uintmax_t iterations = 200;
  const auto bracket =
      boost::math::tools::toms748_solve(f, low, high, boost::math::tools::eps_tolerance<long double>(62), iterations);
  return (bracket.first + bracket.second) / 2;
}

}  // namespace

long double gaussian_log_delta_extended(long double mu, long double epsilon) {
  const long double a = epsilon / mu - mu / 2;
  const long double b = epsilon / mu + mu / 2;
  if (a < -1) {
    // δ is near 1: what matters is 1 - δ = P(N < a) + e^ε P(N > b).
    const long double rest = normal_tail(-a) + std::exp(epsilon + log_normal_tail(b));
    if (rest < 0.5L) return std::log1p(-rest);
    return std::log(normal_tail(a) - std::exp(epsilon + log_normal_tail(b)));
  }
  // φ(a) = e^ε φ(b), so δ = φ(a) (R(a) - R(b)).
  return log_normal_density(a) + std::log(mills_ratio_drop(a, mu));
}

double gaussian_log_delta(double mu, double epsilon) {
  const long double exact = gaussian_log_delta_extended(mu, epsilon);
  return std::min(0.0, static_cast<double>(exact + std::abs(exact) * kUlps));
}

double gaussian_epsilon(double mu, double log_delta) {
  const auto excess = [&](long double epsilon) { return log_delta - gaussian_log_delta_extended(mu, epsilon); };
  if (excess(0) >= 0) return 0;
  // P(loss > ε) ≥ δ(ε), and the loss is N(μ²/2, μ²): an upper limit for ε.
  const long double tail = std::sqrt(std::max(0.0L, -2 * static_cast<long double>(log_delta)));
  const long double high = (static_cast<long double>(mu) * mu / 2 + mu * tail) * (1 + 1e-15L);
  const long double epsilon = increasing_root(excess, 0, high);
  // The root is off by the error of ln δ over its slope, which is at least of order 1/μ where ε is small.
  return static_cast<double>(epsilon * (1 + static_cast<long double>(kUlps)) + 1e-17L * mu * (1 - log_delta));
}

double gaussian_mu_at(double epsilon, double log_delta) {
  const auto excess = [&](long double log_mu) {
    return gaussian_log_delta_extended(std::exp(log_mu), epsilon) - log_delta;
  };
  // At the low end δ ≤ P(loss > ε) is below the target; at the high end P(N < -μ/2 + ε/μ) is.
  const long double tail = std::sqrt(-2 * static_cast<long double>(log_delta));
  long double low = std::log(std::max(1e-4000L, std::sqrt(2.0L * epsilon + tail * tail) - tail)) - 1;
  while (excess(low) > 0) low -= 2;
  long double high = std::log(std::sqrt(2.0L * epsilon) + 2 * tail + 1);
  while (excess(high) < 0) high += 0.5L;
  return static_cast<double>(std::exp(increasing_root(excess, low, high)) * (1 - static_cast<long double>(kUlps)));
}

double gaussian_mu(double epsilon, double delta) {
  require_valid_epsilon(epsilon);
  require_valid_delta(delta);
  return gaussian_mu_at(epsilon, std::log(delta));
}

}  // namespace sotto::privacy
