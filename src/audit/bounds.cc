#include "audit/bounds.h"

#include "base/error.h"
#include "privacy/accounting/gaussian.h"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace sotto::audit {
namespace {

constexpr size_t kThresholds = 300;
// Limits: two error rates for each of two bounds.
constexpr double kLimits = 4;
// Thresholds are chosen by stricter limits than they are tested by: the luckiest of hundreds would disappoint.
constexpr double kChoosing = 1e-3;

double normal_quantile(double probability) {
  return boost::math::quantile(boost::math::normal_distribution<>(), probability);
}

// A part of a sample, sorted.
class Trials {
 public:
  Trials(std::span<const double> without, std::span<const double> with)
      : without_(without.begin(), without.end()), with_(with.begin(), with.end()) {
    std::sort(without_.begin(), without_.end());
    std::sort(with_.begin(), with_.end());
  }

  struct Test {
    double threshold = 0;
    bool above = true;  // "with" is said of numbers above the threshold; otherwise of those below
  };
  struct Rates {
    int64_t false_positives = 0, negatives = 0;  // of the trials without
    int64_t false_negatives = 0, positives = 0;  // of those with
  };

  Rates rates(const Test& test) const {
    const auto size = [](const std::vector<double>& values) { return static_cast<int64_t>(values.size()); };
    const int64_t said = beyond(without_, test);
    return {said, size(without_), size(with_) - beyond(with_, test), size(with_)};
  }

  // Thresholds worth trying, both ways, denser towards the ends.
  std::vector<Test> tests() const {
    std::vector<double> all;
    std::merge(without_.begin(), without_.end(), with_.begin(), with_.end(), std::back_inserter(all));
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<Test> tests;
    const double last = static_cast<double>(all.size() - 1);
    for (size_t i = 0; i < std::min(all.size(), kThresholds); ++i) {
      const double even = static_cast<double>(i) / static_cast<double>(std::max<size_t>(kThresholds, 2) - 1);
      const size_t rank =
          all.size() <= kThresholds ? i : static_cast<size_t>(std::lround(last * (1 - std::cos(even * M_PI)) / 2));
      tests.push_back({all[rank], true});
      tests.push_back({all[rank], false});
    }
    return tests;
  }

 private:
  static int64_t beyond(const std::vector<double>& sorted, const Test& test) {
    return test.above ? sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), test.threshold)
                      : std::lower_bound(sorted.begin(), sorted.end(), test.threshold) - sorted.begin();
  }

  std::vector<double> without_, with_;
};

// So many of the trials choose the threshold.
size_t chosen_on(size_t trials) {
  return std::max<size_t>(1, trials / 4);
}

ErrorRates limits(const Trials::Rates& rates, double alpha) {
  return {upper_limit(rates.false_positives, rates.negatives, alpha),
          upper_limit(rates.false_negatives, rates.positives, alpha)};
}

// Negative where even chance does better: thresholds are compared by it.
double epsilon_of(const ErrorRates& limits, double delta) {
  const auto one_way = [&](double p, double q) {
    return p < 1 - delta ? std::log((1 - p - delta) / q) : -std::numeric_limits<double>::infinity();
  };
  return std::max(one_way(limits.false_negative, limits.false_positive),
                  one_way(limits.false_positive, limits.false_negative));
}

double mu_of(const ErrorRates& limits) {
  if (limits.false_positive >= 1 || limits.false_negative >= 1) return -std::numeric_limits<double>::infinity();
  return -normal_quantile(limits.false_positive) - normal_quantile(limits.false_negative);
}

void fit(const Trials& all, Bounds& bounds) {
  double sum = 0, squares = 0, count = 0;
  for (const Trials::Test& test : all.tests()) {
    const Trials::Rates rates = all.rates(test);
    const double fpr = static_cast<double>(rates.false_positives) / static_cast<double>(rates.negatives);
    const double fnr = static_cast<double>(rates.false_negatives) / static_cast<double>(rates.positives);
    const bool usable = fpr > 0.01 && fpr < 0.99 && fnr > 0.01 && fnr < 0.99;
    if (!usable) continue;
    const double mu = std::abs(normal_quantile(fpr) + normal_quantile(fnr));
    sum += mu;
    squares += mu * mu;
    ++count;
  }
  if (count == 0) return;
  bounds.fitted_mu = sum / count;
  bounds.fit_error = std::sqrt(std::max(0.0, squares / count - *bounds.fitted_mu * *bounds.fitted_mu));
}

}  // namespace

double upper_limit(int64_t events, int64_t trials, double alpha) {
  SOTTO_INVARIANT(trials > 0 && events >= 0 && events <= trials && alpha > 0 && alpha < 1);
  if (events == trials) return 1.0;
  const boost::math::beta_distribution<> beta(static_cast<double>(events + 1), static_cast<double>(trials - events));
  return boost::math::quantile(boost::math::complement(beta, alpha));
}

double lower_limit(int64_t events, int64_t trials, double alpha) {
  return 1.0 - upper_limit(trials - events, trials, alpha);
}

double Bounds::epsilon_by_curve(double delta) const {
  return mu > 0 ? privacy::gaussian_epsilon(mu, std::log(delta)) : 0.0;
}

Bounds lower_bounds(const Sample& sample, double delta, double alpha) {
  SOTTO_INVARIANT(sample.without.size() >= 2 && sample.with.size() >= 2);
  const std::span<const double> without(sample.without), with(sample.with);
  const size_t early = chosen_on(without.size()), late = chosen_on(with.size());
  const Trials first(without.first(early), with.first(late));
  const Trials second(without.subspan(early), with.subspan(late));
  const double share = alpha / kLimits;
  Trials::Test for_epsilon, for_mu;
  double best_epsilon = -std::numeric_limits<double>::infinity(), best_mu = best_epsilon;
  for (const Trials::Test& test : first.tests()) {
    const ErrorRates found = limits(first.rates(test), share * kChoosing);
    if (const double epsilon = epsilon_of(found, delta); epsilon > best_epsilon) {
      best_epsilon = epsilon;
      for_epsilon = test;
    }
    if (const double mu = mu_of(found); mu > best_mu) {
      best_mu = mu;
      for_mu = test;
    }
  }
  Bounds bounds;
  bounds.epsilon = std::max(0.0, epsilon_of(limits(second.rates(for_epsilon), share), delta));
  bounds.limits = limits(second.rates(for_mu), share);
  bounds.mu = std::max(0.0, mu_of(bounds.limits));
  bounds.trials = static_cast<int64_t>(without.size() + with.size());
  fit(Trials(without, with), bounds);
  return bounds;
}

}  // namespace sotto::audit
