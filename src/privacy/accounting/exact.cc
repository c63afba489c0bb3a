#include "privacy/accounting/exact.h"

#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/normal.h"
#include "privacy/accounting/worst_pair.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr int64_t kMostRepeats = 1'000'000;
constexpr long double kUlps = 4e-15L;

bool is_pure(const Step& step) {
  return step.kind == Step::Kind::kPure || step.kind == Step::Kind::kApproximate;
}

// ln(1 - e^x) for x ≤ 0.
long double log_one_minus_exp(long double x) {
  return x > -0.7L ? std::log(-std::expm1(x)) : std::log1p(-std::exp(x));
}

long double log_add(long double a, long double b) {
  const long double high = std::max(a, b);
  return high == -kInfinity ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

// δ(ε) of one step that was not sampled, for ε ≥ 0.
long double log_delta_unsampled(const Step& step, long double epsilon) {
  if (step.kind == Step::Kind::kGaussian) {
    return gaussian_log_delta_extended(1 / static_cast<long double>(step.noise_multiplier), epsilon);
  }
  if (step.kind == Step::Kind::kLaplace) {
    const long double highest = 1 / static_cast<long double>(step.noise_multiplier);
    return epsilon >= highest ? -kInfinity : log_one_minus_exp((epsilon - highest) / 2);
  }
  if (step.kind == Step::Kind::kBoundedRange) {
    const long double highest = step.epsilon;
    if (epsilon >= highest) return -kInfinity;
    return 2 * log_one_minus_exp((epsilon - highest) / 2) - log_one_minus_exp(-highest);
  }
  const long double highest = step.epsilon;
  const long double pure =
      epsilon >= highest ? -kInfinity : log_one_minus_exp(epsilon - highest) - std::log1p(std::exp(-highest));
  if (step.kind == Step::Kind::kPure) return pure;
  return log_add(std::log(static_cast<long double>(step.delta)),
                 std::log1p(-static_cast<long double>(step.delta)) + pure);
}

// The two directions of Poisson sampling under add-remove, from the curve H of the symmetric pair that is sampled:
// q·H(1 + (e^ε-1)/q), and (1 - e^ε(1-q))·H(1/β) with β = 1 + (e^{-ε}-1)/q.
long double log_delta_sampled(const Step& step, long double epsilon) {
  const long double q = step.sampling_rate;
  const long double rise = epsilon > 5000 ? kInfinity : std::expm1(epsilon) / q;
  const long double base = std::isinf(rise) ? epsilon - std::log(q) : std::log1p(rise);
  const long double remove = std::log(q) + log_delta_unsampled(step, base);
  const long double fall = std::expm1(-epsilon) / q;
  if (fall <= -1) return remove;
  const long double add = std::log(q) + epsilon + std::log1p(fall) + log_delta_unsampled(step, -std::log1p(fall));
  return std::max(remove, add);
}

// P(s > s*) - e^ε Q(s > s*) for the pair (1-q)N(0) + qN(±½), with a bound on what cancellation cost.
long double log_delta_replaced(const Step& step, long double epsilon) {
  const ReplacedGaussian pair(step);
  const long double q = step.sampling_rate;
  const long double half = pair.mu() / 2.0L;
  const long double y = 2 * pair.variable_at(static_cast<double>(epsilon)) / pair.mu();
  const long double shared = std::log1p(-q) + log_normal_tail(y);
  const long double p = log_add(shared, std::log(q) + log_normal_tail(y - half));
  const long double other = epsilon + log_add(shared, std::log(q) + log_normal_tail(y + half));
  if (other >= p) return p + std::log(1e-15L);
  return log_add(p + log_one_minus_exp(other - p), p + std::log(1e-15L));
}

// `count` times randomised response: the loss is (2i - count)·ε₀ with binomial i.
long double log_delta_repeated(const Step& step, int64_t count, long double epsilon) {
  const long double highest = step.epsilon;
  const auto n = static_cast<long double>(count);
  const long double log_yes = -std::log1p(std::exp(-highest));
  const long double log_no = log_yes - highest;
  const auto first = static_cast<int64_t>(std::max(0.0L, std::floor((epsilon / highest + n) / 2)));
  long double sum = -kInfinity;
  for (int64_t i = count; i >= first; --i) {
    const long double loss = (2 * static_cast<long double>(i) - n) * highest;
    if (loss <= epsilon) break;
    const auto yes = static_cast<long double>(i);
    const long double log_choose = std::lgamma(n + 1) - std::lgamma(yes + 1) - std::lgamma(n - yes + 1);
    sum = log_add(sum, log_choose + yes * log_yes + (n - yes) * log_no + log_one_minus_exp(epsilon - loss));
  }
  if (step.kind == Step::Kind::kPure) return sum;
  const long double log_kept = n * std::log1p(-static_cast<long double>(step.delta));
  return log_add(log_one_minus_exp(log_kept), log_kept + sum);
}

long double unrounded_log_delta(std::span<const Steps> steps, long double epsilon) {
  const Steps& entry = steps.front();
  if (all_unsampled_gaussians(steps)) return gaussian_log_delta_extended(gaussian_mu_of(steps), epsilon);
  if (is_pure(entry.step) && !entry.step.sampled()) return log_delta_repeated(entry.step, entry.count, epsilon);
  if (is_replaced_gaussian(entry.step)) return log_delta_replaced(entry.step, epsilon);
  return entry.step.sampled() ? log_delta_sampled(entry.step, epsilon) : log_delta_unsampled(entry.step, epsilon);
}

// Relative error of δ that the closed forms may have.
long double relative_error(std::span<const Steps> steps) {
  return is_pure(steps.front().step) ? 1e-15L + 1e-18L * static_cast<long double>(steps.front().count) * 64 : 1e-16L;
}

}  // namespace

bool all_unsampled_gaussians(std::span<const Steps> steps) {
  return std::all_of(steps.begin(), steps.end(), [](const Steps& entry) {
    return entry.step.kind == Step::Kind::kGaussian && !entry.step.amplified();
  });
}

double gaussian_mu_of(std::span<const Steps> steps) {
  long double squares = 0;
  for (const Steps& entry : steps) {
    const long double z = entry.step.noise_multiplier;
    squares += static_cast<long double>(entry.count) / (z * z);
  }
  return static_cast<double>(std::sqrt(squares) * (1 + 2.3e-16L));
}

std::string why_not_exact(std::span<const Steps> steps) {
  const std::vector<Steps> all = merged(steps);
  if (all.empty() || all_unsampled_gaussians(all)) return "";
  if (std::any_of(all.begin(), all.end(), [](const Steps& entry) { return entry.step.allocated(); })) {
    return "random allocation has no closed form: use pld";
  }
  if (std::any_of(all.begin(), all.end(),
                  [](const Steps& entry) { return entry.step.kind == Step::Kind::kDiscreteGaussian; })) {
    return "discrete gaussian noise has no closed form: use pld";
  }
  if (all.size() > 1) return "a mixture of mechanisms has no closed form: use pld";
  const Step& step = all.front().step;
  if (step.kind == Step::Kind::kCohortGaussian) return "a cohort of fixed size has no closed form: use pld";
  if (is_mirrored(step)) return "sampling under replace has a closed form for the Gaussian only: use pld";
  if (all.front().count == 1) return "";
  if (step.sampled()) return "more than one sampled step has no closed form: use pld";
  if (is_pure(step)) return all.front().count <= kMostRepeats ? "" : "too many steps to sum one by one: use pld";
  if (step.kind == Step::Kind::kBoundedRange) return "more than one bounded-range step has no closed form: use pld";
  return "more than one Laplace step has no closed form: use pld";
}

double exact_log_delta(std::span<const Steps> steps, double epsilon) {
  const std::vector<Steps> all = merged(steps);
  if (all.empty()) return -std::numeric_limits<double>::infinity();
  if (all_unsampled_gaussians(all)) return gaussian_log_delta(gaussian_mu_of(all), epsilon);
  const long double value = unrounded_log_delta(all, epsilon);
  return std::min(0.0, static_cast<double>(value + std::abs(value) * kUlps + relative_error(all)));
}

double exact_epsilon(std::span<const Steps> steps, double delta) {
  const std::vector<Steps> all = merged(steps);
  if (all.empty()) return 0;
  const double log_delta = std::log(delta);
  if (all_unsampled_gaussians(all)) return gaussian_epsilon(gaussian_mu_of(all), std::nextafter(log_delta, -1e300));
  const long double target = log_delta - std::abs(log_delta) * 3e-16L - relative_error(all);
  const auto excess = [&](long double epsilon) { return std::max(unrounded_log_delta(all, epsilon), -1e30L) - target; };
  if (excess(0) <= 0) return 0;
  long double high = 1e-6L;
  const long double most = static_cast<long double>(all.front().count) * largest_loss(all.front().step);
  while (excess(high) > 0) {
    if (high > most) return std::numeric_limits<double>::infinity();
    high *= 2;
  }
  long double low = high > 1.5e-6L ? high / 2 : 0;
  if (std::isfinite(most)) high = std::min(high, most * (1 + 1e-18L));
  for (int i = 0; i < 300 && high - low > 1e-17L * high; ++i) {
    const long double middle = (low + high) / 2;
    (excess(middle) > 0 ? low : high) = middle;
  }
  return static_cast<double>(high * (1 + static_cast<long double>(kUlps)));
}

}  // namespace sotto::privacy
