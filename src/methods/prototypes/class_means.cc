#include "methods/prototypes/class_means.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr double kSurest = 8;       // log odds
constexpr double kNoNoise = 1e-12;  // variance
// Cells of fewer records say more of noise than of anything else.
constexpr double kLeastCell = 8;
// A coordinate's classes are not taken to differ by more than this times the usual: what few numbers say may be chance.
constexpr double kMostOfOne = 4;
constexpr double kOverTheEdge = 1.1;

at::Tensor divisors(const NoisyClassSums& sums) {
  return sums.counts.to(at::kDouble).clamp_min(std::max(1.0, sums.count_noise));
}

}  // namespace

ClassMeans::ClassMeans(int64_t classes, int64_t width)
    : precision_(at::zeros({classes, width}, at::kDouble)),
      weighted_(at::zeros({classes, width}, at::kDouble)),
      count_precision_(at::zeros({}, at::kDouble)),
      weighted_counts_(at::zeros({classes}, at::kDouble)) {}

void ClassMeans::add(const Frame& frame, const NoisyClassSums& pooled) {
  const at::Tensor n = divisors(pooled).unsqueeze(1), scale = frame.scale.to(at::kDouble);
  const at::Tensor estimate = frame.centres.to(at::kDouble) + pooled.sums.to(at::kDouble) / n / scale;
  const double variance = std::max(pooled.sum_noise * pooled.sum_noise, kNoNoise);
  const at::Tensor precision = (n * scale).square() / variance;
  precision_ = precision_ + precision;
  weighted_ = weighted_ + precision * estimate;
  const double count_precision = 1 / std::max(pooled.count_noise * pooled.count_noise, kNoNoise);
  count_precision_ = count_precision_ + count_precision;
  weighted_counts_ = weighted_counts_ + pooled.counts.to(at::kDouble) * count_precision;
  empty_ = false;
}

at::Tensor ClassMeans::counts() const {
  if (empty_) return at::ones_like(weighted_counts_);
  return (weighted_counts_ / count_precision_).clamp_min(1);
}

ClassEstimate ClassMeans::unshrunk() const {
  if (empty_) return {weighted_, weighted_, weighted_};
  const at::Tensor raw = weighted_ / precision_, noise = precision_.reciprocal();
  return {raw, raw.square() - noise, noise};
}

ClassEstimate ClassMeans::shrunk() const {
  if (empty_ || weighted_.size(0) < 2) return unshrunk();
  const at::Tensor raw = weighted_ / precision_, noise = precision_.reciprocal();
  const at::Tensor share = (counts() / counts().sum()).unsqueeze(1);
  const at::Tensor centre = (raw * share).sum(0, true), centre_noise = (noise * share.square()).sum();
  const at::Tensor trust = (1 - centre_noise / centre.square().sum().clamp_min(kNoNoise)).clamp_min(0);
  const at::Tensor seen = (raw - centre).square().sum(0, true) / static_cast<double>(raw.size(0) - 1);
  const at::Tensor own = seen - noise.mean(0, true), usual = own.mean().clamp_min(0);
  const at::Tensor signal = (at::minimum(own.clamp_min(0), kMostOfOne * usual) + usual) / 2;
  const at::Tensor kept = signal / (signal + noise);
  const at::Tensor means = centre * trust + (raw - centre) * kept;
  const at::Tensor slope = kept + (trust - kept) * share;  // of a mean in its own raw one
  return {means, raw.square() - noise, (means - raw).square() - noise + 2 * noise * slope};
}

NamedTensors ClassMeans::state() const {
  if (empty_) return {};
  return {{"means.precision", precision_},
          {"means.weighted", weighted_},
          {"means.count_precision", count_precision_},
          {"means.weighted_counts", weighted_counts_}};
}

void ClassMeans::restore(const NamedTensors& state) {
  const at::Tensor precision = find_tensor(state, "means.precision");
  empty_ = !precision.defined();
  if (empty_) return;
  precision_ = precision.clone();
  weighted_ = find_tensor(state, "means.weighted").clone();
  count_precision_ = find_tensor(state, "means.count_precision").clone();
  weighted_counts_ = find_tensor(state, "means.weighted_counts").clone();
}

ClientScatter::ClientScatter(int64_t classes, int64_t width)
    : squares_(at::zeros({width, width}, at::kDouble)),
      sums_(at::zeros({classes, width}, at::kDouble)),
      counts_(at::zeros({classes}, at::kDouble)),
      cells_(at::zeros({classes}, at::kDouble)),
      cell_noise_(at::zeros({classes}, at::kDouble)),
      noise_(at::zeros({}, at::kDouble)) {}

void ClientScatter::add(const NoisyClassSums& client) {
  const at::Tensor n = divisors(client);
  const at::Tensor counts = n.ge(std::max(kLeastCell, 4 * client.count_noise)).to(at::kDouble);
  const at::Tensor sums = client.sums.to(at::kDouble) * counts.unsqueeze(1);
  const at::Tensor rows = sums / n.sqrt().unsqueeze(1);
  squares_.addmm_(rows.t(), rows);
  sums_ += sums;
  counts_ += n * counts;
  cells_ += counts;
  const double variance = client.sum_noise * client.sum_noise;
  noise_ += (counts * variance / n).sum();
  cell_noise_ += counts * variance;
}

Spread ClientScatter::spread(double level) const {
  Spread result{.level = level, .directions = at::empty({0, squares_.size(0)}, at::kDouble), .extra = {}};
  result.extra = at::empty({0}, at::kDouble);
  const at::Tensor counts = counts_.clamp_min(1);
  const double freedom = (cells_ - 1).clamp_min(0).sum().item<double>();
  if (freedom < 2) return result;
  const at::Tensor pooled = sums_ / counts.sqrt().unsqueeze(1);
  const at::Tensor scatter = (squares_ - at::mm(pooled.t(), pooled)) / freedom;
  const double noise = std::max(0.0, (noise_ - (cell_noise_ / counts).sum()).item<double>() / freedom);

  const double even = noise + level, ratio = static_cast<double>(squares_.size(0)) / freedom;
  const double edge = even * std::pow(1 + std::sqrt(ratio), 2) * kOverTheEdge;
  const auto [seen, vectors] = at::linalg_eigh(scatter);
  const at::Tensor found = seen.gt(edge).nonzero().squeeze(1);
  const at::Tensor above = seen.index_select(0, found), shifted = above + even * (1 - ratio);
  const at::Tensor true_size = (shifted + (shifted.square() - 4 * above * even).clamp_min(0).sqrt()) / 2;
  result.directions = vectors.index_select(1, found).t().contiguous();
  result.extra = (true_size - even).clamp_min(kNoNoise);
  return result;
}

LinearRule discriminant(const at::Tensor& means, const at::Tensor& counts, const Spread& spread,
                        const at::Tensor& scale) {
  const at::Tensor factor = scale.to(at::kDouble);
  const at::Tensor even = (factor.square() * spread.level).reciprocal();  // of the scaled coordinates, inverse
  const at::Tensor scaled = means.to(at::kDouble) * factor;
  at::Tensor weight = scaled * even;
  if (spread.extra.numel() > 0) {  // Woodbury
    const at::Tensor along = spread.directions * even;
    const at::Tensor inner = at::mm(along, spread.directions.t()) + at::diag(spread.extra.reciprocal());
    weight = weight - at::mm(at::linalg_solve(inner, at::mm(along, scaled.t())).t(), along);
  }
  weight = weight * factor;
  const at::Tensor products = at::mm(weight, means.to(at::kDouble).t());
  const at::Tensor own = products.diagonal();
  const double classes = static_cast<double>(means.size(0));
  const double sure =
      classes > 1 ? (own.sum() * classes - products.sum()).item<double>() / (classes * (classes - 1)) : 0;
  const double tempered = sure > kSurest ? kSurest / sure : 1.0;
  const at::Tensor share = counts.to(at::kDouble) / counts.to(at::kDouble).sum();
  return {weight * tempered, share.log() - own * (tempered / 2)};
}

}  // namespace sotto::methods
