#include "privacy/accounting/renyi.h"

#include "base/error.h"
#include "privacy/accounting/loss_nodes.h"

#include <boost/math/tools/minima.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kQuadratureMargin = 1e-12;
constexpr double kClosedFormMargin = 4e-15;
// Beyond this many nodes a divergence is not computed; such orders are never the best.
constexpr double kMostNodes = 2e6;

double laplace_divergence(double scale, double order) {
  const long double t = 1 / static_cast<long double>(scale);
  const long double a = order;
  // 1 + [α(e^{(α-1)t} - 1) + (α-1)(e^{-αt} - 1)]/(2α-1)
  if ((a - 1) * t > 50) return static_cast<double>(t + std::log(a / (2 * a - 1)) / (a - 1));
  const long double sum = (a * std::expm1((a - 1) * t) + (a - 1) * std::expm1(-a * t)) / (2 * a - 1);
  return static_cast<double>(std::log1p(sum) / (a - 1));
}

// The largest of any pair with a likelihood ratio in [e^{s-ε}, e^s]: that of the two ends, A e^{(α-1)s} - B e^{αs}, at the
// best s, which is (A/α)·e^{(α-1)s} with e^s = A(α-1)/(Bα). At small ε it cancels; αε²/8 is above it and near.
double bounded_range_divergence(double epsilon, double order) {
  const long double e = epsilon;
  const long double a = order;
  const double concentrated = static_cast<double>(a * e * e / 8);
  const long double log_a = std::log(-std::expm1(-a * e)) - std::log(-std::expm1(-e));
  const long double log_b = -e + std::log(-std::expm1(-(a - 1) * e)) - std::log(-std::expm1(-e));
  const long double log_ratio = std::log1p(-1 / a);
  const long double s = log_a + log_ratio - log_b;
  const long double margin = 1e-17L * (1 + std::abs(log_a) + std::abs(log_b) + std::abs(log_ratio) + std::log(a));
  const long double divergence = s + margin + (log_a - std::log(a) + margin) / (a - 1);
  return std::min({concentrated, epsilon, static_cast<double>(divergence)});
}

// E_Q[(1 - q + q e^t)^α] = Σ_k C(α,k) (1-q)^{α-k} q^k e^{k(k-1)/(2z²)} at integer orders.
double log_binomial_moment(double noise_multiplier, double q, int order) {
  const long double mu_squared = 1 / (static_cast<long double>(noise_multiplier) * noise_multiplier);
  std::vector<long double> terms;
  for (int k = 0; k <= order; ++k) {
    terms.push_back(std::lgamma(static_cast<long double>(order + 1)) - std::lgamma(static_cast<long double>(k + 1)) -
                    std::lgamma(static_cast<long double>(order - k + 1)) +
                    static_cast<long double>(order - k) * std::log1p(-static_cast<long double>(q)) +
                    static_cast<long double>(k) * std::log(static_cast<long double>(q)) +
                    static_cast<long double>(k) * static_cast<long double>(k - 1) / 2 * mu_squared);
  }
  const long double highest = *std::max_element(terms.begin(), terms.end());
  long double sum = 0;
  for (const long double term : terms) sum += std::exp(term - highest);
  return static_cast<double>(highest + std::log(sum));
}

double sampled_divergence(const Step& step, double order, Direction direction) {
  const bool integer = order == std::floor(order) && order <= 4096;
  if (integer && direction == Direction::kRemove && step.kind == Step::Kind::kGaussian && !is_replaced_gaussian(step)) {
    const double moment = log_binomial_moment(step.noise_multiplier, step.sampling_rate, static_cast<int>(order));
    if (moment > 1e-3) return moment / (order - 1);
  }
  if (step.kind == Step::Kind::kGaussian) {
    const double mu = 1 / step.noise_multiplier;
    if ((24 * mu + order * mu * mu) / std::min(0.25 * mu, 0.45) > kMostNodes) return kInfinity;
  }
  NodeLimits limits;
  limits.max_tilt = order - 1;
  return log_renyi_moment(loss_nodes(step, direction, limits), order) / (order - 1);
}

double convert(double divergence, double order, double log_delta, Conversion conversion) {
  double epsilon = divergence - log_delta / (order - 1);
  if (conversion == Conversion::kTight) epsilon += std::log1p(-1 / order) - std::log(order) / (order - 1);
  return std::max(0.0, epsilon + kClosedFormMargin * std::abs(epsilon));
}

double convert_back(double divergence, double order, double epsilon, Conversion conversion) {
  double log_delta = (order - 1) * (divergence - epsilon);
  if (conversion == Conversion::kTight) log_delta += (order - 1) * std::log1p(-1 / order) - std::log(order);
  return std::min(0.0, log_delta + kClosedFormMargin * std::abs(log_delta));
}

// The least value over the orders; any order gives a bound, so the search need only be good.
template <typename F>
RenyiCurve::Best least(const F& value, Orders orders) {
  RenyiCurve::Best best{kInfinity, 0};
  const auto consider = [&](double order) {
    const double found = value(order);
    if (found < best.value) best = {found, order};
    return found;
  };
  if (orders == Orders::kIntegersTo64) {
    for (int order = 2; order <= 64; ++order) consider(order);
    return best;
  }
  const double step = 0.7;
  for (int i = 0; i < 40; ++i) consider(1 + 1e-4 * std::exp(step * i));
  if (!std::isfinite(best.value) || best.value == 0) return best;
  const double centre = std::log(best.order - 1);
  boost::math::tools::brent_find_minima([&](double log_order) { return consider(1 + std::exp(log_order)); },
                                        centre - step, centre + step, 40);
  return best;
}

}  // namespace

double renyi_divergence(const Step& stated, double order) {
  const Step step = stated.kind == Step::Kind::kCohortGaussian ? stated.in_public() : stated;
  if (step.allocated()) fail_user("Rényi divergences of random allocation are not computed: use pld");
  if (step.kind == Step::Kind::kApproximate && step.delta > 0) return kInfinity;
  if (!step.sampled()) {
    if (step.kind == Step::Kind::kGaussian || step.kind == Step::Kind::kDiscreteGaussian) {
      return order / (2 * step.noise_multiplier * step.noise_multiplier) * (1 + kClosedFormMargin);
    }
    if (step.kind == Step::Kind::kLaplace) {
      return laplace_divergence(step.noise_multiplier, order) * (1 + kClosedFormMargin);
    }
    if (step.kind == Step::Kind::kBoundedRange) {
      return bounded_range_divergence(step.epsilon, order) * (1 + kClosedFormMargin);
    }
  }
  double divergence = sampled_divergence(step, order, Direction::kRemove);
  if (!is_symmetric(step)) divergence = std::max(divergence, sampled_divergence(step, order, Direction::kAdd));
  return divergence * (1 + kQuadratureMargin);
}

RenyiCurve::RenyiCurve(std::span<const Steps> steps) : steps_(merged(steps)) {}

double RenyiCurve::at(double order) const {
  const auto found = known_.find(order);
  if (found != known_.end()) return found->second;
  double sum = 0;
  for (const Steps& entry : steps_) sum += static_cast<double>(entry.count) * renyi_divergence(entry.step, order);
  return known_[order] = sum;
}

RenyiCurve::Best RenyiCurve::epsilon(double delta, Orders orders, Conversion conversion) const {
  return least([&](double order) { return convert(at(order), order, std::log(delta), conversion); }, orders);
}

RenyiCurve::Best RenyiCurve::log_delta(double epsilon, Orders orders, Conversion conversion) const {
  return least([&](double order) { return convert_back(at(order), order, epsilon, conversion); }, orders);
}

}  // namespace sotto::privacy
