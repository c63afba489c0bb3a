#include "methods/dpsgd/sampling_curve.h"

#include "privacy/accounting/renyi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace sotto::methods {
namespace {

constexpr double kLeastRate = 0.01;
constexpr double kFlattest = 0.01;
constexpr double kSteepest = 40.0;
constexpr int kScanSteps = 400;
constexpr int kNarrowings = 100;

struct Simulated {
  double rate = 0, epsilon = 0;
};

// As dense below a tenth as the paper's grid is, relative to the rest.
std::vector<Simulated> simulate(double noise_multiplier, int64_t steps, double delta) {
  std::vector<double> rates;
  for (int i = 1; i <= 10; ++i) rates.push_back(0.01 * i);
  for (int i = 2; i <= 10; ++i) rates.push_back(0.1 * i);
  std::vector<Simulated> all;
  for (const double rate : rates) {
    const std::vector<privacy::Steps> composed = {{privacy::Step::gaussian(noise_multiplier, rate), steps}};
    const double epsilon =
        privacy::RenyiCurve(composed).epsilon(delta, privacy::Orders::kIntegersTo64, privacy::Conversion::kTight).value;
    all.push_back({rate, epsilon});
  }
  return all;
}

// ε = factor·e^{aq} + c, for a given a the best of both.
struct Line {
  double factor = 0, constant = 0, squares = 0;
};

Line best_line(const std::vector<Simulated>& points, double a) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const Simulated& point : points) {
    const double e = std::exp(a * point.rate);
    x += e;
    y += point.epsilon;
    xx += e * e;
    xy += e * point.epsilon;
  }
  Line line;
  line.factor = (n * xy - x * y) / (n * xx - x * x);
  line.constant = (y - line.factor * x) / n;
  for (const Simulated& point : points) {
    line.squares += std::pow(line.factor * std::exp(a * point.rate) + line.constant - point.epsilon, 2);
  }
  return line;
}

SamplingCurve fit(const std::vector<Simulated>& points) {
  const auto squares = [&](double a) { return best_line(points, a).squares; };
  const double ratio = std::pow(kSteepest / kFlattest, 1.0 / kScanSteps);
  double best = kFlattest;
  for (double a = kFlattest; a <= kSteepest; a *= ratio) {
    if (squares(a) < squares(best)) best = a;
  }
  double left = best / ratio, right = best * ratio;
  for (int i = 0; i < kNarrowings; ++i) {
    const double third = (right - left) / 3;
    if (squares(left + third) < squares(right - third)) {
      right -= third;
    } else {
      left += third;
    }
  }
  const double a = 0.5 * (left + right);
  const Line line = best_line(points, a);
  return {.a = a, .b = std::log(std::max(line.factor, std::numeric_limits<double>::min())), .c = line.constant};
}

}  // namespace

double SamplingCurve::epsilon(double rate) const {
  return std::exp(a * rate + b) + c;
}

double SamplingCurve::rate(double epsilon) const {
  if (epsilon <= c) return kLeastRate;
  return std::clamp((std::log(epsilon - c) - b) / a, kLeastRate, 1.0);
}

SamplingCurve fit_sampling_curve(double noise_multiplier, int64_t steps, double delta) {
  static std::mutex mutex;
  static std::map<std::tuple<double, int64_t, double>, SamplingCurve> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({noise_multiplier, steps, delta});
  if (is_new) entry->second = fit(simulate(noise_multiplier, steps, delta));
  return entry->second;
}

}  // namespace sotto::methods
