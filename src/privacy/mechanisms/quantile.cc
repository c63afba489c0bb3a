#include "privacy/mechanisms/quantile.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sotto::privacy {
namespace {

constexpr const char* kBelow = "below";
constexpr double kHalf = 0.5;
constexpr double kLargestShare = 0.1;
constexpr const char* kNormsName = "norms";
constexpr int64_t kBins = 40;
constexpr double kLeastNorm = 1e-4;
constexpr double kLargestNorm = 1e4;
const double kBinWidth = std::log(kLargestNorm / kLeastNorm) / static_cast<double>(kBins);

bool by_histogram(const QuantileOptions& options) {
  return options.tracking == QuantileOptions::Tracking::kHistogram;
}

// Where the cumulated counts reach the quantile, between the edges of a bin; negative counts are noise.
double quantile_of(const at::Tensor& counts, double quantile, double fallback) {
  const at::Tensor cumulated = counts.to(at::kDouble).clamp_min(0).cumsum(0);
  const double total = cumulated[kBins - 1].item<double>();
  if (!(total > 0)) return fallback;
  double before = 0;
  for (int64_t bin = 0; bin < kBins; ++bin) {
    const double here = cumulated[bin].item<double>();
    if (here >= quantile * total) {
      const double inside = (quantile * total - before) / (here - before);
      return kLeastNorm * std::exp((static_cast<double>(bin) + inside) * kBinWidth);
    }
    before = here;
  }
  return kLargestNorm;
}

}  // namespace

NamedTensor below(double norm, double bound) {
  return {kBelow, at::full({1}, norm <= bound ? kHalf : -kHalf)};
}

ClipRule below_rule() {
  return {kBelow, 1, kHalf};
}

double below_weight(const QuantileOptions& options, double noise_multiplier, double count) {
  const double wanted_multiplier = options.relative_noise * count / kHalf;
  return std::min(kLargestShare, std::pow(noise_multiplier / wanted_multiplier, 2));
}

double next_bound(const QuantileOptions& options, double bound, const at::Tensor& noisy_sum, double count) {
  const double share = std::clamp(noisy_sum.item<double>() / count + kHalf, 0.0, 1.0);
  return bound * std::exp(-options.learning_rate * (share - options.quantile));
}

Group norm_group(const QuantileOptions& options, Adjacency adjacency, bool sampled) {
  if (!by_histogram(options)) return {kBelow, 1, 1, sum_sensitivity(kHalf, adjacency)};
  const double other_bin = sampled ? 2.0 : std::numbers::sqrt2;
  return {kNormsName, 1, kBins, is_one_sided(adjacency) ? 1.0 : other_bin};
}

at::Tensor norm_statistic(const QuantileOptions& options, const at::Tensor& all, double bound) {
  const at::Tensor norms = all.masked_select(at::isfinite(all));
  if (!by_histogram(options)) {
    return (norms <= bound).sum().to(at::kFloat).sub_(static_cast<double>(norms.numel()) * kHalf).reshape({1});
  }
  const at::Tensor bins =
      ((norms.clamp(kLeastNorm, kLargestNorm) / kLeastNorm).log() / kBinWidth).floor().clamp_max(kBins - 1);
  return at::bincount(bins.to(at::kLong), {}, kBins).to(at::kFloat);
}

NamedTensor first_statistic(const QuantileOptions& options, double bound) {
  if (by_histogram(options)) return {kNormsName, at::zeros({kBins})};
  return {kLearntBound, at::scalar_tensor(bound, at::kDouble)};
}

double learnt_bound(const QuantileOptions& options, const NamedTensors& values, double fallback) {
  if (by_histogram(options)) return quantile_of(find_tensor(values, kNormsName), options.quantile, fallback);
  return find_tensor(values, kLearntBound).item<double>();
}

}  // namespace sotto::privacy
