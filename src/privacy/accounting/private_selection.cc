#include "privacy/accounting/private_selection.h"

#include "base/error.h"
#include "privacy/accounting/distance.h"
#include "privacy/accounting/proven.h"
#include "privacy/accounting/renyi.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRoundUp = 1 + 1e-12;

// E[K] of the truncated negative binomial: η(1-γ)/(γ(1-γ^η)), and its limit at η = 0.
double mean_of(double shape, double gamma) {
  if (shape == 0) return (1 / gamma - 1) / -std::log(gamma);
  return shape * (1 - gamma) / (gamma * -std::expm1(shape * std::log(gamma)));
}

// Any order gives a bound: these are dense enough to come near the best.
const std::vector<double>& orders() {
  static const std::vector<double> all = [] {
    std::vector<double> values;
    for (double distance = 1e-2; distance < 1e5; distance *= 1.12) values.push_back(1 + distance);
    return values;
  }();
  return all;
}

// Of all trials together: the largest of them at every order and at every ε.
class Worst {
 public:
  explicit Worst(std::span<const TrialCost> trials) {
    for (const TrialCost& trial : trials) {
      require_valid(trial.steps);
      if (!(trial.slack >= 0)) fail_user("slack is a distance and cannot be {}", trial.slack);
      std::vector<Steps> unallocated = merged(trial.steps);
      for (Steps& entry : unallocated) entry.step.batches = 1;
      curves_.emplace_back(unallocated);
      costs_.push_back(&trial);
      slack_ = std::max(slack_, trial.slack);
      silent_ = silent_ && unallocated.empty();
    }
  }

  bool silent() const { return silent_; }
  double slack() const { return slack_; }
  double divergence(double order) const {
    double largest = 0;
    for (const RenyiCurve& curve : curves_) largest = std::max(largest, curve.at(order));
    return largest;
  }
  double delta(double epsilon) const {
    double largest = 0;
    for (size_t i = 0; i < curves_.size(); ++i) {
      const TrialCost& cost = *costs_[i];
      largest = std::max(largest, cost.renyi_only
                                      ? std::exp(curves_[i].log_delta(epsilon, Orders::kReal, Conversion::kTight).value)
                                      : proven_delta(cost.steps, epsilon));
    }
    return std::min(1.0, largest);
  }

 private:
  std::vector<RenyiCurve> curves_;
  std::vector<const TrialCost*> costs_;
  double slack_ = 0;
  bool silent_ = true;
};

// What the truncated negative binomial adds at every order: (1+η)·min over λ̂ of (1-1/λ̂)ρ(λ̂) + log(1/γ)/λ̂.
double least_addition(const Worst& worst, const TrialLaw& law) {
  double least = -std::log(law.gamma());  // λ̂ = 1
  for (const double order : orders()) {
    least = std::min(least, (1 - 1 / order) * worst.divergence(order) - std::log(law.gamma()) / order);
  }
  return (1 + law.shape()) * least;
}

double divergence_of(const Worst& worst, const TrialLaw& law, double addition, double order) {
  const double own = worst.divergence(order);
  if (!std::isfinite(own)) return kInfinity;
  // Probabilities of K that are off by a factor move f'(q)^λ f'(q')^(1-λ) by its power 2λ-1.
  const double drawn = (2 * order - 1) / (order - 1) * 1.1 * TrialLaw::kDrawError;
  if (!law.is_poisson()) return (own + addition + std::log(law.mean()) / (order - 1)) * kRoundUp + drawn;
  // ln(e^-μ + μ e^((λ-1)(ρ + μδ̂)))
  const double delta = worst.delta(std::log1p(1 / (order - 1)));
  const double shown = std::log(law.mean()) + (order - 1) * (own + law.mean() * delta);
  const double hidden = -law.mean();
  const double high = std::max(shown, hidden), low = std::min(shown, hidden);
  return (high + std::log1p(std::exp(low - high))) / (order - 1) * kRoundUp + drawn;
}

double converted(double divergence, double order, double delta) {
  const double epsilon = divergence + std::log1p(-1 / order) - (std::log(delta) + std::log(order)) / (order - 1);
  return std::max(0.0, epsilon + 1e-12 * std::abs(epsilon));
}

// Of divergences at orders().
double least_epsilon(const std::vector<double>& divergences, double delta) {
  double least = kInfinity;
  for (size_t i = 0; i < divergences.size(); ++i) {
    least = std::min(least, converted(divergences[i], orders()[i], delta));
  }
  return least;
}

}  // namespace

TrialLaw TrialLaw::truncated_negative_binomial(double shape, double mean) {
  if (!(shape >= 0 && shape <= 10)) fail_user("the shape of a law of trials must be in [0, 10], not {}", shape);
  if (!(mean > 1 && mean <= 1000))
    fail_user("the mean number of trials must be above 1 and at most 1000, not {}", mean);
  double low = 1e-300, high = 1 - 1e-12;  // of γ; the mean falls with it
  if (mean_of(shape, high) > mean) fail_user("the mean number of trials must be farther above 1 than {}", mean);
  for (int i = 0; i < 2000 && high / low > 1 + 1e-15; ++i) {
    const double middle = std::sqrt(low * high);
    (mean_of(shape, middle) > mean ? low : high) = middle;
  }
  return {false, shape, low, mean_of(shape, low)};
}

TrialLaw TrialLaw::poisson(double mean) {
  if (!(mean > 0 && mean <= 700)) fail_user("the mean of a Poisson number of trials must be in (0, 700], not {}", mean);
  return {true, 0, 0, mean};
}

long double TrialLaw::first() const {
  if (poisson_) return std::exp(-static_cast<long double>(mean_));
  const long double gamma = gamma_, shape = shape_;
  if (shape_ == 0) return (1 - gamma) / -std::log(gamma);
  return (1 - gamma) * shape / std::expm1(-shape * std::log(gamma));
}

long double TrialLaw::ratio(int64_t k) const {
  const auto place = static_cast<long double>(k);
  if (poisson_) return mean_ / (place + 1);
  return (1 - static_cast<long double>(gamma_)) * (place + shape_) / (place + 1);
}

long double TrialLaw::probability(int64_t k) const {
  if (k < least()) return 0;
  long double p = first();
  for (int64_t at = least(); at < k; ++at) p *= ratio(at);
  return p;
}

// P(K ≥ k)/P(k) = 1 + ratio(k) · P(K ≥ k+1)/P(k+1). From far out, where hardly any K is, backwards: what is wrong with
// the first value is forgotten on the way, and there is nothing to cancel.
int64_t TrialLaw::draw(const std::function<uint64_t()>& bits) const {
  const auto far = static_cast<int64_t>(poisson_ ? 10 * mean_ + 400 : (200 + 20 * shape_) / gamma_ + 400);
  std::vector<long double> tails(static_cast<size_t>(far - least() + 1));
  tails.back() = poisson_ ? 1 : 1 / static_cast<long double>(gamma_);
  for (size_t i = tails.size() - 1; i-- > 0;) tails[i] = 1 + ratio(least() + static_cast<int64_t>(i)) * tails[i + 1];
  for (size_t i = 0; i + 1 < tails.size(); ++i) {
    const auto high = static_cast<long double>(bits()), low = static_cast<long double>(bits());
    if (std::ldexp(high + std::ldexp(low, -64), -64) * tails[i] < 1) return least() + static_cast<int64_t>(i);
  }
  return far;
}

double selection_divergence(std::span<const TrialCost> trials, const TrialLaw& law, double order) {
  if (!(order > 1) || !std::isfinite(order)) fail_user("a Rényi order must be finite and above 1, not {}", order);
  const Worst worst(trials);
  if (worst.silent()) return 0;
  return divergence_of(worst, law, law.is_poisson() ? 0 : least_addition(worst, law), order);
}

double selection_epsilon(std::span<const TrialCost> trials, const TrialLaw& law, double delta) {
  require_valid_delta(delta);
  const Worst worst(trials);
  if (worst.silent()) return 0;
  const double addition = law.is_poisson() ? 0 : least_addition(worst, law);
  std::vector<double> divergences;
  for (const double order : orders()) divergences.push_back(divergence_of(worst, law, addition, order));
  return with_distance(TrialLaw::kDrawDistance + law.mean() * worst.slack(), delta,
                       [&](double left) { return least_epsilon(divergences, left); });
}

double all_runs_epsilon(std::span<const ShownRuns> runs, double delta) {
  require_valid_delta(delta);
  std::vector<Steps> all;
  std::vector<Worst> worst;
  bool by_losses = true, silent = true;
  double slack = 0;
  for (const ShownRuns& run : runs) {
    const Worst& each = worst.emplace_back(run.alternatives);
    slack += static_cast<double>(run.times) * each.slack();
    silent = silent && each.silent();
    by_losses = by_losses && run.alternatives.size() <= 1;
    for (const TrialCost& cost : run.alternatives) {
      by_losses = by_losses && !cost.renyi_only;
      for (const Steps& entry : cost.steps) all.push_back({entry.step, entry.count * run.times});
    }
  }
  if (silent) return 0;
  if (by_losses) {
    return with_distance(slack, delta, [&](double left) { return proven_epsilon(all, left); });
  }
  std::vector<double> divergences;
  for (const double order : orders()) {
    double sum = 0;
    for (size_t i = 0; i < worst.size(); ++i) sum += static_cast<double>(runs[i].times) * worst[i].divergence(order);
    divergences.push_back(sum * kRoundUp);
  }
  return with_distance(slack, delta, [&](double left) { return least_epsilon(divergences, left); });
}

}  // namespace sotto::privacy
