// The examples of one pass: their squared gradient norms, and then their factors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sotto::privacy {

// A trainable parameter as its layer's term sees it.
struct Parameter {
  at::Tensor value;
  at::Tensor gradient;  // where the clipped sum is added up: a view of the flat gradient
  size_t group = 0;
};

class Chunk {
 public:
  Chunk(int64_t examples, size_t groups);

  int64_t examples() const { return examples_; }
  // [examples] squared norms of what was measured so far of a group.
  double* squares(size_t group) { return squares_[group].data(); }

  // Computes the factors. Examples with a square that is not finite get 0 in every group, and so do all from `present`
  // on: they are blanks. `joint`: one factor for all groups, such that Σ (norm_g/bound_g)² ≤ 1. `normalise`: short
  // gradients are stretched, too.
  void clip(std::span<const double> bounds, bool joint, int64_t present, bool normalise = false);

  // Valid after clip().
  const at::Tensor& factors(size_t group) const { return factors_[group]; }  // float [examples]
  const std::vector<int64_t>& non_finite() const { return non_finite_; }
  int64_t clipped() const { return clipped_; }  // examples that are present

 private:
  int64_t examples_;
  std::vector<std::vector<double>> squares_;
  std::vector<at::Tensor> factors_;
  std::vector<int64_t> non_finite_;
  int64_t clipped_ = 0;
};

// C / (norm (1 + 1e-6)), at most 1, rounded towards zero.
float clip_factor(double square, double bound);
// C / (norm (1 + 1e-6) + kStretchless), rounded towards zero: gradients much shorter than that stay short.
float normalising_factor(double square, double bound);
inline constexpr double kStretchless = 0.01;

}  // namespace sotto::privacy
