#include "privacy/dpsgd/chunk.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sotto::privacy {

namespace {
constexpr double kMargin = 1e-6;

float towards_zero(double factor) {
  const auto rounded = static_cast<float>(factor);
  return rounded > factor ? std::nextafter(rounded, 0.0f) : rounded;
}

}  // namespace

Chunk::Chunk(int64_t examples, size_t groups)
    : examples_(examples), squares_(groups, std::vector<double>(static_cast<size_t>(examples), 0.0)) {}

void Chunk::clip(std::span<const double> bounds, bool joint, int64_t present, bool normalise) {
  const auto factor_of = normalise ? normalising_factor : clip_factor;
  std::vector<float*> factors;
  for (size_t group = 0; group < squares_.size(); ++group) {
    factors_.push_back(at::empty({examples_}, at::kFloat));
    factors.push_back(factors_.back().data_ptr<float>());
  }
  for (int64_t i = 0; i < examples_; ++i) {
    const auto example = static_cast<size_t>(i);
    bool finite = true, scaled = false;
    double relative = 0;
    for (size_t group = 0; group < squares_.size(); ++group) {
      finite = finite && std::isfinite(squares_[group][example]);
      relative += squares_[group][example] / (bounds[group] * bounds[group]);
    }
    finite = finite && std::isfinite(relative);
    for (size_t group = 0; group < squares_.size(); ++group) {
      const float factor = joint ? factor_of(relative, 1.0) : factor_of(squares_[group][example], bounds[group]);
      factors[group][i] = finite && i < present ? factor : 0.0f;
      scaled = scaled || factors[group][i] < 1.0f;
    }
    if (!finite) non_finite_.push_back(i);
    if (finite && scaled && i < present) ++clipped_;
  }
}

float clip_factor(double square, double bound) {
  const double factor = bound / (std::sqrt(square) * (1.0 + kMargin));
  if (!(factor < 1.0)) return 1.0f;
  return towards_zero(factor);
}

float normalising_factor(double square, double bound) {
  return towards_zero(bound / (std::sqrt(square) * (1.0 + kMargin) + kStretchless));
}

}  // namespace sotto::privacy
