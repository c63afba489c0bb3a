// Numbers that say how good predictions are.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace sotto::federation {

inline constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// Predictions for some records: predicted class, the score of class 1 (binary tasks), the truth.
struct Predictions {
  at::Tensor predicted;  // int64 [n]
  at::Tensor score;      // float [n]: logit of class 1 minus logit of class 0; undefined unless there are two classes
  at::Tensor truth;      // int64 [n]
};

// Share of records predicted right. NaN for no records.
double accuracy(const Predictions& predictions);

// Mean over the classes that occur of the share of that class predicted right. NaN for no records.
double balanced_accuracy(const Predictions& predictions);

// Area under the ROC curve, ties counted half. NaN unless both classes occur.
double auroc(const Predictions& predictions);

struct Spread {
  double mean = kUndefined;
  double std = kUndefined;    // over clients, population form
  double worst = kUndefined;  // the smallest
};
// Over the finite values.
Spread spread(const std::vector<double>& values);

}  // namespace sotto::federation
