#include "privacy/mechanisms/banded_strategy.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {

BandedStrategy::BandedStrategy(int64_t rounds, int64_t band) : rounds_(rounds) {
  SOTTO_INVARIANT(band >= 1 && band <= rounds);
  double coefficient = 1, square = 0;
  for (int64_t j = 0; j < band; ++j) {
    if (j > 0) coefficient *= static_cast<double>(2 * j - 1) / static_cast<double>(2 * j);
    square += coefficient * coefficient;
    coefficients_.push_back(coefficient);
    norms_.push_back(std::sqrt(square));
  }
}

double BandedStrategy::at(int64_t row, int64_t column) const {
  const int64_t below = row - column;
  if (below < 0 || below >= band()) return 0;
  const int64_t entries = std::min(band(), rounds_ - column + 1);
  return coefficients_[static_cast<size_t>(below)] / norms_[static_cast<size_t>(entries - 1)];
}

at::Tensor BandedStrategy::matrix() const {
  at::Tensor all = at::zeros({rounds_, rounds_}, at::kDouble);
  auto entries = all.accessor<double, 2>();
  for (int64_t column = 1; column <= rounds_; ++column) {
    for (int64_t row = column; row < std::min(column + band(), rounds_ + 1); ++row) {
      entries[row - 1][column - 1] = at(row, column);
    }
  }
  return all;
}

// The norm of yᵀ = 1ᵀC⁻¹, by substitution from the last round on.
double BandedStrategy::noise_in_total() const {
  std::vector<double> weights(static_cast<size_t>(rounds_ + 1));
  double square = 0;
  for (int64_t column = rounds_; column >= 1; --column) {
    double rest = 1;
    for (int64_t row = column + 1; row < std::min(column + band(), rounds_ + 1); ++row) {
      rest -= at(row, column) * weights[static_cast<size_t>(row)];
    }
    const double weight = rest / at(column, column);
    weights[static_cast<size_t>(column)] = weight;
    square += weight * weight;
  }
  return std::sqrt(square);
}

}  // namespace sotto::privacy
