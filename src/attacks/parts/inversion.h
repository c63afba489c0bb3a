// What did the records look like? Inputs that explain what was uploaded.
//
//   gradient inversion   from a client's update: labels from the gradient of the classifier's bias, then descent on
//                        inputs whose gradient points where the update came from (Zhu et al. 2019; Geiping et al. 2020)
//   hijacking            from a prototype: descent on an input whose feature is the prototype
//
// Inputs are tanh of what is optimised, so that they stay in [-1, 1]; pictures also pay for total variation. As VPDR
// prints hijacking, they stay in [0, 1], which for pictures is the same, and what is small is the squared distance.
#pragma once

#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::attacks {

enum class Descent { kAdam, kLbfgs };

// As --optimizer spells it: adam or lbfgs. Any other name is a UserError.
Descent descent_named(const std::string& name);

struct InversionOptions {
  Descent descent = Descent::kAdam;
  int64_t steps = 400;
  double lr = 0.1;          // of Adam; L-BFGS searches along its direction
  double variation = 1e-3;  // weight of the total variation; 0 for records that are not pictures
  int64_t patience = 300;   // stop after so many steps without progress
  uint64_t seed = 1;
  bool as_printed = false;  // hijacking
};

// `count` labels that explain the gradient of a mean loss with respect to the classifier's bias: the most negative
// entry loses 1/count for each that is taken.
std::vector<int64_t> recover_labels(const at::Tensor& bias_gradient, int64_t count);

struct Inverted {
  at::Tensor x;  // [count, …] in [-1, 1], or as printed, if they are no pictures, in [0, 1]
  std::vector<int64_t> labels;
  double cosine = 0;  // of the gradient that they have with the one that was given
};

// `gradient` is that of the mean loss at the model's parameters, flat over its shared parameters.
Inverted invert_gradient(models::Model& model, const at::Tensor& gradient, int64_t count,
                         const std::vector<int64_t>& record_shape, const InversionOptions& options);

// One input per row of `prototypes` [C, d].
Inverted hijack_features(models::Model& model, const at::Tensor& prototypes, const std::vector<int64_t>& record_shape,
                         const InversionOptions& options);

}  // namespace sotto::attacks
