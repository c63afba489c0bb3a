// What noisy sums of classes say: their means, how records spread around them, and the linear classifier that follows.
//
// All of it is made of releases and public values, in doubles: it costs nothing.
#pragma once

#include "base/named_tensors.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::methods {

// One client's release: sums and counts of the vectors scale ∘ (f - centre of their class), with noise.
struct NoisyClassSums {
  at::Tensor sums;       // [C, d]
  at::Tensor counts;     // [C]
  double sum_noise = 0;  // standard deviations
  double count_noise = 0;
};

// Where vectors were counted from, and what each coordinate was multiplied by.
struct Frame {
  at::Tensor centres;  // [C, d]
  at::Tensor scale;    // [d]
};

// Means of classes, and what can be told of them without knowing the truth.
struct ClassEstimate {
  at::Tensor means;    // [C, d]
  at::Tensor squares;  // [C, d]: of the true means, expected
  at::Tensor risk;     // [C, d]: of the estimate, expected square of what it is off by (Stein)
};

// Means of classes from several rounds of sums, each counting by the inverse variance of its noise.
class ClassMeans {
 public:
  ClassMeans(int64_t classes, int64_t width);

  // Sums over all clients of a round.
  void add(const Frame& frame, const NoisyClassSums& pooled);
  bool empty() const { return empty_; }

  // Every coordinate's means are drawn to the mean of all classes by as much as the noise explains of their spread: that
  // of the coordinate and that of all coordinates count half each. The mean of all classes is drawn to zero alike.
  ClassEstimate shrunk() const;
  ClassEstimate unshrunk() const;
  // [C], at least 1.
  at::Tensor counts() const;

  NamedTensors state() const;
  void restore(const NamedTensors& state);

 private:
  at::Tensor precision_, weighted_;               // [C, d]
  at::Tensor count_precision_, weighted_counts_;  // [], [C]
  bool empty_ = true;
};

// How records spread within classes: evenly, and more along some directions.
struct Spread {
  double level = 1;       // variance of a coordinate
  at::Tensor directions;  // orthonormal rows [r, d]; r may be 0
  at::Tensor extra;       // [r]: what they have on top of `level`
};

// The spread of records from how the means of different clients differ (FedCOF: D. Goswami et al., 2024): a mean over n
// records varies by 1/n of what records do, plus noise, which is known. Directions count that stand out of what noise and
// an even spread would show by chance (the edge of the Marchenko–Pastur law), with the variance that spiked covariances
// have where such a one is seen.
class ClientScatter {
 public:
  ClientScatter(int64_t classes, int64_t width);

  void add(const NoisyClassSums& client);
  // In the coordinates of the sums; `level` is the variance of a coordinate within classes.
  Spread spread(double level) const;

 private:
  at::Tensor squares_;             // Σ n r rᵀ over clients and classes, r = sum/n
  at::Tensor sums_, counts_;       // Σ n r [C, d], Σ n [C]
  at::Tensor cells_, cell_noise_;  // [C]: how many, Σ noise variance
  at::Tensor noise_;               // Σ noise variance of √n r
};

struct LinearRule {
  at::Tensor weight;  // [C, d]
  at::Tensor bias;    // [C]
};

// The linear discriminant of Gaussian classes with these means and one covariance: `spread` in coordinates multiplied by
// `scale`, and `spread.level` in coordinates as they are. Logits are scaled down where they would be surer than odds of
// e⁸ between two classes on average: means of many dimensions are surer than they should be.
LinearRule discriminant(const at::Tensor& means, const at::Tensor& counts, const Spread& spread,
                        const at::Tensor& scale);

}  // namespace sotto::methods
